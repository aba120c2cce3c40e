"""Computes ``golden.json`` anew, says what changed: ``python tests/golden/update.py [SECTION]``.

A changed case is a changed release, file or promise: commit it together with the reason.
"""

import json
import os
import sys
import tempfile
from pathlib import Path


def main(sections: list[str]) -> None:
    """Compute some sections, or all."""
    with tempfile.TemporaryDirectory() as temporary:
        # Before the package is imported: nothing of the user's own cache comes in.
        os.environ["HF_DXPRIVACY_CACHE"] = f"{temporary}/cache"
        from golden_net import FILE, SECTIONS, compute

        before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        chosen = sections or list(SECTIONS)
        after = {key: v for key, v in before.items() if key.partition("/")[0] not in chosen}
        after = {key: v for key, v in after.items() if key.partition("/")[0] in SECTIONS}
        for section in chosen:
            folder = Path(temporary) / section
            folder.mkdir()
            after |= compute(section, folder)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            print("new    " if key not in before else "changed" if key in after else "gone   ", key)
    content = json.dumps(after, indent=0, sort_keys=True, ensure_ascii=False)
    FILE.write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The demo page as a process that can be asked what it still holds of a text.

For every line on standard input it prints how many objects in memory hold that text.
"""

import gc
import sys
from collections.abc import Iterator

from hf_dxprivacy.page.demo import demo_page, serve


def holders(text: str) -> list[object]:
    """Return the containers in this process that hold a text, by itself or in a longer one."""
    gc.collect()
    containers = [held for held in gc.get_objects() if isinstance(held, dict | list | tuple | set)]
    return [held for held in containers if any(text in value for value in _strings(held))]


def _strings(held: object) -> Iterator[str]:
    # Referents, not items: another thread may be filling a tuple, whose items do not exist yet.
    for referent in gc.get_referents(held):
        if isinstance(referent, str):
            yield referent
        elif isinstance(referent, bytes | bytearray):
            yield referent.decode("latin-1")
        elif isinstance(referent, tuple | dict) and not gc.is_tracked(referent):
            yield from _strings(referent)


def main() -> None:
    """Serve the page at the port that is named first, with the spaces after it, and answer."""
    page = demo_page(sys.argv[2:])
    print(serve(page, port=int(sys.argv[1])), flush=True)
    for line in sys.stdin:
        # The line itself is held by this frame alone, which is no container.
        print(len(holders(line.strip())), flush=True)


if __name__ == "__main__":
    main()

# /// script
# requires-python = ">=3.10"
# dependencies = ["hf-dxprivacy"]
# ///
"""Privatize a text dataset as a batch job, for `uv run` and `hf jobs uv run`.

uv run uv_privatize.py INPUT OUTPUT --text-column text --mechanism hierarchical --epsilon 1.5

INPUT and OUTPUT are files, or datasets on the Hub (namespace/name). Other options are those of
`hf-dxprivacy privatize`; and if OUTPUT is on the Hub --license (required) and --private, as for
`hf-dxprivacy push`, which needs HF_TOKEN. What is pushed are the released rows, with a card that
has the guarantee. ALL OTHER COLUMNS STAY IN CLEAR. If a push fails, the released rows are kept.
"""

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import get_token
from huggingface_hub.utils import validate_repo_id

from hf_dxprivacy.cli.main import main as program
from hf_dxprivacy.cli.terminal import say
from hf_dxprivacy.files.source import ENDINGS
from hf_dxprivacy.hub.cards import check_licence


def main(argv: Sequence[str] | None = None) -> int:
    """Privatize, and push if the output is on the Hub; return the exit code."""
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if len(arguments) < 2 or arguments[0].startswith("-") or arguments[1].startswith("-"):
        print(__doc__)
        return 0 if {"-h", "--help"} & {*arguments} else 2
    source, target, *options = arguments
    if Path(target.lower().removesuffix(".gz")).suffix in ENDINGS:
        return program(["privatize", source, "--output", target, *options])
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--license", required=True)
    parser.add_argument("--private", action="store_true")
    pushed, options = parser.parse_known_args(options)
    try:
        require_target(target, pushed.license)
    except ValueError as error:
        say(f"error: {error}")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="released-"))
    push = ["push", str(folder / "released.parquet"), target, "--license", pushed.license]
    push += ["--private"] * pushed.private
    keep = False
    try:
        if code := program(["privatize", source, "--output", push[1], "--report", *options]):
            return code
        keep = True
        keep = bool(code := program(push))
        return code
    finally:
        if keep:
            again = shlex.join(["hf-dxprivacy", *push])
            say(f"not pushed; the release is kept in {folder}. To push it: {again}")
        else:
            shutil.rmtree(folder)


def require_target(target: str, license: str) -> None:
    """Raise ValueError for a repository that nothing could be pushed to, before any work."""
    check_licence(license)
    if "/" not in target:
        raise ValueError(
            f"expected OUTPUT to be namespace/name on the Hub or to end in {', '.join(ENDINGS)}, "
            f"got {target!r}"
        )
    validate_repo_id(target)
    if get_token() is None:
        raise ValueError(
            f"there is no token to push to {target} with; set HF_TOKEN, or run: hf auth login"
        )


if __name__ == "__main__":
    sys.exit(main())

# /// script
# requires-python = ">=3.10"
# dependencies = ["hf-dxprivacy"]
# ///
"""Privatize a text dataset as a batch job, for `uv run` and `hf jobs uv run`.

uv run uv_privatize.py INPUT OUTPUT --text-column text --mechanism hierarchical --epsilon 1.5

INPUT and OUTPUT are files, or datasets on the Hub (namespace/name). Other options are those of
`hf-dxprivacy privatize`; and if OUTPUT is on the Hub --license (required) and --private, as for
`hf-dxprivacy push`, which needs HF_TOKEN. What is pushed are the released rows, with a card that
has the guarantee. ALL OTHER COLUMNS STAY IN CLEAR.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hf_dxprivacy.cli.main import main as program
from hf_dxprivacy.files.readers import ENDINGS


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
    with tempfile.TemporaryDirectory() as folder:
        released = str(Path(folder, "released.parquet"))
        code = program(["privatize", source, "--output", released, "--report", *options])
        private = ["--private"] * pushed.private
        return code or program(["push", released, target, "--license", pushed.license, *private])


if __name__ == "__main__":
    sys.exit(main())

"""Make the model card of a space, a privatizer or a selector anew.

  hf-dxprivacy card ./glove --license pddl

README.md, and for a space the picture privacy.png, are written into the folder; whatever was
measured before and still belongs to the space is not measured again. Nothing else is changed but
the measured figures in config.json. A push makes the card by itself; this is for looking at it
first.
"""

import argparse
import sys
from pathlib import Path

from hf_dxprivacy.cli.artifacts import load
from hf_dxprivacy.cli.usage import usage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FOLDER [options]"
    parser.add_argument("folder", metavar="FOLDER", help="what save_pretrained has written")
    parser.add_argument("--license", metavar="ID", help="licence as the Hub names it")


def run(args: argparse.Namespace) -> None:
    """Write a card.

    Raises:
        UsageError: If the Hub knows no such licence.
        DxPrivacyError: If the folder is damaged.
        OSError: If a file can not be written.
    """
    stored = load(args.folder, whole=False)
    with usage():
        stored.write_card(Path(args.folder), license=args.license)
    print(f"{Path(args.folder) / 'README.md'} written", file=sys.stderr)

"""Make a space, ready to use and to push, from a file of word vectors.

The file is in one of the usual formats: GloVe text, word2vec text or binary, fastText .vec, each
plain or gzip-compressed.

  hf-dxprivacy convert glove.6B.100d.txt --output glove --limit 50000 --unit-step --license pddl
  hf-dxprivacy privatize reviews.csv --output released.csv --space ./glove --epsilon 6

The folder holds the vectors, the vocabulary, a config.json with digests of both, and a model card
with the distances between the words and what the mechanisms do to them. epsilon is per unit of
distance; --unit-step scales the vectors so that the median distance to the nearest neighbour is 1,
as in the built-in spaces. Without it the words of GloVe are about 5 apart, and an epsilon of 5 or
10 leaves nearly every word as it is.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.output_folder import check_folder, save_whole
from hf_dxprivacy.cli.usage import at_least, usage

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s VECTORS --output FOLDER [options]"
    add = parser.add_argument
    add("vectors", metavar="VECTORS", type=Path, help="the file of word vectors")
    add("--output", required=True, type=Path, metavar="FOLDER", help="the folder to make")
    add("--overwrite", action="store_true", help="replace the space that FOLDER holds")
    add(
        "--limit",
        type=at_least(1),
        metavar="N",
        help="read the first N words only, which are usually the most frequent",
    )
    add(
        "--metric",
        choices=("euclidean", "poincare"),
        default="euclidean",
        help="poincare is for points inside the unit ball (%(default)s)",
    )
    add("--unit-step", action="store_true", help="scale to a median nearest distance of 1")
    add(
        "--license",
        metavar="ID",
        help="licence of the vectors as the Hub names it, such as mit or cc-by-4.0",
    )
    add("--source", metavar="TEXT", help="where the vectors come from, for the card")


def run(args: argparse.Namespace) -> None:
    """Convert a file.

    Raises:
        UsageError: If the folder is in use, or the licence is not one of the Hub's.
        DxPrivacyError: If the file is malformed.
        OSError: If a file can not be read or written.
    """
    check_folder(args.output, args.overwrite)
    # Late, because it takes a while to load, which help should not.
    from hf_dxprivacy.hub.licence import check_licence

    with usage():
        check_licence(args.license)
    space = _read(args)
    save_whole(space, args.output, args.license)
    step = space.neighbour_distances()[1]
    print(
        f"{args.output}: {len(space)} words x {space.dim} dimensions, {space.metric}; median "
        f"distance to the nearest neighbour {step:.4g}",
        file=sys.stderr,
    )


def _read(args: argparse.Namespace) -> "EmbeddingSpace":
    from hf_dxprivacy.spaces import EmbeddingSpace

    space = EmbeddingSpace.from_text_vectors(args.vectors, limit=args.limit)
    given = {"source": args.source, "licence": args.license}
    provenance = space.provenance | {k: value for k, value in given.items() if value}
    space = EmbeddingSpace(space.words, space.vectors, args.metric, provenance=provenance)
    return space.rescale(1.0 / space.neighbour_distances()[1]) if args.unit_step else space

"""The arguments that say which mechanism, over which space."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.usage import usage

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace

# Spelled out, so that help needs not load the mechanisms; a test compares them.
MECHANISMS = ("calibrated", "tem", "laplace", "mahalanobis", "hyperbolic")
OPTIONS = ("lam", "beta", "gamma", "noise", "index", "resample", "resample_neighbours")


def add_mechanism_arguments(add: Callable[..., argparse.Action]) -> None:
    """Declare the mechanism and its options.

    Args:
        add: `add_argument` of a parser or a group.
    """
    add("--mechanism", choices=MECHANISMS, default="calibrated", help="(%(default)s)")
    add("--lam", type=float, metavar="X", help="mahalanobis: 0 is the Euclidean norm, at most 1")
    add("--beta", type=float, metavar="X", help="calibrated, tem: weight of far words")
    add("--gamma", type=float, metavar="X", help="tem: distance from which all words are alike")
    add("--noise", choices=("riemannian", "lebesgue"), help="hyperbolic: law of the noise")
    add(
        "--index",
        metavar="KIND",
        help="laplace, mahalanobis: search by the index that the space was saved with, such as ivf "
        "or hnsw; faster for large vocabularies, and may find another word (flat: exact)",
    )
    add(
        "--resample",
        type=float,
        metavar="C",
        help="laplace, mahalanobis, hyperbolic: go on to the i-th neighbour of the word found with "
        "weight exp(-C*epsilon*i)",
    )
    add("--resample-neighbours", type=int, metavar="K", help="with --resample: i at most (100)")


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the mechanism that were given."""
    return {name: vars(args)[name] for name in OPTIONS if vars(args)[name] is not None}


def load_space(args: argparse.Namespace) -> "EmbeddingSpace":
    """Load the space that was named, with the index that the mechanism needs.

    Raises:
        UsageError: If the mechanism has no use for the index.
        DxPrivacyError: If there is no such space.
    """
    from hf_dxprivacy.mechanisms import required_index
    from hf_dxprivacy.spaces import EmbeddingSpace

    with usage():
        index = required_index(args.mechanism, given_options(args))
    return EmbeddingSpace.from_pretrained(args.space, index=index)

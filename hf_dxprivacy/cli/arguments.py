"""Arguments that several verbs share: numbers, the mechanism, the space, folders of spaces."""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, did_you_mean

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace

PROGRAM = "hf-dxprivacy"

Add = Callable[..., argparse.Action]

# Spelled out, so that help needs not load the mechanisms; a test compares them.
MECHANISMS = (
    "hierarchical",
    "calibrated",
    "tem",
    "laplace",
    "mahalanobis",
    "hyperbolic",
    "krr",
)
OPTIONS: dict[str, dict[str, Any]] = {
    "lam": {
        "type": float,
        "metavar": "X",
        "help": "mahalanobis: 0 is the Euclidean norm, at most 1",
    },
    "beta": {"type": float, "metavar": "X", "help": "calibrated, tem: weight of far words"},
    "gamma": {
        "type": float,
        "metavar": "X",
        "help": "tem: distance from which all words are alike",
    },
    "noise": {"choices": ("riemannian", "lebesgue"), "help": "hyperbolic: law of the noise"},
    "index": {
        "metavar": "KIND",
        "help": "laplace, mahalanobis: search by the index that the space was saved with, such as "
        "ivf or hnsw; faster for large vocabularies, and may find another word (flat: exact)",
    },
    "resample": {
        "type": float,
        "metavar": "C",
        "help": "laplace, mahalanobis, hyperbolic: go on to the i-th neighbour of the word found "
        "with weight exp(-C*epsilon*i)",
    },
    "resample_neighbours": {
        "type": int,
        "metavar": "K",
        "help": "with --resample: i at most (100)",
    },
}

# Names of the literature that no spelling brings near to ours.
_SYNONYMS = {"madlib": "laplace", "exponential": "tem", "rr": "krr", "cluster": "hierarchical"}


class UsageError(Exception):
    """The arguments do not go together, or one is out of range."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors name near matches of options and choices."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message with near matches, and exit with 2."""
        options = [*self._option_string_actions]
        if found := re.search(r"unrecognized arguments: (--[^\s=]+)", message):
            message += did_you_mean(found[1], options)
        elif found := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            synonym = _SYNONYMS.get(found[1].lower(), "")
            message += (
                f"; did you mean {synonym!r}?"
                if synonym in choices
                else did_you_mean(found[1], choices)
            )
        self.print_usage(sys.stderr)
        self.exit(2, f"{PROGRAM}: error: {message}\n")


@contextmanager
def usage() -> Iterator[None]:
    """Report an invalid value as wrong usage, since it came from the arguments."""
    try:
        yield
    except ArtifactError:
        raise
    except (InvalidValueError, InvalidTypeError) as error:
        raise UsageError(str(error)) from error


def positive(text: str) -> float:
    """Read a finite number above zero."""
    return _number(float, text, "a finite number above zero", lambda v: math.isfinite(v) and v > 0)


def share(text: str) -> float:
    """Read a number between 0 and 1, without the ends."""
    return _number(float, text, "a number between 0 and 1", lambda value: 0.0 < value < 1.0)


def at_least(bound: int) -> Callable[[str], int]:
    """Return a function that reads a whole number not below the bound."""

    def whole(text: str) -> int:
        return int(_number(int, text, f"a whole number >= {bound}", lambda value: value >= bound))

    return whole


def column_name(text: str) -> str:
    """Read the name of a column."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected a name in UTF-8") from None
    return text


def _number(
    kind: Callable[[str], float], text: str, expected: str, holds: Callable[[float], bool]
) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not holds(value):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text}")
    return value


def add_debug(parser: argparse.ArgumentParser, **settings: Any) -> None:
    """Declare --debug."""
    about = "show where in the program an error arose"
    parser.add_argument("--debug", action="store_true", help=about, **settings)


def add_space(add: Add) -> None:
    """Declare --space."""
    add(
        "--space",
        default="english",
        metavar="NAME",
        help="a built-in space, a folder that holds one, or a repository on the Hub (%(default)s)",
    )


def add_mechanism(add: Add) -> None:
    """Declare --mechanism and the options of all mechanisms.

    Args:
        add: `add_argument` of a parser or a group.
    """
    add("--mechanism", choices=MECHANISMS, help="required; each has a guarantee of its own")
    for name, settings in OPTIONS.items():
        add(f"--{name.replace('_', '-')}", **settings)


def require_mechanism(args: argparse.Namespace) -> None:
    """Require a mechanism to be named.

    Raises:
        UsageError: If none is.
    """
    if args.mechanism is None:
        raise UsageError(
            "--mechanism is missing: epsilon means another thing for each of them, so there is no "
            f"default; choose one of {', '.join(MECHANISMS)}; hierarchical is recommended for "
            "spaces that have a tree, such as english"
        )


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the mechanism that were given."""
    return {name: vars(args)[name] for name in OPTIONS if vars(args)[name] is not None}


def load_space(args: argparse.Namespace) -> "EmbeddingSpace":
    """Load the space that was named, with the index that the mechanism needs.

    Raises:
        UsageError: If no mechanism is named, or it has no use for the index.
        DxPrivacyError: If there is no such space.
    """
    require_mechanism(args)
    from hf_dxprivacy.mechanisms import required_index
    from hf_dxprivacy.spaces import EmbeddingSpace

    with usage():
        index = required_index(args.mechanism, given_options(args))
    return EmbeddingSpace.from_pretrained(args.space, index=index)


def check_folder(folder: Path, overwrite: bool) -> None:
    """Require that a space can be put into this place.

    Raises:
        UsageError: If there is something else, or a space that may not be replaced.
    """
    from hf_dxprivacy.hub.atomic import current_folder, is_leftover

    if not folder.exists() or (folder.is_dir() and all(map(is_leftover, folder.iterdir()))):
        return
    if not (current_folder(folder) / "config.json").is_file():
        raise UsageError(f"{folder} exists and holds no space; name another folder")
    if not overwrite:
        raise UsageError(f"{folder} holds a space already; name another folder, or --overwrite it")


def save_measured(space: "EmbeddingSpace", folder: Path, license: str | None) -> None:
    """Save a space with the figures of its card; the folder holds the old or the new one.

    Args:
        space: The space.
        folder: Where to; see `check_folder`.
        license: Licence for the card.

    Raises:
        OSError: If it cannot be written; names a path.
    """
    from hf_dxprivacy.report import measure

    try:
        measure(space).save_pretrained(folder, license=license)
    except OSError as error:
        if error.errno and not error.filename:
            raise OSError(error.errno, error.strerror, str(folder)) from error
        raise

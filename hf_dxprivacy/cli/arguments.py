"""Arguments that several verbs share, and a parser that names near matches."""

import argparse
import inspect
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
MECHANISMS = ("hierarchical", "calibrated", "tem", "laplace", "mahalanobis", "hyperbolic", "krr")
# Of other papers, to be compared with.
PEERS = ("santext", "vickrey", "diffractor", "custext", "syntf", "truncated-gumbel")
OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "lam": (float, "X", "mahalanobis: 0 is the Euclidean norm, at most 1"),
    "beta": (float, "X", "calibrated, tem: weight of far words"),
    "gamma": (float, "X", "tem: distance from which all words are alike"),
    "noise": (str, "riemannian|lebesgue", "hyperbolic: law of the noise"),
    "index": (
        *(str, "KIND"),
        "laplace, mahalanobis: search by the index that the space was saved with, such as ivf or "
        "hnsw; faster for large vocabularies, and may find another word (flat: exact)",
    ),
    "resample": (
        *(float, "C"),
        "laplace, mahalanobis, hyperbolic: go on to the i-th neighbour of the word found with "
        "weight exp(-C*epsilon*i)",
    ),
    "resample_neighbours": (int, "K", "with --resample: i at most (100)"),
    "t": (float, "X", "vickrey: 0 is the nearest word, 1 always the second nearest"),
    "lists": (int, "N", "diffractor: number of public lists (5)"),
    "k": (int, "N", "custext: words of a cluster (20); syntf: least number of candidates (5)"),
}

# Names of the literature that no spelling brings near to ours.
_SYNONYMS = {"madlib": "laplace", "exponential": "tem", "rr": "krr", "cluster": "hierarchical"}

# Arguments that must not be left out, and why there is no default.
REQUIRED = {
    "epsilon": "how much privacy to give is your decision, so there is no default; see --help "
    "for what it means",
    "mechanism": "epsilon means another thing for each of them, so there is no default; choose "
    f"one of {', '.join(MECHANISMS)}; hierarchical is recommended for spaces that have a tree, "
    "such as english",
}


class UsageError(Exception):
    """The arguments do not go together, or one is out of range."""


class Parser(argparse.ArgumentParser):
    """A parser whose help is a docstring, and whose errors name near matches.

    Args:
        prog: The program and its verb.
        function: What runs; its docstring is the help.
        **settings: Those of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, function: Callable[..., None], **settings: Any) -> None:
        super().__init__(
            prog,
            description=inspect.cleandoc(function.__doc__ or ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **settings,
        )
        about = "show where in the program an error arose"
        self.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=about)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; a mistaken option is named before one that is missing."""
        found = super().parse_args(args, namespace)
        given = vars(found)
        local = given.get("local_epsilon") is not None
        if local and given["epsilon"] is not None:
            self.error("--local-epsilon finds the epsilon; give one of the two")
        for name, why in REQUIRED.items():
            # Over a pool, which only `privatize` can tell, there is a default.
            if given.get(name, ()) is None and not (local and name == "epsilon"):
                if not (name == "mechanism" and "unit" in given):
                    self.error(f"--{name} is missing: {why}")
        return found

    def error(self, message: str) -> NoReturn:
        """Print usage and message with near matches, and exit with 2."""
        if found := re.search(r"unrecognized arguments: (--[^\s=]+)", message):
            message += did_you_mean(found[1], [*self._option_string_actions])
        elif found := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            synonym = _SYNONYMS.get(found[1].lower(), "")
            near = did_you_mean(found[1], choices)
            message += f"; did you mean {synonym!r}?" if synonym in choices else near
        self.print_usage(sys.stderr)
        self.exit(2, f"{PROGRAM}: error: {message}\n")


def say(message: str) -> None:
    """Print a message on the standard error stream."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)


@contextmanager
def usage() -> Iterator[None]:
    """Report an invalid value as wrong usage, since it came from the arguments."""
    try:
        yield
    except ArtifactError:
        raise
    except (InvalidValueError, InvalidTypeError) as error:
        raise UsageError(str(error)) from error


def number(
    kind: Callable[[str], float], expected: str, holds: Callable[[float], bool]
) -> Callable[[str], Any]:
    """Return a function that reads a number, for which something holds."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text}")
        return value

    return read


positive = number(float, "a finite number above zero", lambda value: 0 < value < math.inf)
share = number(float, "a number between 0 and 1", lambda value: 0 < value < 1)


def at_least(bound: int) -> Callable[[str], Any]:
    """Return a function that reads a whole number not below the bound."""
    return number(int, f"a whole number >= {bound}", lambda value: value >= bound)


def add_space(add: Add) -> None:
    """Declare --space."""
    about = "a built-in space, a folder that holds one, or a repository on the Hub (%(default)s)"
    add("--space", default="english", metavar="NAME", help=about)


def add_local_epsilon(add: Add, **settings: Any) -> None:
    """Declare --local-epsilon."""
    about = (
        "instead of --epsilon: the largest epsilon at which no output is more than e^L times as "
        "likely from any input than from any other (pure local DP)"
    )
    add("--local-epsilon", type=positive, metavar="L", help=about, **settings)


def add_mechanism(add: Add, about: str = "required; each has a guarantee of its own") -> None:
    """Declare --mechanism and the options of all mechanisms."""
    about += ": " + ", ".join(MECHANISMS)
    about += "; to compare with, as their papers have them: " + ", ".join(PEERS)
    add("--mechanism", choices=(*MECHANISMS, *PEERS), metavar="NAME", help=about)
    for name, (kind, metavar, about) in OPTIONS.items():
        add(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help=about)


def word_list(choice: str) -> "str | frozenset[str] | None":
    """Return None for "none", "english" as it is, and else the words of a file.

    Raises:
        UsageError: If there is no such file, or it is no text.
    """
    if choice in ("none", "english"):
        return None if choice == "none" else choice
    from hf_dxprivacy.files.readers import read_words

    try:
        return read_words(Path(choice))
    except (OSError, InvalidValueError) as error:
        reason = f"{choice}: {error.strerror}" if isinstance(error, OSError) else error
        raise UsageError(
            f"expected a list of words to be english, none or a file with one word a line; {reason}"
        ) from error


def local_epsilon(
    mechanism: str, spaces: "list[EmbeddingSpace]", bound: float, options: dict[str, Any]
) -> float:
    """Return the largest epsilon of a bound of --local-epsilon, and say which one it is."""
    from hf_dxprivacy.calibration import epsilon_for_local_bound

    with usage():
        found = min(epsilon_for_local_bound(each, mechanism, bound, **options) for each in spaces)
    say(f"epsilon {found:g} has a local bound of at most {bound:g}")
    return found


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the mechanism that were given."""
    return {name: vars(args)[name] for name in OPTIONS if vars(args)[name] is not None}


def load_space(args: argparse.Namespace) -> "tuple[EmbeddingSpace, dict[str, Any]]":
    """Load the space that was named, with the index that the mechanism needs.

    Returns:
        The space, of a pool that of its sentences; and the options of the mechanism that were
        given.

    Raises:
        UsageError: If the mechanism has no use for the index.
        DxPrivacyError: If there is no such space.
    """
    from hf_dxprivacy.mechanisms import required_index
    from hf_dxprivacy.spaces import EmbeddingSpace

    options = given_options(args)
    with usage():
        index = required_index(args.mechanism, options)
    return EmbeddingSpace.from_pretrained(args.space, index=index), options

"""Arguments that several verbs share, and a parser that names near matches."""

import argparse
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hf_dxprivacy.cli.terminal import PROGRAM, Layout, paint_help, say
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, did_you_mean

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace

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
        "laplace, mahalanobis: search by the index that the space was saved with, such as pq or "
        "ivf; faster for large vocabularies, and may find another word (flat: exact)",
    ),
    "resample": (
        *(float, "C"),
        "laplace, mahalanobis, hyperbolic: go on to the i-th neighbour of the word found with "
        "weight exp(-C*epsilon*i)",
    ),
    "resample_neighbours": (int, "K", "with --resample: i at most (100)"),
}

# Names that other programs have for an option.
_MEANT = dict.fromkeys(("--workers", "--jobs", "--processes", "--threads", "-j"), "num-proc")

# Names of the literature that no spelling brings near to ours.
_SYNONYMS = {"madlib": "laplace", "exponential": "tem", "rr": "krr", "cluster": "hierarchical"}

# The ε at which about one word of three of the space "english" stays; a test measures them.
STARTS = {
    **{"hierarchical": 1.5, "calibrated": 7, "tem": 9},
    **{"laplace": 20, "mahalanobis": 21, "krr": 10},
}


class UsageError(Exception):
    """The arguments do not go together, or one is out of range."""


class Parser(argparse.ArgumentParser):
    """A parser whose help is a docstring, and whose errors name near matches.

    What follows the last example of the docstring comes after the options.

    Args:
        prog: The program and its verb.
        function: What runs; its docstring is the help.
        **settings: Those of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, function: Callable[..., None], **settings: Any) -> None:
        head, _, rest = (function.__doc__ or "").partition("\n")
        lines = [head, *textwrap.dedent(rest).rstrip().splitlines()]
        examples = [at for at, line in enumerate(lines) if line.startswith("  ")]
        end = examples[-1] + 1 if examples else len(lines)
        if sys.version_info >= (3, 14):
            settings["color"] = False  # ours are the same in every version
        super().__init__(
            prog,
            description="\n".join(lines[:end]),
            epilog="\n".join(lines[end:]),
            formatter_class=Layout,
            add_help=False,
            **settings,
        )
        self._positionals.title = "arguments"
        self._common = self.add_argument_group("in every verb")
        self._common.add_argument("-h", "--help", action="help", help="show this help")
        about = "show where in the program an error arose"
        self._common.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=about
        )

    def format_help(self) -> str:
        """Return the help; what all verbs share comes last."""
        self._action_groups.sort(key=lambda group: group is self._common)
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Print the help, in colours on a terminal."""
        stream = file or sys.stdout
        stream.write(paint_help(self.format_help(), stream))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; a mistaken option is named before one that is missing."""
        found = super().parse_args(args, namespace)
        given = vars(found)
        if given.get("local_epsilon") is not None and given["epsilon"] is not None:
            self.error("--local-epsilon finds the epsilon; give one of the two")
        if missing := _missing(given):
            self.error(missing)
        return found

    def error(self, message: str) -> NoReturn:
        """Print usage and message with near matches, and exit with 2."""
        if found := re.search(r"unrecognized arguments: ([^\s=]+)", message):
            message += (
                f"; did you mean '--{_MEANT[found[1]]}'?"
                if f"--{_MEANT.get(found[1])}" in self._option_string_actions
                # Without the dashes, by which all options are alike.
                else did_you_mean(
                    found[1].lstrip("-"), [name.lstrip("-") for name in self._option_string_actions]
                ).replace("'", "'--", 1)
                if found[1].startswith("-")
                else "; repeat an option to give it another value, and quote a value with spaces"
            )
        elif found := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            synonym = _SYNONYMS.get(found[1].lower(), "")
            near = did_you_mean(found[1], choices)
            message += f"; did you mean {synonym!r}?" if synonym in choices else near
        elif "required" in message:
            message += f"; '{self.prog} --help' explains them"
        self.print_usage(sys.stderr)
        say(f"error: {message}")
        self.exit(2)


def _missing(given: dict[str, Any]) -> str | None:
    """Say which of the mechanism and ε is missing, why, and what to begin with."""
    mechanism = given.get("mechanism", "")
    bounded = given.get("epsilon", ()) is not None or given.get("local_epsilon") is not None
    # Over a pool, which only `privatize` can tell, there is a default.
    if mechanism is None and "unit" not in given:
        return without_mechanism("" if bounded else " and --epsilon")
    return None if bounded else _without_epsilon(mechanism, given["space"])


def without_mechanism(more: str = "") -> str:
    """Say that --mechanism is missing, and perhaps more."""
    return (
        f"--mechanism{more} is missing: epsilon means another thing for each mechanism, so there "
        f"is no default; choose one of {', '.join(MECHANISMS)}. Begin with --mechanism "
        "hierarchical --epsilon 1.5; hierarchical is recommended for spaces that have a tree, such "
        "as english"
    )


def _without_epsilon(mechanism: str | None, space: str) -> str:
    named = mechanism or "hierarchical"
    start = STARTS.get(named)
    grid = (start / 1.5, start, start * 1.5) if start else (2, 4, 8, 16, 32)
    of_pool = "; with a pool of sentences begin with --local-epsilon 12" * (mechanism is None)
    begin = (
        f"begin with --epsilon {start:g}: with {named} about one word of three of the space "
        f"english stays{of_pool}. "
        if start
        else ""
    )
    return (
        "--epsilon is missing: how much privacy to give is your decision, so there is no default; "
        f"{begin}To see what some values do: {PROGRAM} calibrate {space} --mechanism {named} "
        f"--epsilon {' '.join(f'{value:.2g}' for value in grid)}"
    )


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
    kind: Callable[[str], float], expected: str, holds: Callable[[float], bool], hint: str = ""
) -> Callable[[str], Any]:
    """Return a function that reads a number, for which something holds."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            comma = "; write a point, as in 1.5" if re.fullmatch(r"\d+,\d+", text) else ""
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text}{comma or hint}")
        return value

    return read


positive = number(float, "a finite number above zero", lambda value: 0 < value < math.inf)
an_epsilon = number(
    float,
    "a finite number above zero",
    lambda value: 0 < value < math.inf,
    hint="; with hierarchical begin with 1.5",
)
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


def add_mechanism(
    parser: argparse.ArgumentParser, add: Add, about: str = "required; each has its own guarantee"
) -> None:
    """Declare --mechanism, and the options of all mechanisms in a group of their own."""
    about += ": " + ", ".join(MECHANISMS)
    add("--mechanism", choices=MECHANISMS, metavar="NAME", help=about)
    add = parser.add_argument_group("of some mechanisms").add_argument
    for name, (kind, metavar, about) in OPTIONS.items():
        add(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help=about)


def check_outputs(
    args: argparse.Namespace, drawn: str, endings: Mapping[str, Sequence[str]]
) -> None:
    """Check the files that --output and the option of a picture name, before anything takes long.

    Raises:
        UsageError: If a name has another ending than those of its option, both are the same, or
            it is a file that any other argument names.
        MissingExtraError: If a picture is asked for and nothing draws it.
    """
    from hf_dxprivacy._runtime import require
    from hf_dxprivacy.files.writers import check_output

    given = {name: vars(args)[name] for name in ("output", drawn) if vars(args).get(name)}
    for name, path in given.items():
        if path.suffix not in endings.get(name, (path.suffix,)):
            known = ", ".join(endings[name])
            raise UsageError(f"{path}: expected a name that ends in {known} (--{name})")
    if len({*given.values()}) < len(given):
        raise UsageError(f"--output and --{drawn} are the same file; name another one")
    others = [value for name, value in vars(args).items() if name not in given]
    for path in filter(Path.exists, given.values()):
        for other in chain.from_iterable(v if isinstance(v, list) else [v] for v in others):
            if isinstance(other, (str, Path)) and exists(other) and path.samefile(other):
                raise UsageError(f"{path} is read, and never overwritten; name another file")
    if drawn in given:
        require("matplotlib", "report")
    with usage():
        for path in given.values():
            check_output(path, args.overwrite)


def word_list(choice: str) -> "str | frozenset[str] | None":
    """Return None for "none", "english" as it is, and else the words of a file.

    Raises:
        UsageError: If there is no such file, or it is no text.
    """
    if choice in ("none", "english"):
        return None if choice == "none" else choice
    from hf_dxprivacy.files.text_rows import read_words

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

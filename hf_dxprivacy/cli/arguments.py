"""Arguments that several verbs share, and a parser that names near matches."""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import cleandoc
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from hf_dxprivacy.cli.terminal import PROGRAM, Layout, paint_help, say, seconds
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from hf_dxprivacy.spaces import EmbeddingSpace

Write = Callable[[BinaryIO], object]
Add = Callable[..., None]

# What help names without loading it; a test compares it with what there is. The mechanisms, and the
# ε at which about one word of three of the space "english" stays:
MECHANISMS = {
    **{"hierarchical": 1.5, "calibrated": 7.0, "tem": 9.0},
    **{"laplace": 20.0, "mahalanobis": 21.0, "hyperbolic": None, "krr": 10.0},
}
# Of other papers, to be compared with.
PEERS = ("santext", "vickrey", "diffractor", "custext", "syntf", "truncated-gumbel")
FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
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

# What others call an option or a mechanism, where no spelling brings it near to ours.
_MEANT = {
    **dict.fromkeys(("--workers", "--jobs", "--processes", "--threads", "-j"), "num-proc"),
    **{"madlib": "laplace", "exponential": "tem", "rr": "krr", "cluster": "hierarchical"},
}

OVERWRITE = "replace the files if they exist"


class UsageError(Exception):
    """The arguments do not go together, or one is out of range."""


def add_to(
    group: Any, name: str, value: Any, about: str, kind: Any = None, **settings: Any
) -> None:
    """Declare an argument in a group.

    A value is what help names it, the values that it may be, or None if the argument has none; its
    kind is what reads it.
    """
    if value is None:
        settings.setdefault("action", "store_true")
    elif isinstance(value, str):
        settings |= {"metavar": value, "type": kind}
    else:
        settings["choices"] = value
    group.add_argument(name, help=about, **settings)


class Parser(argparse.ArgumentParser):
    """A parser whose help is a docstring, and whose errors name near matches.

    What follows the last example of the docstring comes after the options.

    Args:
        prog: The program and its verb.
        function: What runs; its docstring is the help.
        **settings: Those of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, function: Callable[..., object], **settings: Any) -> None:
        lines = cleandoc(function.__doc__ or "").splitlines()
        examples = [at for at, line in enumerate(lines, 1) if line.startswith("  ")]
        end = examples[-1] if examples else len(lines)
        if sys.version_info >= (3, 14):
            settings["color"] = False  # ours are the same in every version
        super().__init__(prog, formatter_class=Layout, add_help=False, **settings)
        self.description, self.epilog = "\n".join(lines[:end]), "\n".join(lines[end:])
        self._positionals.title = "arguments"
        self.add: Add = partial(add_to, self)
        self._common = self.add_argument_group("in every verb")
        self._common.add_argument("-h", "--help", action="help", help="show this help")
        about = "show where in the program an error arose"
        add_to(self._common, "--debug", None, about, default=argparse.SUPPRESS)

    def under(self, heading: str) -> Add:
        """Return what declares options under a heading."""
        return partial(add_to, self.add_argument_group(heading))

    def format_help(self) -> str:
        """Return the help; what all verbs share comes last."""
        self._action_groups.sort(key=lambda group: group is self._common)
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Print the help, in colours on a terminal."""
        stream = file or sys.stdout
        stream.write(paint_help(self.format_help(), stream))

    def error(self, message: str) -> NoReturn:
        """Print usage and message with near matches, and exit with 2."""
        if found := re.search(r"unrecognized arguments: ([^\s=]+)", message):
            given, names = found[1], [name.lstrip("-") for name in self._option_string_actions]
            # Without the dashes, by which all options are alike.
            near = _meant(given, names) or did_you_mean(given.lstrip("-"), names)
            more = "; repeat an option to give it another value, and quote a value with spaces"
            message += near.replace("'", "'--", 1) if given.startswith("-") else more
        elif found := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            message += _meant(found[1], choices) or did_you_mean(found[1], choices)
        elif "required" in message:
            message += f"; '{self.prog} --help' explains them"
        self.print_usage(sys.stderr)
        say(f"error: {message}")
        self.exit(2)


def _meant(given: str, choices: Sequence[str]) -> str:
    meant = _MEANT.get(given.lower())
    return f"; did you mean {meant!r}?" if meant in choices else ""


def require_epsilon(args: argparse.Namespace, *, over_pool: bool = False) -> None:
    """Require epsilon, and a mechanism, both of which have no default.

    Raises:
        UsageError: Says why, and what to begin with.
    """
    local = vars(args).get("local_epsilon")
    if local is not None and args.epsilon is not None:
        raise UsageError("--local-epsilon finds the epsilon; give one of the two")
    bounded = local is not None or args.epsilon is not None
    # Over a pool, which only `privatize` can tell, there is a default.
    if args.mechanism is None and not over_pool:
        raise UsageError(without_mechanism("" if bounded else " and --epsilon"))
    if not bounded:
        raise UsageError(_without_epsilon(args.mechanism, args.space))


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
    start = MECHANISMS[named]
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


natural, whole = at_least(0), at_least(1)


def add_space(add: Add) -> None:
    """Declare --space."""
    about = "a built-in space, a folder that holds one, or a repository on the Hub (%(default)s)"
    add("--space", "NAME", about, default="english")


def add_local_epsilon(add: Add, **settings: Any) -> None:
    """Declare --local-epsilon."""
    about = (
        "instead of --epsilon: the largest epsilon at which no output is more than e^L times as "
        "likely from any input than from any other (pure local DP)"
    )
    add("--local-epsilon", "L", about, positive, **settings)


def add_mechanism(
    parser: Parser, add: Add, about: str = "required; each has its own guarantee"
) -> None:
    """Declare --mechanism, and the options of all mechanisms under a heading of their own."""
    about += ": " + ", ".join(MECHANISMS)
    add("--mechanism", "NAME", about, choices=MECHANISMS)
    add = parser.under("of some mechanisms")
    for name, (kind, metavar, about) in OPTIONS.items():
        add(f"--{name.replace('_', '-')}", metavar, about, kind)


def add_outputs(add: Add, table: str, drawn: str, picture: str) -> None:
    """Declare --output, what draws a picture, and --overwrite."""
    add("--output", "FILE", table, Path)
    add(drawn, "FILE", picture, Path)
    add("--overwrite", None, OVERWRITE)


def check_outputs(
    args: argparse.Namespace, drawn: str, endings: Mapping[str, Sequence[str]]
) -> None:
    """Check the files that --output and the option of a picture name, before anything takes long.

    Raises:
        UsageError: If a name has another ending than those of its option, or a file cannot be put
            there.
        MissingExtraError: If a picture is asked for and nothing draws it.
    """
    from hf_dxprivacy._runtime import require

    given = {name: vars(args)[name] for name in ("output", drawn) if vars(args).get(name)}
    for name, path in given.items():
        if path.suffix not in endings.get(name, (path.suffix,)):
            known = ", ".join(endings[name])
            raise UsageError(f"{path}: expected a name that ends in {known} (--{name})")
    if drawn in given:
        require("matplotlib", "report")
    with usage():
        check_places(args, given)


def check_places(args: argparse.Namespace, places: Mapping[str, Path]) -> None:
    """Check that files can be put in the places that some arguments name.

    Raises:
        UsageError: If two are the same, or one is a file that another argument names.
        InvalidValueError: If there is no such folder, or the file exists and may not.
    """
    from hf_dxprivacy.files.writers import check_output

    if len({path.resolve() for path in places.values()}) < len(places):
        raise UsageError(f"--{' and --'.join(places)} are the same file; name another one")
    others = [value for name, value in vars(args).items() if name not in places]
    others = [each for value in others for each in (value if type(value) is list else [value])]
    named = [other for other in others if isinstance(other, (str, Path)) and isfile(other)]
    for path in places.values():
        if path.exists() and any(map(path.samefile, named)):
            raise UsageError(f"{path} is read, and never overwritten; name another file")
        check_output(path, args.overwrite)


def put(args: argparse.Namespace, path: Path | None, content: str | Write) -> None:
    """Write a text to a file that was asked for, or what a function writes."""
    from hf_dxprivacy.files.writers import replacing

    if path:
        with replacing(path, overwrite=args.overwrite) as file:
            file.write(content.encode()) if isinstance(content, str) else content(file)


def put_table(frame: "pd.DataFrame", ending: str) -> Write:
    """Return what writes a table in the format of an ending."""
    writers: dict[str, Write] = {
        ".csv": partial(frame.to_csv, index=False),
        ".json": partial(frame.to_json, orient="records", force_ascii=False),
        ".parquet": frame.to_parquet,
    }
    return writers[ending]


def say_done(args: argparse.Namespace, what: str, drawn: str) -> None:
    """Say what was done, in how long, and which files were written."""
    files = ", ".join(str(vars(args)[name]) for name in ("output", drawn) if vars(args).get(name))
    say(f"{what} in {seconds()}{f'; written: {files}' * bool(files)}")


def read_input(args: argparse.Namespace, name: str, columns: Sequence[str]) -> list[list[Any]]:
    """Return the cells of columns of a file, or of a split of a dataset."""
    from hf_dxprivacy.files.readers import read_columns
    from hf_dxprivacy.files.source import find_input

    with usage():
        source = find_input(name, split=None if Path(name).exists() else args.split)
    return read_columns(source, columns)


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

"""What attacks read, and where their results go."""

import argparse
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.usage import UsageError, positive, usage

if TYPE_CHECKING:
    import numpy as np

    from hf_dxprivacy.audit import Subject
    from hf_dxprivacy.results import Results

PICTURES = (".png", ".svg", ".pdf")
# How `datasets` reads the formats of the command line.
LOADERS: dict[str, tuple[str, dict[str, Any]]] = {
    "csv": ("csv", {"keep_default_na": False}),
    "tsv": ("csv", {"keep_default_na": False, "sep": "\t"}),
    "jsonl": ("json", {}),
    "parquet": ("parquet", {}),
    "txt": ("text", {}),
}


def add_curve_arguments(add: Callable[..., argparse.Action], named: bool = True) -> None:
    """Declare the data and the outputs.

    Args:
        add: `add_argument` of the parser.
        named: Whether what privatized the data only has to be named, and may be left out.
    """
    add("original", metavar="ORIGINAL", help="a file, or a dataset on the Hub")
    add("released", metavar="RELEASED", nargs="*" if named else "+", help="what was made of it")
    add("--text-column", default="text", metavar="NAME", help="(%(default)s)")
    add("--released-column", metavar="NAME", help="text column of RELEASED, if it is another one")
    add("--split", default="train", help="split of datasets on the Hub (%(default)s)")
    add(
        "--epsilon",
        type=positive,
        nargs="+",
        required=not named,
        metavar="E",
        help="epsilon of each RELEASED, in the same order",
    )
    if named:
        add("--mechanism", default="released", metavar="NAME", help="for the table (%(default)s)")
    add("--dataset", metavar="NAME", help="for the table (the name of ORIGINAL)")
    add("--output", type=Path, metavar="FILE", help="write the results as JSON lines")
    add("--plot", type=Path, metavar="FILE", help="draw them against epsilon: .png, .svg or .pdf")
    add("--overwrite", action="store_true", help="replace the files if they exist")


def check_arguments(args: argparse.Namespace) -> None:
    """Require what can be known to be wrong before the work begins.

    Raises:
        UsageError: If an output is in the way or of no known format, or an ε is missing.
    """
    from hf_dxprivacy.files import check_output

    if args.epsilon and len(args.epsilon) != len(args.released):
        raise UsageError(
            f"expected an --epsilon for each RELEASED, got {len(args.epsilon)} for "
            f"{len(args.released)}"
        )
    if args.plot:
        from hf_dxprivacy._optional import require

        if args.plot.suffix not in PICTURES:
            raise UsageError(f"{args.plot}: expected a name that ends in {', '.join(PICTURES)}")
        require("matplotlib", "report")
    for path in filter(None, (args.output, args.plot)):
        with usage():
            check_output(path, args.overwrite)


def read(args: argparse.Namespace, name: str, *columns: str) -> list[list[Any]]:
    """Read columns of a file or a dataset.

    Raises:
        UsageError: If the name tells no format.
        DxPrivacyError: If it can not be read or lacks a column.
    """
    from datasets import load_dataset

    from hf_dxprivacy import files
    from hf_dxprivacy.errors import InvalidValueError

    with usage():
        hub = files.is_dataset(name, None)
        kind = None if hub else files.describe_file(name, None).kind
    try:
        # Streamed, for otherwise a copy of the text would stay in the cache.
        if kind is None:
            rows = load_dataset(name, split=args.split, streaming=True)
        else:
            loader, options = LOADERS[kind]
            rows = load_dataset(loader, data_files=name, split="train", streaming=True, **options)
        table = list(rows)
    except Exception as error:
        # The text of the error may quote the data.
        raise InvalidValueError(
            f"{name}: can not be read as {kind or 'a dataset'} ({type(error).__name__})"
        ) from None
    for column in columns:
        if not table or column not in table[0]:
            found = ", ".join(map(repr, table[0] if table else ())) or "none"
            raise InvalidValueError(f"{name}: there is no column {column!r}; there are: {found}")
    return [[row[column] for row in table] for column in columns]


def read_texts(args: argparse.Namespace, name: str, column: str) -> list[str]:
    """Read a column of texts, in which a missing one is empty.

    Raises:
        InvalidTypeError: If it holds something else.
    """
    from hf_dxprivacy.errors import InvalidTypeError

    cells = [cell or "" for cell in read(args, name, column)[0]]
    if not all(isinstance(cell, str) for cell in cells):
        raise InvalidTypeError(f"{name}: expected texts in column {column!r}")
    return cells


def releases(args: argparse.Namespace) -> list[tuple[str, float | None]]:
    """Return what was released, each with its ε if that is known."""
    return list(zip(args.released, args.epsilon or [None] * len(args.released), strict=True))


def read_released(args: argparse.Namespace, name: str) -> list[str]:
    """Read the texts of a release."""
    return read_texts(args, name, args.released_column or args.text_column)


def subject(args: argparse.Namespace, mechanism: str, epsilon: float | None) -> "Subject":
    """Return what the results say was attacked."""
    from hf_dxprivacy.audit import Subject

    dataset = args.dataset or Path(args.original).name.partition(".")[0]
    return Subject(dataset, mechanism, epsilon)


def attackers(args: argparse.Namespace) -> "Callable[[], np.random.Generator]":
    """Return a source of equal generators: what is compared shall differ in nothing else."""
    from hf_dxprivacy.randomness import keyed_generator

    seed = secrets.randbits(64) if args.seed is None else args.seed
    return lambda: keyed_generator(seed, "audit")


def show(args: argparse.Namespace, results: "Results", metric: str) -> None:
    """Print results, and write what was asked for.

    Args:
        args: The arguments.
        results: What was found.
        metric: What to draw.
    """
    from hf_dxprivacy.files import replacing

    print(results.to_markdown())
    if args.output:
        with replacing(args.output, overwrite=args.overwrite) as file:
            file.write(results.to_json_lines().encode())
    if args.plot:
        from hf_dxprivacy.report import draw_results

        figure = draw_results(results, metric).figure
        with replacing(args.plot, overwrite=args.overwrite) as file:
            figure.savefig(file, format=args.plot.suffix[1:], dpi=150)

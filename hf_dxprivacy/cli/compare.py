"""The verb compare: what each mechanism costs and hides on a file of texts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import (
    MECHANISMS,
    PEERS,
    UsageError,
    add_space,
    an_epsilon,
    at_least,
    check_outputs,
    usage,
)
from hf_dxprivacy.cli.terminal import PROGRAM, say, seconds

if TYPE_CHECKING:
    from datasets import Dataset

TABLES = (".md", ".json", ".csv", ".parquet")


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FILE --text-column NAME [--label-column NAME] [options]"
    about = "a file (csv, tsv, jsonl, txt, parquet), or a Hub dataset"
    parser.add_argument("input", metavar="FILE", help=about)
    add = parser.add_argument_group("data").add_argument
    add("--text-column", default="text", metavar="NAME", help="(%(default)s)")
    add("--label-column", metavar="NAME", help="classes that a classifier is to learn")
    add("--user-column", metavar="NAME", help="who wrote each text, for the author attack")
    add("--split", default="train", help="split of a dataset on the Hub (%(default)s)")
    add("--output", type=Path, metavar="FILE", help="the result as .md, .json, .csv or .parquet")
    add("--report", type=Path, metavar="FILE", help="a page with a picture, one HTML file")
    add("--overwrite", action="store_true", help="replace the files if they exist")
    add = parser.add_argument_group("what to compare").add_argument
    add_space(add)
    add(
        "--mechanism",
        action="append",
        default=[],
        choices=(*MECHANISMS, *PEERS),
        metavar="NAME",
        help="repeat it for several (those that suit the space); of other papers: "
        + ", ".join(PEERS),
    )
    about = "of all mechanisms (by default where about 10, 30, 50 and 80 %% of the words stay)"
    add("--epsilon", type=an_epsilon, nargs="+", default=(), metavar="E", help=about)
    about = "a pool of sentences; repeat it for several, or say none (the built-in one)"
    add("--pool", action="append", metavar="NAME", help=about)
    add = parser.add_argument_group("how it runs").add_argument
    about = "classifier: vectors (averaged), tfidf, or a model to fine-tune (vectors)"
    add("--model", metavar="NAME", help=about)
    add("--encoder", metavar="NAME", help="a model of transformers, for the similarity of texts")
    add("--sample", type=at_least(1), metavar="N", help="rows looked at (5000; 1000 with --quick)")
    add("--quick", action="store_true", help="look at less; about a minute for 1,000 rows")
    add("--releases", type=at_least(1), default=1, metavar="N", help="of each (%(default)s)")
    add("--seed", type=at_least(0), metavar="N", help="makes sample, noise and attackers the same")
    about = "keep what is done there, and go on from there; it is as private as the texts"
    add("--resume", metavar="FOLDER", help=about)


def compare(args: argparse.Namespace) -> None:
    """Compare mechanisms on your own texts: what each keeps, what it hides, what of it is true.

      hf-dxprivacy compare reviews.csv --text-column text --label-column stars --quick
      hf-dxprivacy compare mail.csv --label-column topic --user-column sender --report report.html

    Each mechanism releases the texts at several epsilons. A classifier is trained on each release,
    attackers are set on it, and the claimed guarantee is verified. The first line says which
    mechanism keeps most where the attack succeeds as often. What is printed and written is computed
    from your texts: it is for you, not for publication. With --resume nothing is lost by Ctrl-C.
    """
    from hf_dxprivacy.evaluation import compare as compared
    from hf_dxprivacy.files.writers import replacing

    check_outputs(args, "report", {"output": TABLES})
    pools = None if args.pool is None else [name for name in args.pool if name != "none"]
    columns = ("text_column", "label_column", "user_column")
    options = ("space", "model", "encoder", "sample", "quick", "releases", "resume", "seed")
    found = compared(
        _read(args),
        mechanisms=args.mechanism or None,
        epsilon=args.epsilon or None,
        pools=pools,
        **{name: getattr(args, name) for name in (*columns, *options)},
    )
    print(found)
    if args.output:
        with replacing(args.output, overwrite=args.overwrite) as file:
            _write(found, args.output.suffix, file)
    if args.report:
        with replacing(args.report, overwrite=args.overwrite) as file:
            file.write(found.report().encode())
    files = ", ".join(str(path) for path in (args.output, args.report) if path)
    say(f"{len(found.rows) - 1} releases in {seconds()}{f'; written: {files}' * bool(files)}")
    look = f"{PROGRAM} calibrate {args.space} --mechanism NAME --epsilon E"
    say(f"next, look at some epsilons more closely: {look}", more=True)


def _write(found: Any, ending: str, file: Any) -> None:
    """Write the result in a format."""
    if ending in (".md", ".json"):
        file.write((found.to_markdown() if ending == ".md" else found.to_json()).encode())
    elif ending == ".csv":
        found.to_dataset().to_pandas().to_csv(file, index=False)
    else:
        found.to_dataset().to_pandas().to_parquet(file)


# What is missing, unless it is a string.
_MISSING = ("None", "nan", "NaN")


def _read(args: argparse.Namespace) -> "Dataset":
    """Read the columns that are named; labels and users become texts, but for missing ones."""
    from datasets import Dataset

    from hf_dxprivacy.files.readers import read_columns
    from hf_dxprivacy.files.source import find_input

    with usage():
        source = find_input(args.input, split=None if Path(args.input).exists() else args.split)
    named = (args.text_column, args.label_column, args.user_column)
    names = tuple(dict.fromkeys(filter(None, named)))
    cells = dict(zip(names, read_columns(source, names), strict=True))
    for name in names[1:]:
        # A file of JSON has its NaN as it was written.
        given = ((cell, str(cell)) for cell in cells[name])
        cells[name] = [s if isinstance(c, str) or s not in _MISSING else None for c, s in given]
    if not all(cell is None or isinstance(cell, str) for cell in cells[args.text_column]):
        raise UsageError(f"{args.input}: expected texts in column {args.text_column!r}")
    return Dataset.from_dict(cells)

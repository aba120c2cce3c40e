"""The verb compare: what each mechanism costs and hides on a file of texts."""

import argparse
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import (
    MECHANISMS,
    PEERS,
    Parser,
    UsageError,
    Write,
    add_outputs,
    add_space,
    an_epsilon,
    check_outputs,
    natural,
    put,
    put_table,
    read_input,
    say_done,
    whole,
)
from hf_dxprivacy.cli.terminal import PROGRAM, say

if TYPE_CHECKING:
    from datasets import Dataset

TABLES = (".md", ".json", ".csv", ".parquet")


def compare_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FILE --text-column NAME [--label-column NAME] [options]"
    parser.add("input", "FILE", "a file (csv, tsv, jsonl, txt, parquet), or a Hub dataset")
    add = parser.under("data")
    add("--text-column", "NAME", "(%(default)s)", default="text")
    add("--label-column", "NAME", "classes that a classifier is to learn")
    add("--user-column", "NAME", "who wrote each text, for the author attack")
    add("--split", "NAME", "split of a dataset on the Hub (%(default)s)", default="train")
    about = "the result as .md, .json, .csv or .parquet"
    add_outputs(add, about, "--report", "a page with a picture, one HTML file")
    add = parser.under("what to compare")
    add_space(add)
    about = "repeat it for several (those that suit the space); of other papers: "
    names = (*MECHANISMS, *PEERS)
    add("--mechanism", "NAME", about + ", ".join(PEERS), action="append", choices=names)
    about = "of all mechanisms (by default where about 10, 30, 50 and 80 %% of the words stay)"
    add("--epsilon", "E", about, an_epsilon, nargs="+", default=())
    about = "a pool of sentences; repeat it for several, or say none (the built-in one)"
    add("--pool", "NAME", about, action="append")
    add = parser.under("how it runs")
    about = "classifier: vectors (averaged), tfidf, or a model to fine-tune (vectors)"
    add("--model", "NAME", about)
    add("--encoder", "NAME", "a model of transformers, for the similarity of texts")
    add("--sample", "N", "rows looked at (5000; 1000 with --quick)", whole)
    add("--quick", None, "look at less; about a minute for 1,000 rows")
    add("--releases", "N", "of each (%(default)s)", whole, default=1)
    add("--seed", "N", "makes sample, noise and attackers the same", natural)
    about = "keep what is done there, and go on from there; it is as private as the texts"
    add("--resume", "FOLDER", about)


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

    check_outputs(args, "report", {"output": TABLES})
    pools = None if args.pool is None else [name for name in args.pool if name != "none"]
    columns = ("text_column", "label_column", "user_column")
    options = ("space", "model", "encoder", "sample", "quick", "releases", "resume", "seed")
    found = compared(
        _read(args),
        mechanisms=args.mechanism,
        epsilon=args.epsilon or None,
        pools=pools,
        **{name: getattr(args, name) for name in (*columns, *options)},
    )
    print(found)
    if args.output:
        put(args, args.output, _in_format(found, args.output.suffix))
    put(args, args.report, found.report() if args.report else "")
    say_done(args, f"{len(found.rows) - 1} releases", "report")
    look = f"{PROGRAM} calibrate {args.space} --mechanism NAME --epsilon E"
    say(f"next, look at some epsilons more closely: {look}", more=True)


def _in_format(found: Any, ending: str) -> str | Write:
    """Return the result in a format."""
    if ending in (".md", ".json"):
        text: str = found.to_markdown() if ending == ".md" else found.to_json()
        return text
    return put_table(found.to_dataset().to_pandas(), ending)


# What is missing, unless it is a string.
_MISSING = ("None", "nan", "NaN")


def _read(args: argparse.Namespace) -> "Dataset":
    """Read the columns that are named; labels and users become texts, but for missing ones."""
    from datasets import Dataset

    named = (args.text_column, args.label_column, args.user_column)
    names = tuple(dict.fromkeys(filter(None, named)))
    cells = dict(zip(names, read_input(args, args.input, names), strict=True))
    for name in names[1:]:
        # A file of JSON has its NaN as it was written.
        given = ((cell, str(cell)) for cell in cells[name])
        cells[name] = [s if isinstance(c, str) or s not in _MISSING else None for c, s in given]
    if not all(cell is None or isinstance(cell, str) for cell in cells[args.text_column]):
        raise UsageError(f"{args.input}: expected texts in column {args.text_column!r}")
    return Dataset.from_dict(cells)

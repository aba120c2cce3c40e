"""Replace the words of a text dataset by other words, with a guarantee.

Every word of the text columns is drawn anew from the vocabulary of a space: words that are near to
it are likely, words that are far are not. All else in the file stays as it is.

  hf-dxprivacy privatize reviews.csv --output released.csv --text-column review --epsilon 5

epsilon says how much may show: for any two words at a distance d in the space, no output is more
than e^(epsilon*d) times as likely for the one as for the other. Smaller hides more and goes farther
from the original. Distances in the built-in spaces are scaled so that 1 is the median distance to
the nearest neighbour. The bounds of the words of a text add up. The number of words, the spaces and
the punctuation are released as they are. The guarantee is printed at the end; read it.

Formats: csv, tsv, jsonl and txt (one text a line), plain or .gz, and parquet, by the ending of the
file name. Files may be larger than the memory. The output appears when it is complete.
"""

import argparse
import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hf_dxprivacy.cli.mechanism import add_mechanism_arguments, given_options, load_space
from hf_dxprivacy.cli.usage import UsageError, at_least, positive, usage

if TYPE_CHECKING:
    from hf_dxprivacy import files
    from hf_dxprivacy.privatizer import DxPrivatizer

# Spelled out, so that help needs not load the formats; a test compares them.
FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")

NO_EPSILON = (
    "--epsilon is missing: how much privacy to give is your decision, so there is no default; see "
    "--help for what it means"
)

SEEDED = (
    "warning: the noise comes from --seed, which must stay secret: whoever knows it can undo the "
    "noise. Your shell may keep it in its history"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s INPUT --output OUT --epsilon E [options]"
    _add_data_arguments(parser)
    _add_privacy_arguments(parser)
    group = parser.add_argument_group("how it runs")
    group.add_argument(
        "--batch-size",
        type=at_least(1),
        default=1000,
        metavar="N",
        help="rows at once (%(default)s)",
    )
    group.add_argument(
        "--num-proc", type=at_least(1), default=1, metavar="N", help="processes (%(default)s)"
    )
    group.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="where to search and compare words: cpu, or cuda or cuda:1 for a GPU, which needs "
        "torch (%(default)s)",
    )


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", metavar="INPUT", help="a file, - for standard input, or a dataset on the Hub"
    )
    group = parser.add_argument_group("data")
    add = group.add_argument
    add(
        "--output",
        required=True,
        metavar="OUT",
        help="the file to write, in the format of its ending, else in that of the input; - writes "
        "to standard output as it goes",
    )
    add("--overwrite", action="store_true", help="replace OUT and the report if they exist")
    add(
        "--text-column",
        action="append",
        metavar="NAME",
        help="column that holds the text (text); repeat it for several",
    )
    add(
        "--output-column",
        action="append",
        metavar="NAME",
        help="column for the result, as many as text columns; by default the text columns are "
        "overwritten, otherwise THE ORIGINAL TEXT STAYS IN THE OUTPUT",
    )
    add("--format", choices=FORMATS, help="format of INPUT, if its name does not tell")
    add(
        "--delimiter", metavar="C", help="what separates the fields of csv or tsv, if it is another"
    )
    add("--no-quotes", action="store_true", help="a quote in csv or tsv is a letter like any other")
    add("--split", help="split of a dataset on the Hub (train)")
    add("--subset", metavar="NAME", help="configuration of a dataset on the Hub")
    add(
        "--report",
        nargs="?",
        const="",
        metavar="PATH",
        help="write the guarantee, all options and counts of words as JSON (OUT.report.json); the "
        "counts are for the owner of the text only",
    )


def _add_privacy_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("privacy").add_argument
    add("--epsilon", type=positive, metavar="E", help="required, above zero; see above")
    add(
        "--space",
        default="wordnet-gloss",
        metavar="NAME",
        help="a built-in space, a folder that holds one, or a repository on the Hub (%(default)s)",
    )
    add(
        "--stopwords",
        default="none",
        metavar="english|none|FILE",
        help="words that are released as they are; a file has one word a line (%(default)s)",
    )
    add(
        "--oov",
        choices=("centroid", "drop", "keep"),
        default="centroid",
        help="words out of vocabulary: replaced, removed, or RELEASED UNCHANGED (%(default)s)",
    )
    add(
        "--case",
        choices=("lower", "preserve"),
        default="lower",
        help="letter case: that of the vocabulary, or that of the original, which shows it "
        "(%(default)s)",
    )
    add(
        "--seed",
        type=at_least(0),
        metavar="N",
        help="make the result reproducible, for experiments; whoever knows the seed can undo the "
        "noise, so it must stay secret",
    )
    add_mechanism_arguments(add)


def run(args: argparse.Namespace) -> None:
    """Privatize a file.

    Raises:
        UsageError: If the arguments do not go together.
        DxPrivacyError: If the input is damaged or lacks a column, or there is no such space.
        OSError: If a file can not be read or written.
    """
    if args.epsilon is None:
        raise UsageError(NO_EPSILON)
    # Late, because they take a while to load, which help should not.
    from hf_dxprivacy import files, release

    source = _source(args)
    target = _target(args, source)
    report_path = _report_path(args, source)
    columns = files.Columns(
        tuple(args.text_column or ("text",)),
        tuple(args.output_column or args.text_column or ("text",)),
    )
    with files.open_reader(source, columns) as reader:
        privatizer = _privatizer(args)
        guarantee = str(privatizer.guarantee)
        _warn(args, columns, privatizer.mechanism.caution)
        with _output(args) as file:
            dialect = files.dialect_of(target, quoted=not args.no_quotes)
            with files.open_sink(reader, source.kind, target, file, dialect) as sink:
                outcome = release.privatize_rows(
                    privatizer, reader, sink, batch_size=args.batch_size, num_proc=args.num_proc
                )
    if report_path:
        content = json.dumps(release.report(privatizer, outcome), indent=2, ensure_ascii=False)
        with files.replacing(report_path, overwrite=args.overwrite) as file:
            file.write(f"{content}\n".encode())
    _say(f"{outcome.rows} rows written to {args.output}")
    print(guarantee, file=sys.stderr)


def _source(args: argparse.Namespace) -> "files.Input":
    from hf_dxprivacy import files

    dataset = files.is_dataset(args.input, args.format)
    with usage():
        if dataset:
            return files.Input(args.input, "hub", subset=args.subset, split=args.split or "train")
        if args.subset or args.split:
            raise UsageError(f"--split and --subset are for the Hub, but {args.input} is a file")
        return files.describe_file(
            args.input, args.format, quoted=not args.no_quotes, delimiter=args.delimiter
        )


def _target(args: argparse.Namespace, source: "files.Input") -> str:
    """Return the format to write, having checked that it can be written there."""
    from hf_dxprivacy import files

    target = files.format_of(args.output)
    if target is None and source.kind == "hub":
        raise UsageError(f"the ending of {args.output!r} does not tell the format; .jsonl would do")
    target = target or source.kind
    with usage():
        files.check_ending(args.output)
        files.check_conversion(source.kind, target)
    if target == "parquet" and (args.output == files.STANDARD or files.is_packed(args.output)):
        raise UsageError("parquet is written to a file, and is compressed by itself")
    if args.output != files.STANDARD:
        _check_place(args, source, Path(args.output))
    return target


def _report_path(args: argparse.Namespace, source: "files.Input") -> Path | None:
    from hf_dxprivacy import files

    if args.report is None:
        return None
    if not args.report and args.output == files.STANDARD:
        raise UsageError("--report needs a path when the output goes to standard output")
    path = Path(args.report or f"{args.output}.report.json")
    if path.resolve() == Path(args.output).resolve():
        raise UsageError("the report and the output are the same file; name another one")
    _check_place(args, source, path)
    return path


def _check_place(args: argparse.Namespace, source: "files.Input", path: Path) -> None:
    from hf_dxprivacy import files

    if source.path and path.exists() and path.samefile(source.path):
        raise UsageError(f"{path} is the input, which is never overwritten; name another file")
    files.check_output(path, args.overwrite)


def _privatizer(args: argparse.Namespace) -> "DxPrivatizer":
    from hf_dxprivacy.privatizer import DxPrivatizer

    space = load_space(args)
    stopwords = _stopwords(args.stopwords)
    with usage():
        return DxPrivatizer(
            space,
            args.mechanism,
            args.epsilon,
            text_column=args.text_column or "text",
            output_column=args.output_column,
            stopwords=stopwords,
            oov=args.oov,
            case=args.case,
            seed=args.seed,
            device=args.device,
            **given_options(args),
        )


def _stopwords(choice: str) -> "str | frozenset[str] | None":
    from hf_dxprivacy import files

    if choice in ("none", "english"):
        return None if choice == "none" else choice
    if not Path(choice).exists():
        raise UsageError(
            f"expected --stopwords to be english, none or a file with one word a line; there is no "
            f"file {choice}"
        )
    return files.read_words(Path(choice))


def _warn(args: argparse.Namespace, columns: "files.Columns", caution: str | None) -> None:
    if caution:
        _say(f"warning: {caution}")
    if args.seed is not None:
        _say(SEEDED)
    for name in sorted(set(columns.text) - set(columns.output)):
        _say(f"warning: column {name!r} of the output still holds the original text")


def _output(args: argparse.Namespace) -> "AbstractContextManager[BinaryIO]":
    from hf_dxprivacy import files

    if args.output == files.STANDARD:
        return files.standard_output()
    return files.replacing(
        Path(args.output), overwrite=args.overwrite, packed=files.is_packed(args.output)
    )


def _say(message: str) -> None:
    print(f"hf-dxprivacy: {message}", file=sys.stderr)

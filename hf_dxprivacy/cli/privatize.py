"""The verb privatize: a text dataset becomes another one, with a guarantee."""

import argparse
import json
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hf_dxprivacy.cli.arguments import (
    UsageError,
    add_mechanism,
    add_space,
    at_least,
    column_name,
    given_options,
    load_space,
    positive,
    require_mechanism,
    usage,
)

if TYPE_CHECKING:
    from hf_dxprivacy.files import inputs, job
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

# Spelled out, so that help needs not load the formats; a test compares them.
FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")

NO_EPSILON = (
    "--epsilon is missing: how much privacy to give is your decision, so there is no default; see "
    "--help for what it means"
)

SEEDED = (
    "warning: the noise comes from --seed, which must stay secret: it undoes the noise. "
    "Your shell may keep it in its history"
)


# Above this share of unknown words a release has hardly anything to do with the text.
MANY_UNKNOWN = 0.3
UNKNOWN = (
    "warning: {:.0%} of the words are not in the vocabulary of the space, and words that are not "
    "come out as arbitrary ones. Is this English? If not, choose a --space for its language"
)


def privatize_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s INPUT --output OUT --mechanism NAME --epsilon E [options]"
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
        type=column_name,
        metavar="NAME",
        help="column that holds the text (text); repeat it for several",
    )
    add(
        "--output-column",
        action="append",
        type=column_name,
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
    add_space(add)
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
        help="make the result reproducible, for experiments; the seed undoes the noise, so "
        "it must stay secret",
    )
    add_mechanism(add)


def privatize(args: argparse.Namespace) -> None:
    r"""Replace the words of a text dataset by other words, with a guarantee.

    Every word of the text columns is drawn anew from the vocabulary of a space: words that are near
    to it are likely, words that are far are not. All else in the file stays as it is.

      hf-dxprivacy privatize reviews.csv --output released.csv --text-column review \
          --mechanism hierarchical --epsilon 1.5

    epsilon says how much may show: for any two words at a distance d in the space, no output is
    more than e^(epsilon*d) times as likely for the one as for the other. Smaller hides more and
    goes farther from the original. Distances in the built-in spaces are scaled so that 1 is the
    median distance to the nearest neighbour. The bounds of the words of a text add up. The number
    of words, the spaces and the punctuation are released as they are. The guarantee is printed at
    the end; read it.

    Formats: csv, tsv, jsonl and txt (one text a line), plain or .gz, and parquet, by the ending of
    the file name. Files may be larger than the memory. The output appears when it is complete.

    Raises:
        UsageError: If the arguments do not go together.
        DxPrivacyError: If the input is damaged or lacks a column, or there is no such space.
        OSError: If a file cannot be read or written.
    """
    if args.epsilon is None:
        raise UsageError(NO_EPSILON)
    require_mechanism(args)
    _require_open_streams(args)
    from hf_dxprivacy.files import inputs, job, readers, writers

    with usage():
        source = inputs.find_input(
            args.input,
            args.format,
            not args.no_quotes,
            args.delimiter,
            args.subset,
            args.split,
        )
    target = _target(args, source)
    report_path = _report_path(args, source)
    columns = _columns(args, source)
    with readers.open_reader(source, columns) as reader:
        privatizer = _privatizer(args, columns)
        guarantee = str(privatizer.guarantee)
        _warn(args, columns, privatizer.mechanism.caution)
        schema = job.released_schema(privatizer, reader.schema)
        with (
            _output(args) as file,
            writers.open_writer(
                file,
                target,
                schema,
                reader,
                not args.no_quotes,
                args.delimiter if target == source.kind else None,
            ) as write,
        ):
            outcome = job.privatize_rows(
                privatizer, reader, write, batch_size=args.batch_size, num_proc=args.num_proc
            )
    if report_path:
        report = job.run_report(privatizer, outcome)
        with writers.replacing(report_path, overwrite=args.overwrite) as file:
            file.write(f"{json.dumps(report, indent=2, ensure_ascii=False)}\n".encode())
    _summarize(args, outcome)
    print(guarantee, file=sys.stderr)


def _require_open_streams(args: argparse.Namespace) -> None:
    """Require the standard streams that are to be used not to stand for closed ones."""
    for name, stream in ((args.input, sys.stdin), (args.output, sys.stdout)):
        if name == "-" and getattr(stream, "name", None) == os.devnull:
            which = "input" if stream is sys.stdin else "output"
            raise UsageError(f"standard {which} is closed; name a file instead of -")


def _columns(args: argparse.Namespace, source: "inputs.Input") -> "inputs.Columns":
    from hf_dxprivacy.files.inputs import Columns

    text = tuple(args.text_column or ("text",))
    output = tuple(args.output_column or text)
    if source.kind == "txt":
        if text != ("text",) or len(output) > 1:
            raise UsageError("a txt file has one column, 'text'")
        return Columns(output, output)  # it has no place for the original beside the result
    return Columns(text, output)


def _summarize(args: argparse.Namespace, outcome: "job.Outcome") -> None:
    from hf_dxprivacy.files.job import unknown_share

    words = outcome.words
    total = words.replaced + words.unchanged + words.out_of_vocabulary + words.kept
    unknown = unknown_share(words)
    where = "standard output" if args.output == "-" else args.output
    _say(
        f"{outcome.rows:,} rows with {total:,} words written to {where}; {unknown:.1%} of the "
        "words are not in the vocabulary (these counts are private, and no part of the release)"
    )
    if unknown > MANY_UNKNOWN:
        _say(UNKNOWN.format(unknown))


def _target(args: argparse.Namespace, source: "inputs.Input") -> str:
    """Return the format to write, having checked that it can be written there."""
    from hf_dxprivacy.files import inputs, writers

    target = inputs.format_of(args.output)
    ending = Path(args.output.lower().removesuffix(".gz")).suffix
    if ending and target is None:
        raise UsageError(
            f"{args.output}: cannot write the format of the ending {ending!r}; choose one of "
            f"{', '.join(inputs.ENDINGS)}, or none for the format of the input"
        )
    if target is None and source.kind == "hub":
        raise UsageError(f"the ending of {args.output!r} does not tell the format; .jsonl would do")
    target = target or source.kind
    with usage():
        writers.check_conversion(source.kind, target)
    if args.output == inputs.STANDARD:
        if target == "parquet":
            raise UsageError("parquet is written to a file, not to standard output")
        return target
    if target == "parquet" and inputs.is_packed(args.output):
        raise UsageError("parquet is compressed by itself; leave out .gz")
    _check_place(args, source, Path(args.output))
    return target


def _report_path(args: argparse.Namespace, source: "inputs.Input") -> Path | None:
    if args.report is None:
        return None
    if not args.report and args.output == "-":
        raise UsageError("--report needs a path when the output goes to standard output")
    path = Path(args.report or f"{args.output}.report.json")
    if path.resolve() == Path(args.output).resolve():
        raise UsageError("the report and the output are the same file; name another one")
    _check_place(args, source, path)
    return path


def _check_place(args: argparse.Namespace, source: "inputs.Input", path: Path) -> None:
    from hf_dxprivacy.files.writers import check_output

    if source.path and path.exists() and path.samefile(source.path):
        raise UsageError(f"{path} is the input, which is never overwritten; name another file")
    check_output(path, args.overwrite)


def _privatizer(args: argparse.Namespace, columns: "inputs.Columns") -> "DxPrivatizer":
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

    space = load_space(args)
    stopwords = _stopwords(args.stopwords)
    with usage():
        return DxPrivatizer(
            space,
            args.mechanism,
            args.epsilon,
            text_column=columns.text,
            output_column=columns.output,
            stopwords=stopwords,
            oov=args.oov,
            case=args.case,
            seed=args.seed,
            device=args.device,
            **given_options(args),
        )


def _stopwords(choice: str) -> "str | frozenset[str] | None":
    from hf_dxprivacy.files.inputs import read_words

    if choice in ("none", "english"):
        return None if choice == "none" else choice
    if not Path(choice).exists():
        raise UsageError(
            f"expected --stopwords to be english, none or a file with one word a line; there is no "
            f"file {choice}"
        )
    return read_words(Path(choice))


def _warn(args: argparse.Namespace, columns: "inputs.Columns", caution: str | None) -> None:
    if caution:
        _say(f"warning: {caution}")
    if args.seed is not None:
        _say(SEEDED)
    for name in sorted(set(columns.text) - set(columns.output)):
        _say(f"warning: column {name!r} of the output still holds the original text")


def _output(args: argparse.Namespace) -> "AbstractContextManager[BinaryIO]":
    from hf_dxprivacy.files import inputs, writers

    if args.output == inputs.STANDARD:
        return writers.standard_output()
    packed = inputs.is_packed(args.output)
    return writers.replacing(Path(args.output), overwrite=args.overwrite, packed=packed)


def _say(message: str) -> None:
    print(f"hf-dxprivacy: {message}", file=sys.stderr)

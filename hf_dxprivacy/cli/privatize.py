"""The verb privatize: a text dataset becomes another one, with a guarantee."""

import argparse
import math
import os
import re
import shlex
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import (
    FORMATS,
    Add,
    Parser,
    UsageError,
    add_local_epsilon,
    add_mechanism,
    add_space,
    add_to,
    an_epsilon,
    given_options,
    load_space,
    natural,
    require_epsilon,
    usage,
    whole,
    without_mechanism,
    word_list,
)
from hf_dxprivacy.cli.terminal import PROGRAM, fold, paint, say, seconds

if TYPE_CHECKING:
    from hf_dxprivacy.files.job import Outcome, TextsPrivatizer
    from hf_dxprivacy.files.source import Columns, Input

# Options about words, and about sentences of a pool, with their defaults.
OF_WORDS = {"segmenter": "words", "stopwords": "none", "oov": "centroid", "case": "lower"}
OF_SENTENCES = {"unit": None, "label_column": None, "refill": False, "language": "en"}

# Holds the seed, where neither other users nor the shell's history show it.
SEED_VARIABLE = "HF_DXPRIVACY_SEED"


def privatize_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s INPUT --output OUT --mechanism NAME --epsilon E [options]"
    parser.add("input", "INPUT", "a file, - for standard input, or a dataset on the Hub")
    add = parser.under("data")
    about = (
        "the file to write, in the format of its ending, else in that of the input; - writes to "
        "standard output as it goes"
    )
    add("--output", "OUT", about, required=True)
    add("--overwrite", None, "replace OUT and the report if they exist")
    about = (
        "column that holds the text (text), or a path to texts in jsonl and parquet, such as "
        "'messages[].content' for chats; repeat it for several"
    )
    add("--text-column", "NAME", about, _column_name, action="append")
    about = (
        "column for the result, as many as text columns; by default the text columns are "
        "overwritten, otherwise THE ORIGINAL TEXT STAYS IN THE OUTPUT"
    )
    add("--output-column", "NAME", about, _column_name, action="append")
    about = (
        "with a path: privatize the messages of this role, as 'role' or 'from' names it, and LEAVE "
        "ALL OTHERS AS THEY ARE; repeat it for several (all roles)"
    )
    add("--role", "NAME", about, action="append", dest="roles")
    about = (
        "with a path: leave calls of tools AS THEY ARE, which otherwise are refused if they hold "
        "strings that no path leads to"
    )
    add("--keep-calls", None, about)
    add("--format", FORMATS, "format of INPUT, if its name does not tell")
    add("--delimiter", "C", "what separates the fields of csv or tsv, if not , or tab")
    add("--no-quotes", None, "a quote in csv or tsv is a letter like any other")
    add("--split", "NAME", "split of a dataset on the Hub (train)")
    add("--subset", "NAME", "configuration of a dataset on the Hub")
    about = (
        "write the guarantee, all options and counts of words as JSON (OUT.report.json), from "
        "which 'push' makes a dataset card; the counts are for the owner of the text only"
    )
    add("--report", "PATH", about, nargs="?", const="")
    _add_privacy_arguments(parser)
    add = parser.under("how it runs")
    add("--batch-size", "N", "rows at once (%(default)s)", whole, default=1000)
    add("--num-proc", "N", "processes (%(default)s)", whole, default=1)
    about = "where to compare entries: cpu, or cuda or cuda:1 for a GPU, with torch (%(default)s)"
    add("--device", "NAME", about, default="cpu")
    add("--quiet", None, "print warnings and errors only")


def _add_privacy_arguments(parser: Parser) -> None:
    group = parser.add_argument_group("privacy")
    add: Add = partial(add_to, group)
    one = partial(add_to, group.add_mutually_exclusive_group())
    add_mechanism(parser, add, "required for words, where each has its own guarantee")
    add("--epsilon", "E", "required, above zero; see below", an_epsilon)
    add_local_epsilon(add)
    add_space(add)
    about = (
        "how texts are split: at spaces and punctuation, or runs of Chinese characters too, by the "
        "dictionary of jieba (%(default)s)"
    )
    add("--segmenter", "words|jieba", about, default=OF_WORDS["segmenter"])
    about = "words out of vocabulary: replaced, removed, or RELEASED UNCHANGED (%(default)s)"
    add("--oov", ("centroid", "drop", "keep"), about, default=OF_WORDS["oov"])
    about = "words that are released as they are; a file has one word a line (%(default)s)"
    add("--stopwords", "english|none|FILE", about, default=OF_WORDS["stopwords"])
    about = "letter case: that of the vocabulary, or of the original, which shows it (%(default)s)"
    add("--case", ("lower", "preserve"), about, default=OF_WORDS["case"])
    about = (
        "make the result reproducible, for experiments; the seed undoes the noise: keep it secret. "
        "Others see N in the list of processes, and your shell keeps it"
    )
    one("--seed", "N", about, natural)
    about = f"the file that holds N, so that it is not seen; ${SEED_VARIABLE} does the same"
    one("--seed-file", "PATH", about, Path)
    add = parser.under("with a pool of sentences")
    about = (
        "release one sentence for each text, or one for each sentence of a text, whose number "
        "shows and whose bounds add up (text)"
    )
    add("--unit", ("text", "sentence"), about)
    about = (
        "of a pool that has labels: the column of a public label of each text, such as its topic, "
        "which is released too; a text is hidden among those of its label only"
    )
    add("--label-column", "NAME", about)
    add("--refill", None, "draw numbers, dates and names in sentences afresh")
    about = "with --unit sentence: of the texts, for the rules that split them (%(default)s)"
    add("--language", "CODE", about, default=OF_SENTENCES["language"])


def _column_name(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected a name in UTF-8") from None
    return text


def privatize(args: argparse.Namespace) -> None:
    r"""Replace the words of a text dataset by other words, with a guarantee.

      # words, by the tree of the built-in space english
      hf-dxprivacy privatize reviews.csv --output released.csv --text-column review \
          --mechanism hierarchical --epsilon 1.5

      # what users wrote in chats
      hf-dxprivacy privatize chats.jsonl --output released.jsonl \
          --text-column 'messages[].content' --role user --mechanism hierarchical --epsilon 1.5

      # whole texts, by public sentences
      hf-dxprivacy privatize reviews.csv --output released.csv --text-column review \
          --space wordnet-sentences --local-epsilon 12

    Every word of the text columns is drawn anew from the vocabulary of a space: words that are near
    to it are likely, words that are far are not. All else in the file stays as it is.

    epsilon says how much may show: for any two words at a distance d, no output is more than
    e^(epsilon*d) times as likely for the one as for the other. Smaller hides more and goes farther
    from the original. For hierarchical, d is the logarithm of the number of words in the smallest
    cluster with both; for krr it is 1. For the others it is a distance between vectors, scaled in
    the built-in spaces so that 1 is the median distance to the nearest neighbour. The bounds of
    the words of a text add up. The number of words, the spaces and the punctuation are released as
    they are. The guarantee is printed at the end; read it.

    If the space is a pool of public sentences, whole sentences are released in place of whole texts
    (hierarchical, if no mechanism is named). One bound holds for a text, however long it is;
    --local-epsilon names it for any two texts.

    Formats: csv, tsv, jsonl and txt (one text a line), plain or .gz, and parquet, by the ending of
    the file name. Columns of csv and tsv are strings in any other format. Files may be larger than
    the memory. The output appears when it is complete.
    """
    require_epsilon(args, over_pool=True)
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        # The null device stands for a stream that the caller has closed.
        if vars(args)[name] == "-" and getattr(stream, "name", None) == os.devnull:
            raise UsageError(f"standard {name} is closed; name a file instead of -")
    outcome, privatizer, guarantee = _released(args)
    _summarize(args, outcome, privatizer)
    if not args.quiet:
        said = fold(guarantee) if sys.stderr.isatty() else guarantee
        plain, _, details = said.partition("\nDetails:\n")
        print(plain, paint(f"Details:\n{details}", "dim", sys.stderr), sep="\n", file=sys.stderr)


def _released(args: argparse.Namespace) -> tuple["Outcome", "TextsPrivatizer", str]:
    """Write the release and the report; return what became of it, its maker and its guarantee."""
    from hf_dxprivacy.files.job import Job
    from hf_dxprivacy.files.source import find_input
    from hf_dxprivacy.sentences import is_pool

    by_sentence = is_pool(args.space)
    _check_options(args, by_sentence)
    if args.report == "" and args.output == "-":
        raise UsageError("--report needs a path when the output goes to standard output")
    report = None if args.report is None else Path(args.report or f"{args.output}.report.json")
    with usage():
        source = find_input(
            args.input,
            args.format,
            not args.no_quotes,
            args.delimiter,
            args.subset,
            args.split,
        )
        job = Job(source, args.output, report, args.overwrite, args.batch_size, args.num_proc)
    if args.seed is None and (args.seed_file or SEED_VARIABLE in os.environ):
        args.seeded_by = _read_seed(args)
    text = tuple(args.text_column or ("text",))
    output = tuple(args.output_column or text)
    if source.kind == "txt":
        if text != ("text",) or len(output) > 1:
            given = ", ".join(map(repr, (*text, *output)))
            raise UsageError(f"a txt file has one column, 'text', got {given}; leave --text-column")
        text = output  # it has no place for the original beside the result
    columns = _columns(args, source, text, output)

    def make() -> "TextsPrivatizer":
        privatizer = _privatizer(args, columns, by_sentence)
        _caution(args, privatizer)
        return privatizer

    outcome, privatizer = job.run(columns, make)
    return outcome, privatizer, str(privatizer.guarantee)


def _check_options(args: argparse.Namespace, by_sentence: bool) -> None:
    """Refuse options of words for pools and of pools for words, and set the defaults of pools."""
    others = OF_WORDS if by_sentence else OF_SENTENCES
    given = [name for name, default in others.items() if vars(args)[name] != default]
    named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
    if given:
        raise UsageError(
            f"{args.space} is a pool of sentences, which replace whole texts: there are no words "
            f"for {named}"
            if by_sentence
            else f"{args.space} is a space of words, and pools of sentences are for {named}: leave "
            "that out, or name a pool ('hf-dxprivacy pool' makes one)"
        )
    if by_sentence:
        args.unit, args.mechanism = args.unit or "text", args.mechanism or "hierarchical"
    elif args.mechanism is None:
        raise UsageError(without_mechanism())


def _summarize(args: argparse.Namespace, outcome: "Outcome", privatizer: "TextsPrivatizer") -> None:
    """Say what was written, what became of the words, what is in clear, and what to do next."""
    from hf_dxprivacy.privatizers.batch import WordCounts
    from hf_dxprivacy.privatizers.nested import left_in_clear
    from hf_dxprivacy.privatizers.text_privatizer import NOTED_SHARE
    from hf_dxprivacy.publishing.released_dataset import said_of_left

    counts = outcome.counts
    where = "standard output" if args.output == "-" else args.output
    where += f" in {seconds()}: {privatizer.mechanism.name}, ε = {privatizer.epsilon:g}"
    rows = f"{outcome.rows:,} {'row' if outcome.rows == 1 else 'rows'}"
    if isinstance(counts, WordCounts):
        written, words = f"{rows} with {counts.total:,} words", counts.total or 1
        kept = f"{counts.kept / words:.1%} were kept as asked, " if counts.kept else ""
        found = (
            f"{counts.replaced / words:.1%} of the words became others, "
            f"{counts.unchanged / words:.1%} came out as they were, {kept}"
            f"{counts.unknown_share:.1%} are not in the vocabulary"
        )
        what, come_out = "words are not in the vocabulary of the space", "words that are not"
    else:
        of_sentences = f" of {counts.total:,} sentences" if args.unit == "sentence" else ""
        written = f"{rows} with {counts.texts:,} texts{of_sentences}"
        near = counts.quartiles
        found = f"the median cosine to the entry is {near['50%']:.2f}; " if near else ""
        what = f"{args.unit}s have nothing that the encoder of the pool knows"
        found += f"{counts.unknown_share:.1%} of the {what.replace(' of the pool', '')}"
        come_out = "these"
    if not args.quiet:
        say(f"{written} written to {where}")
        say(f"{found} (private counts, for you only: no part of the release)", more=True)
        if isinstance(counts, WordCounts) and (total := counts.capitalized):
            names = f"of {total:,} capitalized word{'s' * (total > 1)} within sentences"
            say(f"{names} {counts.capitalized_unchanged:,} came out as they were", more=True)
        if bound := _bound_of_rows(args, outcome, privatizer):
            say(bound, more=True)
        if clear := _in_clear(outcome):
            say(f"IN CLEAR, without any guarantee: {clear}", more=True)
        if attack := _attack(args, privatizer.epsilon):
            say(f"next, see what an attacker guesses: {attack}", more=True)
        if args.report is not None and args.output != "-":
            named = ["--report", args.report] if args.report else []
            sent = shlex.join([PROGRAM, "push", args.output, *named])
            sent += " NAMESPACE/NAME --license ID"
            say(f"next, to publish it with a card: {sent}", more=True)
    left = left_in_clear(counts.left) | {"texts_of_roles": {}}
    if clear := ", ".join(said_of_left(left)):
        say(f"warning: RELEASED AS THEY ARE: {clear}; remove them first, or name paths to them")
    if counts.unknown_share > NOTED_SHARE:
        say(
            f"warning: {counts.unknown_share:.0%} of the {what}, and {come_out} come out as "
            "arbitrary ones. Is this English? If not, choose a --space for its language"
        )


def _in_clear(outcome: "Outcome") -> str:
    """Say what was written as it is: columns, and what messages leave."""
    from hf_dxprivacy.errors import is_plain
    from hf_dxprivacy.files.job import NAMED
    from hf_dxprivacy.privatizers.nested import left_in_clear
    from hf_dxprivacy.publishing.released_dataset import said_of_left

    names = [*map(repr, filter(is_plain, outcome.in_clear))]
    hidden, more = len(outcome.in_clear) - len(names), len(outcome.in_clear) == NAMED
    names += [f"{hidden} not named, as that may be text"] * (hidden > 0) + ["…"] * more
    columns = [f"column{'s' * (len(outcome.in_clear) > 1)} {', '.join(names)}"] * bool(names)
    return "; ".join([*columns, *said_of_left(left_in_clear(outcome.counts.left))])


def _bound_of_rows(
    args: argparse.Namespace, outcome: "Outcome", privatizer: "TextsPrivatizer"
) -> str | None:
    """Say what bound the words of a row of mean length have together, if it is finite."""
    from hf_dxprivacy.guarantee import upward
    from hf_dxprivacy.privatizers.batch import WordCounts

    counts, local = outcome.counts, privatizer.mechanism.local_epsilon
    if not isinstance(counts, WordCounts) or math.isinf(local):
        return None
    known = counts.replaced + counts.unchanged
    covered = known + counts.out_of_vocabulary * (args.oov == "centroid")
    words = round(covered / max(1, outcome.rows))
    if not words:
        return None
    return (
        f"bounds of words add up: to ε ≤ {upward(words * local, 3)} (pure local DP) for a row of "
        f"{words} perturbed words, the mean here"
    )


def _attack(args: argparse.Namespace, epsilon: float) -> str | None:
    """Return a command that attacks the release, if a plain one does."""
    (column, *others), names = args.text_column, (args.input, args.output)
    special = ("output_column", "format", "delimiter", "no_quotes", "label_column", "refill")
    if any(vars(args)[name] for name in special) or others or "[" in column or "-" in names:
        return None
    if not Path(args.input).is_file() or args.oov == "drop" or args.unit == "sentence":
        return None
    options = {"text-column": column, "space": args.space, "mechanism": args.mechanism}
    options |= {name.replace("_", "-"): value for name, value in given_options(args).items()}
    usual = {"text-column": "text", "space": "english"}
    shown = [(f"--{name}", str(v)) for name, v in options.items() if usual.get(name) != v]
    words = [*names, *chain(*shown), "--epsilon", f"{epsilon:g}"]
    return shlex.join([PROGRAM, "audit", "reconstruction", *words])


def _columns(
    args: argparse.Namespace, source: "Input", text: tuple[str, ...], output: tuple[str, ...]
) -> "Columns":
    from hf_dxprivacy.files.source import Columns
    from hf_dxprivacy.privatizers.nested import text_paths

    with usage():
        columns, paths = text_paths(text, args.roles, args.keep_calls)
        outputs, _ = text_paths(output, None)
    if paths and source.kind in ("csv", "tsv", "txt"):
        raise UsageError(
            f"a path into lists or dicts, which {source.kind} does not have: {', '.join(text)};"
            " convert the data to jsonl or parquet, or name a column"
        )
    args.text_column = text
    return Columns(columns, outputs, nested=frozenset(paths))


def _privatizer(
    args: argparse.Namespace, columns: "Columns", by_sentence: bool
) -> "TextsPrivatizer":
    names = ["local_epsilon", "text_column", "roles", "keep_calls", "seed", "device"]
    names += OF_SENTENCES if by_sentence else OF_WORDS
    given = {name: vars(args)[name] for name in names} | {"output_column": columns.output}
    if by_sentence:
        from hf_dxprivacy.sentences import SentencePool
        from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer

        pool = SentencePool.from_pretrained(args.space)
        with usage():
            return SentencePrivatizer(
                pool, args.mechanism, args.epsilon, **given, **given_options(args)
            )
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

    space, options = load_space(args)
    given["stopwords"] = word_list(args.stopwords)
    with usage():
        return DxPrivatizer(space, args.mechanism, args.epsilon, **given, **options)


def _read_seed(args: argparse.Namespace) -> str | None:
    """Set the seed from where it is held, and name that place; None without one."""
    place, held = SEED_VARIABLE, os.environ.get(SEED_VARIABLE)
    if args.seed_file is not None:
        place, held = f"--seed-file {args.seed_file}", args.seed_file.read_bytes().decode("latin1")
    elif not held:
        return None
    if not re.fullmatch(r"\s*[0-9]{1,400}\s*", held or ""):
        raise UsageError(
            f"expected a whole number >= 0 in {place}, and what is there (not shown here) is none; "
            "make one with python -c 'import secrets; print(secrets.randbits(128))'"
        )
    args.seed = int(held or "")
    return place


def _caution(args: argparse.Namespace, privatizer: "TextsPrivatizer") -> None:
    """Say what the owner of a privatizer should know."""
    if args.local_epsilon is not None:
        say(f"epsilon {privatizer.epsilon:g} has a local bound of at most {args.local_epsilon:g}")
    if caution := privatizer.mechanism.caution:
        say(f"warning: {caution}")
    if args.seed is not None:
        seeded_by = vars(args).get("seeded_by", "--seed")
        seen = (
            ". Others see it in the list of processes, and your shell may keep it in its history: "
            f"pass --seed-file, or set {SEED_VARIABLE}"
        ) * (seeded_by == "--seed")
        say(
            f"warning: the noise comes from {seeded_by}, which must stay secret: it undoes the "
            f"noise{seen}"
        )
    for name in sorted({*privatizer.text_columns} - {*privatizer.output_columns}):
        say(f"warning: column {name!r} of the output still holds the original text")

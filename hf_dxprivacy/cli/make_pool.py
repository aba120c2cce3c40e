"""The verb pool: a pool of sentences from public texts."""

import argparse
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import (
    FORMATS,
    Parser,
    UsageError,
    usage,
    whole,
)
from hf_dxprivacy.cli.artifacts import LICENSE, METHODS, OVERWRITE, check_folder, save_measured
from hf_dxprivacy.cli.terminal import say, seconds

if TYPE_CHECKING:
    from hf_dxprivacy.sentences import SentenceEncoder, SentencePool

# A pool of fewer sentences is warned of.
FEW = 1000


def pool_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage, add = "%(prog)s INPUT --output FOLDER [options]", parser.add
    add("input", "INPUT", "a file of public texts, or a dataset on the Hub")
    add("--output", "FOLDER", "the folder to make", Path, required=True)
    add("--overwrite", None, OVERWRITE.replace("space", "pool"))
    add("--text-column", "NAME", "(%(default)s)", default="text")
    add("--format", FORMATS, "format of INPUT, if its name does not tell")
    add("--split", "NAME", "split of a dataset on the Hub (train)")
    about = "take each text for one sentence; otherwise texts are split (extra sentences)"
    add("--no-split", None, about)
    about = "language of the texts, for the rules that split them (%(default)s)"
    add("--language", "CODE", about, default="en")
    about = (
        "what texts are compared by: a space, whose word vectors are averaged, a model of "
        "transformers, or a pool, to compare as it does; name, folder or repository (%(default)s)"
    )
    add("--encoder", "NAME", about, default="english")
    about = "components that are kept of its vectors, at most (%(default)s)"
    add("--dimensions", "N", about, whole, default=64)
    about = "how the tree is built; large pools by parts (%(default)s)"
    add("--method", METHODS, about, default="ward")
    add("--limit", "N", "take the first N sentences only", whole)
    about = "column of public labels of the texts, such as their topic, kept with each sentence"
    add("--label-column", "NAME", about)
    about = "with labels: the components that they depend on, not the principal ones (extra audit)"
    add("--by-label", None, about)
    about = (
        "a file of public texts of the kind that will be released, in the same column, to see how "
        "near they are; otherwise each sentence is compared with the others"
    )
    add("--held-back", "FILE", about)
    add("--license", "ID", LICENSE.replace("vectors", "sentences"))
    add("--source", "TEXT", "where the sentences come from, for the card")


def pool(args: argparse.Namespace) -> None:
    """Make a pool of sentences, ready to use and to push, from public texts.

    A release over a pool is one of its sentences, word by word. So the texts must be public, and
    yours to give on; the private ones must not be among them.

      hf-dxprivacy pool reviews.csv --text-column review --output pool --license cc-by-4.0
      hf-dxprivacy privatize in.csv --output out.csv --space ./pool --local-epsilon 12

    Left out are sentences of less than 3 and more than 40 words, repeated ones, and those with
    slurs, e-mail addresses, telephone numbers or handles; how many is printed. What else they say
    is for you to check. Texts that are released should be near to a sentence: printed is how near
    other texts are. 10,000 sentences are a good start.

    INPUT is csv, tsv, jsonl, txt (a text a line) or parquet, as for 'hf-dxprivacy privatize'.
    """
    check_folder(args.output, args.overwrite, of_pool=True)
    if args.by_label and args.label_column is None:
        raise UsageError("--by-label needs --label-column, the labels to go by")
    from hf_dxprivacy.files.readers import as_texts, read_columns
    from hf_dxprivacy.files.source import find_input
    from hf_dxprivacy.hub.cards import check_licence
    from hf_dxprivacy.sentences import SentencePool

    with usage():
        check_licence(args.license)
        source = find_input(args.input, args.format, split=args.split)
    encoder = _encoder(args.encoder)
    names = [name for name in (args.text_column, args.label_column) if name]
    columns = read_columns(source, names)
    texts = as_texts(columns[0], args.input, args.text_column)
    labels = columns[1] if args.label_column else None
    sentences, of_text = _sentences(args, texts)
    held_back = None
    if args.held_back:
        with usage():
            others = find_input(args.held_back)
        cells = read_columns(others, (args.text_column,))[0]
        held_back = as_texts(cells, args.held_back, args.text_column)
    given = {"source": args.source, "licence": args.license, "language": args.language}
    made = SentencePool.from_sentences(
        sentences,
        encoder,
        labels=None if labels is None else [labels[at] for at in of_text],
        dimensions=args.dimensions,
        method=args.method,
        labelled=(texts, labels) if labels is not None and args.by_label else None,
        held_back=held_back,
        provenance={name: value for name, value in given.items() if value},
        progress=sys.stderr.isatty(),
    )
    _report(made, len(texts))
    save_measured(made, args.output, args.license)
    say(f"{args.output}: {made!r} written in {seconds()}")


def _encoder(name: str) -> "SentenceEncoder | SentencePool":
    """Load a space of words, a pool to encode as it does, or a model of `transformers`."""
    from hf_dxprivacy.hub import resolve
    from hf_dxprivacy.hub.artifact import CONFIG, LIBRARY_NAME, read_json
    from hf_dxprivacy.sentences import SentencePool, TransformersEncoder, WordEncoder, is_pool

    what = "a space or a model of transformers"
    source = resolve(name, (CONFIG,), what=what)
    if read_json(source.folder / CONFIG, f"expected {what}").get("library_name") == LIBRARY_NAME:
        return SentencePool.from_pretrained(name) if is_pool(name) else WordEncoder(name)
    return TransformersEncoder(name)


def _sentences(args: argparse.Namespace, texts: list[str]) -> tuple[list[str], list[int]]:
    """Return the sentences of texts, and from which text each one is."""
    from hf_dxprivacy.sentences import split_sentences

    found = (
        (sentence, at)
        for at, text in enumerate(texts)
        for sentence in ([text] if args.no_split else split_sentences(text, args.language))
    )
    pairs = [*islice(found, args.limit)]
    return [sentence for sentence, _ in pairs], [at for _, at in pairs]


def _report(made: "SentencePool", texts: int) -> None:
    """Print what was taken and left out, and how near other sentences are."""
    described = made.space.provenance
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in described["left_out"].items())
    say(f"{len(made):,} sentences of {texts:,} texts; left out: {reasons or 'none'}")
    if len(made) < FEW:
        say(
            f"warning: {len(made):,} sentences are few: most texts will become one that has little "
            "to do with them; 10,000 are a good start"
        )
    found = described.get("coverage", {})
    if "50%" in found:
        say(
            f"cosine of {found['texts']:,} texts to the nearest sentence: {found['50%']:.2f} in the"
            f" median, half of them from {found['25%']:.2f} to {found['75%']:.2f} ({found['of']})"
        )

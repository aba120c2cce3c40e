"""The attacks of the verb audit and the check of a guarantee; the docstrings are their help."""

import argparse
import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import UsageError, given_options, load_space, usage

if TYPE_CHECKING:
    import numpy as np

    from hf_dxprivacy.audit import BayesAdversary, MaskedWordModel, Subject
    from hf_dxprivacy.mechanisms import Mechanism
    from hf_dxprivacy.results import Result, Results

PICTURES = (".png", ".svg", ".pdf")

# The originals, the same as released, and what the results say that is.
Attack = Callable[[list[str], list[str], "Subject"], "Sequence[Result]"]


def attribution(args: argparse.Namespace) -> None:
    """Tell who wrote each text, from other texts of the same authors.

    Character 4-grams, random subsets of them, and the author with the largest cosine in most
    subsets (Koppel, Schler, Argamon, 2011). Half of the rows, chosen at random, are those whose
    authors the attacker knows.

    Raises:
        DxPrivacyError: If a file is damaged or lacks a column.
    """
    from hf_dxprivacy.audit import author_attribution

    rng = attackers(args)
    authors = [str(cell) for cell in read(args, args.original, args.author_column)[0]]
    count = round(args.known * len(authors))
    if not 0 < count < len(authors):
        raise UsageError(f"--known {args.known} leaves no row to know or none to attribute")
    order = rng().permutation(len(authors)).tolist()

    def attack(originals: list[str], released: list[str], subject: "Subject") -> "Sequence[Result]":
        known, asked = order[:count], order[count:]
        source = released if args.known_released else originals
        return author_attribution(
            [source[i] for i in known],
            [authors[i] for i in known],
            [released[i] for i in asked],
            [authors[i] for i in asked],
            subsets=args.subsets,
            threshold=args.threshold,
            rng=rng(),
            subject=subject,
        ).results

    _curve(args, len(authors), attack, "accuracy")


def membership(args: argparse.Namespace) -> None:
    """Tell which texts a classifier was trained on, from what it says about the originals.

    A classifier of averaged word vectors is trained on a part of RELEASED; an attacker who knows
    which texts another such classifier was trained on tells those of the first.

    Raises:
        DxPrivacyError: If a file is damaged or lacks a column.
    """
    from hf_dxprivacy.audit import membership_inference

    rng = attackers(args)
    labels = [str(cell) for cell in read(args, args.original, args.label_column)[0]]

    def attack(originals: list[str], released: list[str], subject: "Subject") -> "Sequence[Result]":
        return membership_inference(
            originals, released, labels, repeats=args.repeats, rng=rng(), subject=subject
        )

    _curve(args, len(labels), attack, "AUC")


def users(args: argparse.Namespace) -> None:
    """Tell whose texts a language model was trained on, from how it ranks their words.

    A next-word model is trained on what was released of some users; an auditor who knows the users
    of another such model tells those of the first (Song and Shmatikov, 2019).

    Raises:
        DxPrivacyError: If a file is damaged or lacks a column.
    """
    from hf_dxprivacy.audit import user_audit

    rng = attackers(args)
    names = [str(cell) for cell in read(args, args.original, args.user_column)[0]]

    def attack(originals: list[str], released: list[str], subject: "Subject") -> "Sequence[Result]":
        return user_audit(
            originals,
            released,
            names,
            repeats=args.repeats,
            vocabulary=args.vocabulary,
            rng=rng(),
            subject=subject,
        )

    _curve(args, len(names), attack, "AUC")


def reconstruction(args: argparse.Namespace) -> None:
    """Tell each word from what it became.

    The adversary knows the space, the mechanism, epsilon and how frequent each word is, and guesses
    the most probable word (Bayes' rule; exact for the mechanisms calibrated and tem, learned from
    draws for the others). "unchanged" is the share of words that a reader has who takes the release
    at its word. The texts must have been privatized without --oov drop.

    Raises:
        DxPrivacyError: If a file is damaged or lacks a column, or there is no such space.
    """
    from hf_dxprivacy.audit import reconstruct_texts
    from hf_dxprivacy.mechanisms import create_mechanism
    from hf_dxprivacy.results import Results

    check_arguments(args)
    rng, space, options = attackers(args), load_space(args), given_options(args)
    with usage():
        mechanisms = [create_mechanism(args.mechanism, space, e, **options) for e in args.epsilon]
    originals = read_texts(args, args.original, args.text_column)
    known = read_texts(args, args.prior, args.text_column) if args.prior else originals
    model = _language_model(args)
    results = Results()
    for name, mechanism in zip(args.released, mechanisms, strict=True):
        adversary = _adversary(args, mechanism, known, rng())
        results += reconstruct_texts(
            adversary,
            originals,
            read_released(args, name),
            language_model=model,
            subject=subject(args, args.mechanism, mechanism.epsilon),
        )
    show(args, results, "top-1")


def _curve(args: argparse.Namespace, rows: int, attack: Attack, metric: str) -> None:
    """Attack the original and each release."""
    from hf_dxprivacy.errors import InvalidValueError
    from hf_dxprivacy.results import ORIGINAL, Results

    check_arguments(args)
    originals = read_texts(args, args.original, args.text_column)
    results = Results(attack(originals, originals, subject(args, ORIGINAL, None)))
    for name, epsilon in releases(args):
        released = read_released(args, name)
        if len(released) != rows:
            raise InvalidValueError(
                f"{name}: expected the {rows} rows of {args.original}, got {len(released)}"
            )
        results += attack(originals, released, subject(args, args.mechanism, epsilon))
    show(args, results, metric)


def _adversary(
    args: argparse.Namespace, mechanism: "Mechanism", known: list[str], rng: Any
) -> "BayesAdversary":
    from hf_dxprivacy.audit import BayesAdversary
    from hf_dxprivacy.text import RowReader

    reader = RowReader()
    counts = Counter(word.lower() for text in known for word in reader.read_text(text).words)
    in_space = [(word, n) for word, n in counts.most_common() if word in mechanism.space]
    return BayesAdversary(mechanism, dict(in_space[: args.words]), draws=args.draws, rng=rng)


def _language_model(args: argparse.Namespace) -> "MaskedWordModel | None":
    if args.language_model is None:
        return None
    from hf_dxprivacy._runtime import require
    from hf_dxprivacy.audit import MaskedWordModel
    from hf_dxprivacy.errors import InvalidValueError

    transformers = require("transformers", "models")
    require("torch", "models")
    try:
        model = transformers.AutoModelForMaskedLM.from_pretrained(args.language_model)
        tokenizer = transformers.AutoTokenizer.from_pretrained(args.language_model)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"{args.language_model}: no model for masked language modelling could be loaded from "
            f"there ({type(error).__name__})"
        ) from error
    return MaskedWordModel(model, tokenizer)


def guarantee(args: argparse.Namespace) -> None:
    """Check that a mechanism keeps its guarantee over the words of a space.

    Exactly, over all pairs of words, for the mechanisms calibrated and tem (--inputs looks at some
    of them only); by draws for the others, which finds faults but cannot prove that there are
    none. The exit code is 1 if the guarantee is broken.

    Raises:
        DxPrivacyError: If there is no such space, or the guarantee is broken.
    """
    from hf_dxprivacy.audit import verify_guarantee
    from hf_dxprivacy.errors import InvalidValueError
    from hf_dxprivacy.files.writers import check_output, replacing
    from hf_dxprivacy.mechanisms import create_mechanism
    from hf_dxprivacy.randomness import keyed_generator, process_generator

    space = load_space(args)
    rng = process_generator() if args.seed is None else keyed_generator(args.seed, "audit")
    with usage():
        if args.output:
            check_output(args.output, args.overwrite)
        mechanism = create_mechanism(args.mechanism, space, args.epsilon, **given_options(args))
        found = verify_guarantee(
            mechanism, inputs=args.inputs, draws=args.draws, alpha=args.alpha, rng=rng
        )
    print(found)
    if args.output:
        with replacing(args.output, overwrite=args.overwrite) as file:
            file.write(f"{json.dumps(found.to_dict(), ensure_ascii=False)}\n".encode())
    if not found.passed:
        raise InvalidValueError("the guarantee is broken; see above")


def check_arguments(args: argparse.Namespace) -> None:
    """Require what can be known to be wrong before the work begins.

    Raises:
        UsageError: If an output is in the way or of no known format, or an ε is missing.
    """
    from hf_dxprivacy.files.writers import check_output

    if args.epsilon and len(args.epsilon) != len(args.released):
        raise UsageError(
            f"expected an --epsilon for each RELEASED, got {len(args.epsilon)} for "
            f"{len(args.released)}"
        )
    if args.plot:
        from hf_dxprivacy._runtime import require

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
        DxPrivacyError: If it cannot be read or lacks a column.
    """
    from hf_dxprivacy.files.inputs import Columns, find_input
    from hf_dxprivacy.files.readers import open_reader

    with usage():
        source = find_input(name, split=None if Path(name).exists() else args.split)
    result: list[list[Any]] = [[] for _ in columns]
    with open_reader(source, Columns(columns, columns, any_type=True)) as reader:
        for batch in reader.batches(1000):
            for values, column in zip(result, columns, strict=True):
                if isinstance(batch, list):
                    values += [row.get(column) for row in batch]
                else:
                    values += batch.column(column).to_pylist()
    return result


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
    from hf_dxprivacy.files.writers import replacing

    print(results.to_markdown())
    if args.output:
        with replacing(args.output, overwrite=args.overwrite) as file:
            file.write(results.to_json_lines().encode())
    if args.plot:
        from hf_dxprivacy.report import draw_results

        figure = draw_results(results, metric).figure
        with replacing(args.plot, overwrite=args.overwrite) as file:
            figure.savefig(file, format=args.plot.suffix[1:], dpi=150)

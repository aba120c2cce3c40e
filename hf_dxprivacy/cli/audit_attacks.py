"""The attacks of the verb audit; the docstrings are their help."""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.audit_data import (
    attackers,
    check_arguments,
    read,
    read_released,
    read_texts,
    releases,
    show,
    subject,
)
from hf_dxprivacy.cli.mechanism import given_options, load_space
from hf_dxprivacy.cli.usage import UsageError, usage

if TYPE_CHECKING:
    from hf_dxprivacy.audit import BayesAdversary, MaskedWordModel, Subject
    from hf_dxprivacy.mechanisms import Mechanism
    from hf_dxprivacy.results import Result

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
    from hf_dxprivacy._optional import require
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

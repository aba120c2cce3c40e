"""Which words were they: the Bayes-optimal adversary reads released texts."""

from collections.abc import Iterator, Sequence

import numpy as np

from hf_dxprivacy.audit.adversary import BayesAdversary
from hf_dxprivacy.audit.halves import require_aligned
from hf_dxprivacy.audit.laws import Ids
from hf_dxprivacy.audit.masked_words import MaskedWordModel
from hf_dxprivacy.audit.reconstruction import TASK
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.plan import Plan
from hf_dxprivacy.results import Results, share_interval
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader


def reconstruct_texts(
    adversary: BayesAdversary,
    originals: Sequence[str],
    released: Sequence[str],
    *,
    tops: Sequence[int] = (1, 10),
    language_model: MaskedWordModel | None = None,
    subject: Subject | None = None,
) -> Results:
    """Guess the words of texts from what was released of them, and count how often that is right.

    Counted are the words that the space has. One that the adversary's prior lacks is never guessed.

    Args:
        adversary: Who guesses; knows the mechanism with which the texts were released.
        originals: (n,) texts as they were written.
        released: (n,) the same texts as released, with as many words.
        tops: How many guesses the adversary has for each word.
        language_model: What the adversary expects in context; the context is what he guesses first
            without it.
        subject: What the results say was attacked; the mechanism by default.

    Returns:
        "top-k" for each of `tops`, and "unchanged", the share of words that came out as they were.
        The intervals take words for independent, which words of one text are not quite.

    Raises:
        InvalidValueError: If lengths differ, a text has another number of words than its release,
            or no word is in the space.
    """
    require_aligned(originals=len(originals), released=len(released))
    positions = np.full(len(adversary.mechanism.space) + 1, -1)
    positions[adversary.candidates] = np.arange(len(adversary.candidates))
    trials, unchanged, hits = 0, 0, np.zeros(len(tops), dtype=np.int64)
    for inputs, outputs in aligned(adversary.mechanism.space, originals, released):
        guesses = _guesses(adversary, outputs, max(tops), language_model)
        right = guesses == positions[inputs][:, None]
        hits += [int(right[:, :top].any(axis=1).sum()) for top in tops]
        unchanged += int((inputs == outputs).sum())
        trials += len(inputs)
    if not trials:
        raise InvalidValueError("expected words of the space in the texts, found not one")
    mechanism = adversary.mechanism
    subject = subject or Subject("texts", mechanism.name, mechanism.epsilon)
    found = {f"top-{top}": int(count) for top, count in zip(tops, hits, strict=True)}
    return Results(
        subject.result(TASK, metric, share_interval(count, trials), trials)
        for metric, count in (found | {"unchanged": unchanged}).items()
    )


def _guesses(
    adversary: BayesAdversary, outputs: Ids, count: int, language_model: MaskedWordModel | None
) -> Ids:
    if language_model is None:
        return adversary.guess(outputs, count)
    names = [adversary.mechanism.space.words[i] for i in adversary.candidates.tolist()]
    first = [names[i] for i in adversary.guess(outputs)[:, 0].tolist()]
    expected = language_model.expectations(first, names, adversary.prior)
    return adversary.guess(outputs, count, expected)


def aligned(
    space: EmbeddingSpace, originals: Sequence[str], released: Sequence[str]
) -> Iterator[tuple[Ids, Ids]]:
    """Return for each text the ids of its words and of their outputs, where the space has both.

    Args:
        space: The space.
        originals: (n,) texts as they were written.
        released: (n,) the same texts as released.

    Raises:
        InvalidValueError: If a text has another number of words than its release.
    """
    reader = RowReader()
    for row, pair in enumerate(zip(originals, released, strict=True)):
        before, after = (
            Plan.of(reader.read_text(text).words, space, frozenset(), "centroid").ids
            for text in pair
        )
        if len(before) != len(after):
            raise InvalidValueError(
                f"expected as many words in the release as in the original, got {len(after)} for "
                f"{len(before)} in row {row}; are the rows in the same order, and was nothing "
                "dropped (oov='drop')?"
            )
        both = (before >= 0) & (after >= 0)
        yield before[both], after[both]

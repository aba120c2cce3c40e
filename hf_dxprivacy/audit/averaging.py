"""The same texts released again and again: what an adversary gets who has all releases."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.adversary import BayesAdversary
from hf_dxprivacy.audit.laws import Ids, parts_of
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.audit.texts import aligned
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.results import Results, share_interval
from hf_dxprivacy.spaces import EmbeddingSpace

TASK = "averaging"


def averaging(
    adversary: BayesAdversary,
    originals: Sequence[str],
    releases: Sequence[Sequence[str]],
    *,
    counts: Sequence[int] | None = None,
    subject: Subject | None = None,
) -> Results:
    """Guess the words of texts from several releases of them, and count how often that is right.

    The adversary multiplies what the releases say of each word. That is the best one can do with
    independent releases, where the adversary knows the law; see `BayesAdversary`. A release that is
    equal to an earlier one in every word is the same release, and tells nothing new. Against
    ``memoize="user"`` a better adversary would also count how often a released word comes.

    Counted are the words that the space has. One that the adversary's prior lacks is never guessed.

    Args:
        adversary: Who guesses; knows the mechanism with which the texts were released.
        originals: (n,) texts as they were written.
        releases: k releases of these texts, n texts each, with as many words.
        counts: After how many releases to guess; after all of them by default.
        subject: What the results say was attacked; the mechanism by default.

    Returns:
        "top-1 of c" for each count c: the share of words guessed right from the first c releases.
        The intervals take words for independent, which words of one text, and equal words of a
        user under ``memoize="user"``, are not.

    Raises:
        InvalidValueError: If there is no release, a count is more than there are, a text has
            another number of words than its release, or no word is in the space.
    """
    inputs, outputs = _words(adversary.mechanism.space, originals, releases)
    counts = [len(outputs)] if counts is None else list(counts)
    if not counts or not all(1 <= count <= len(outputs) for count in counts):
        raise InvalidValueError(
            f"expected counts from 1 to {len(outputs)}, as many as there are releases, got {counts}"
        )
    hits = np.zeros(len(outputs), dtype=np.int64)
    for part in parts_of(np.arange(len(inputs)), len(adversary.candidates)):
        guessed = _guesses(adversary, outputs[:, part])
        hits += [int((guess == inputs[part]).sum()) for guess in guessed]
    mechanism = adversary.mechanism
    subject = subject or Subject("texts", mechanism.name, mechanism.epsilon)
    trials = len(inputs)
    return Results(
        subject.result(
            TASK, f"top-1 of {count}", share_interval(int(hits[count - 1]), trials), trials
        )
        for count in counts
    )


def _words(
    space: EmbeddingSpace, originals: Sequence[str], releases: Sequence[Sequence[str]]
) -> tuple[Ids, NDArray[np.int64]]:
    """Return (m,) ids of the words and (k, m) ids of what they became in each release."""
    pairs = [list(aligned(space, originals, released)) for released in releases]
    if not pairs or not any(len(before) for before, _ in pairs[0]):
        raise InvalidValueError(
            f"expected releases of texts with words of the space, got {len(pairs)} releases of "
            f"{len(originals)} texts without one"
        )
    inputs = [np.concatenate([before for before, _ in each]) for each in pairs]
    if any(not np.array_equal(inputs[0], each) for each in inputs):
        raise InvalidValueError("expected releases whose words are all of the space")
    return inputs[0], np.array([np.concatenate([after for _, after in each]) for each in pairs])


def _guesses(adversary: BayesAdversary, outputs: NDArray[np.int64]) -> Iterator[Ids]:
    """Return the word guessed in each place, after each release."""
    belief = np.broadcast_to(adversary.prior, (outputs.shape[1], len(adversary.prior)))
    seen: set[bytes] = set()
    for released in outputs:
        if released.tobytes() not in seen:
            belief = adversary.posterior(released, belief)
            seen.add(released.tobytes())
        yield adversary.candidates[belief.argmax(axis=1)]

"""Attacks of the Bayes-optimal adversary on words, on texts, and on repeated releases of texts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.adversary import BayesAdversary, Ids, Reals, drawn_from, largest, parts_of
from hf_dxprivacy.audit.masked_words import MaskedWordModel
from hf_dxprivacy.audit.shadow import require_aligned
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import look_up_rows
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import Interval, Results, Subject, share_interval
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

# Standard errors to either side of an estimate, for 95 %.
SPREAD = 1.96


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Success probabilities of the adversary for each of m words.

    Attributes:
        words: The candidates, the most frequent first.
        prior: (m,) float64 how likely each is.
        tops: How many guesses there are, for each column of `success`.
        success: (m, len(tops)) float64 probability that the word is among the guesses when it was
            released.
        exact: Whether these are the mechanism's true probabilities, or come from draws.
        results: "top-k" over all words and by frequency band, weighted by the prior.
    """

    words: tuple[str, ...]
    prior: Reals
    tops: tuple[int, ...]
    success: Reals
    exact: bool
    results: Results


def reconstruction(
    mechanism: Mechanism,
    prior: Mapping[str, float],
    *,
    tops: Sequence[int] = (1, 10),
    bands: Sequence[int] = (100, 1000),
    draws: int = 500,
    rng: np.random.Generator | None = None,
    subject: Subject | None = None,
) -> Reconstruction:
    """Compute how often a word can be told from its release.

    The adversary knows the mechanism, ε and the prior, and takes each word for itself; see
    `BayesAdversary`. For exponential mechanisms the result is exact. For the others the adversary
    learns from draws and is tried on as many fresh ones: an unbiased estimate for this adversary,
    and so a lower bound of the best one, up to the interval.

    Args:
        mechanism: What privatizes the words.
        prior: Word → how often it occurs.
        tops: How many guesses the adversary has.
        bands: Ranks by frequency at which a band of words ends.
        draws: Draws from each word, twice.
        rng: Source of the draws; this process's own by default.
        subject: What the results say was attacked; the mechanism by default.

    Raises:
        InvalidValueError: If no word of the prior is in the space, or there are no tops.
        MissingExtraError: If SciPy, which draws need, is not installed.
    """
    if not tops or min(tops) < 1:
        raise InvalidValueError(f"expected tops of 1 or more, got tops={tuple(tops)}")
    rng = rng or process_generator()
    adversary = BayesAdversary(mechanism, prior, draws=draws, rng=rng)
    counts = [min(top, len(adversary.prior)) for top in tops]
    success = (
        _by_law(adversary, counts) if adversary.exact else _by_draws(adversary, counts, draws, rng)
    )
    trials = None if adversary.exact else draws
    subject = subject or Subject("prior", mechanism.name, mechanism.epsilon)
    results = Results(
        subject.result(
            "reconstruction", f"top-{top}{name}", interval, len(success[band]) * (trials or 1)
        )
        for name, band in _bands(len(success), bands)
        for top, column in zip(tops, success[band].T, strict=True)
        for interval in [_weighted(column, adversary.prior[band], trials)]
    )
    words = tuple(mechanism.space.words[i] for i in adversary.candidates.tolist())
    return Reconstruction(words, adversary.prior, tuple(tops), success, adversary.exact, results)


def _by_law(adversary: BayesAdversary, counts: Sequence[int]) -> Reals:
    """Add up, over all outputs, with which probability each comes from a word guessed there."""
    success = np.zeros((len(adversary.prior), len(counts)))
    size = len(adversary.mechanism.space)
    for outputs in parts_of(np.arange(size), size):
        likelihoods = adversary.distribution.likelihoods(outputs)
        guesses = largest(likelihoods * adversary.prior, max(counts))
        found = np.take_along_axis(likelihoods, guesses, axis=1)
        for column, count in enumerate(counts):
            np.add.at(success[:, column], guesses[:, :count], found[:, :count])
    return success


def _by_draws(
    adversary: BayesAdversary, counts: Sequence[int], draws: int, rng: np.random.Generator
) -> Reals:
    """Count how often a word is guessed from draws that the adversary has not learned from."""
    success = np.zeros((len(adversary.prior), len(counts)))
    outputs = np.arange(len(adversary.mechanism.space))
    guesses = adversary.guess(outputs, max(counts))
    for at, drawn in drawn_from(adversary.mechanism, adversary.candidates, draws, rng):
        hits = guesses[drawn] == at[:, None]
        for column, count in enumerate(counts):
            np.add.at(success[:, column], at, hits[:, :count].any(axis=1))
    return success / draws


def _bands(size: int, ends: Sequence[int]) -> Iterator[tuple[str, slice]]:
    """Return the names of all words and of the bands, with their ranks."""
    yield "", slice(0, size)
    edges = [0, *sorted(end for end in ends if 0 < end < size), size]
    if len(edges) > 2:
        for start, end in pairwise(edges):
            yield f", words {start + 1}–{end}", slice(start, end)


def _weighted(success: Reals, prior: Reals, draws: int | None) -> Interval:
    """Return the mean success; with an interval if it is from draws."""
    weights = prior / prior.sum()
    value = float(weights @ success)
    if draws is None:
        return Interval(value, value, value)
    variance = float(weights**2 @ (success * (1.0 - success))) / draws
    half = SPREAD * math.sqrt(variance)
    return Interval(value, max(0.0, value - half), min(1.0, value + half))


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
        subject.result("reconstruction", metric, share_interval(count, trials), trials)
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
        before, after = (look_up_rows([reader.read_text(text)], space) for text in pair)
        if len(before) != len(after):
            raise InvalidValueError(
                f"expected as many words in the release as in the original, got {len(after)} for "
                f"{len(before)} in row {row}; are the rows in the same order, and was nothing "
                "dropped (oov='drop')?"
            )
        both = (before >= 0) & (after >= 0)
        yield before[both], after[both]


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
        guessed = _repeated_guesses(adversary, outputs[:, part])
        hits += [int((guess == inputs[part]).sum()) for guess in guessed]
    mechanism = adversary.mechanism
    subject = subject or Subject("texts", mechanism.name, mechanism.epsilon)
    trials = len(inputs)
    return Results(
        subject.result(
            "averaging",
            f"top-1 of {count}",
            share_interval(int(hits[count - 1]), trials),
            trials,
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


def _repeated_guesses(adversary: BayesAdversary, outputs: NDArray[np.int64]) -> Iterator[Ids]:
    """Return the word guessed in each place, after each release."""
    belief = np.broadcast_to(adversary.prior, (outputs.shape[1], len(adversary.prior)))
    seen: set[bytes] = set()
    for released in outputs:
        if released.tobytes() not in seen:
            belief = adversary.posterior(released, belief)
            seen.add(released.tobytes())
        yield adversary.candidates[belief.argmax(axis=1)]

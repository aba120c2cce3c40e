"""Which word was it: what the Bayes-optimal adversary reads from a release."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hf_dxprivacy.audit.adversary import BayesAdversary
from hf_dxprivacy.audit.laws import Reals, drawn_from, largest, parts_of
from hf_dxprivacy.audit.subject import Subject
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import Interval, Results

TASK = "reconstruction"
# Standard errors to either side of an estimate, for 95 %.
SPREAD = 1.96


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """How often the adversary is right about each of m words.

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
    """Work out how often a word can be told from its release.

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
        subject.result(TASK, f"top-{top}{name}", interval, len(success[band]) * (trials or 1))
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
        likelihoods = adversary.law.likelihoods(outputs)
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

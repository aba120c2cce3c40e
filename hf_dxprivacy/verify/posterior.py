"""What an output of a mechanism says of its input, under a public prior of the inputs."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_one_of
from hf_dxprivacy.mechanisms.base import BLOCK_BYTES, ExponentialLaw, Ids, Mechanism, Reals
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import LOOKUP_FORMS

# A named prior, how often each word occurs (words that the space lacks are unknown ones), or the
# same as numbers, one for each word of the space.
Prior = Literal["zipf", "uniform"] | Mapping[str, float] | ArrayLike

# Zipf's law after Mandelbrot: the word of rank r, from 0 on, has a frequency ∝ 1/(r + OFFSET).
OFFSET = 2.7
# Of running text, words that a vocabulary lacks: 2 to 8 % of public data sets in "english".
UNKNOWN_SHARE = 0.05
# The rank of an entry that stands for all words of a shape, such as numbers of five digits.
SHAPE_RANK = 100


def frequencies(space: EmbeddingSpace, prior: Prior) -> tuple[Reals, float]:
    """Return how likely each word is before anything is released, and the unknown word.

    Args:
        space: Where the words lie.
        prior: "zipf" where the rows are in order of frequency, the most frequent first: 1/(r + 2.7)
            for the r-th, from 0 on, and 5 % for words that the space lacks; "uniform" over the
            words; counts by word; or (V,) numbers.

    Returns:
        (V,) float64 and a number; together they add up to 1.

    Raises:
        InvalidValueError: If there is no such prior, a number is negative or not finite, there are
            not V of them, or no word of the space has one above 0.
        InvalidTypeError: If it is none of these.
    """
    unknown, weights = 0.0, np.ones(len(space))
    if isinstance(prior, str):
        require_one_of(("zipf", "uniform"), prior=prior)
        if prior == "zipf":
            ranks = np.where(space.is_shape, SHAPE_RANK, np.arange(len(space)))
            weights = 1.0 / (ranks + OFFSET)
            unknown = UNKNOWN_SHARE / (1.0 - UNKNOWN_SHARE) * weights.sum()
    elif isinstance(prior, Mapping):
        words, counts = list(prior), _numbers([*prior.values()], len(prior))
        ids = space.ids(words)
        for form in LOOKUP_FORMS:
            missing = np.flatnonzero(ids < 0)
            ids[missing] = space.ids([form(words[i]) for i in missing.tolist()])
        weights = np.zeros(len(space))
        np.add.at(weights, ids[ids >= 0], counts[ids >= 0])
        unknown = float(counts[ids < 0].sum())
    else:
        weights = _numbers(prior, len(space))
    if not weights.sum() > 0.0:
        raise InvalidValueError(
            f"expected a prior that has words of the space, got {len(weights)} numbers that are 0; "
            "are its words in the letter case of the space?"
        )
    total = weights.sum() + unknown
    return weights / total, float(unknown / total)


def _numbers(values: ArrayLike, size: int) -> Reals:
    """Return numbers that may be frequencies."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(
            "expected prior to be 'zipf', 'uniform', counts by word, or one number for each word "
            f"of the space, got a {type(values).__name__}"
        ) from None
    if array.shape != (size,) or not np.isfinite(array).all() or (array < 0.0).any():
        raise InvalidValueError(
            f"expected {size} finite numbers not below 0 in prior, got an array of shape "
            f"{array.shape}{'' if array.shape != (size,) else ' with others'}"
        )
    return array


class PosteriorLaw:
    """p(x|y) ∝ π(x)·P(y|x): how likely each input x is, given the output y; exact.

    Args:
        mechanism: One whose law is known.
        prior: (V,) float64 π, how likely each word is.
        unknown: How likely the unknown word is as an input.
        kept: Rows of words that are released as they are instead of being drawn anew.

    Raises:
        InvalidValueError: If the law of the mechanism is not known.
    """

    def __init__(
        self, mechanism: Mechanism, prior: Reals, unknown: float = 0.0, kept: Ids | None = None
    ) -> None:
        if not isinstance(mechanism, ExponentialLaw):
            raise InvalidValueError(
                f"the law of mechanism {mechanism.name!r} is not known, so that nothing exact can "
                "be said of its inputs: take 'hierarchical', 'calibrated', 'tem' or 'krr', or "
                "estimate it from draws with hf_dxprivacy.evaluation.BayesAdversary"
            )
        self.mechanism = mechanism
        # Kept words come out of themselves, and of the words that are drawn anew.
        self._kept, drawn = np.zeros(len(prior)), prior.copy()
        if kept is not None:
            self._kept[kept], drawn[kept] = prior[kept], 0.0
        self._scaled = drawn / mechanism.normalizers
        self._unknown = np.zeros(len(prior))
        if unknown > 0.0:
            self._unknown = unknown * mechanism.probabilities([-1])[0]

    def evidence(self, outputs: Ids) -> Reals:
        """Return (n,) how likely each output is under the prior."""
        drawn = self.mechanism.weighted_sums(self._scaled, outputs)
        total: Reals = drawn + self._unknown[outputs] + self._kept[outputs]
        return total

    def unchanged(self, outputs: Ids) -> Reals:
        """Return (n,) the probability that each output is the input that it came from.

        Args:
            outputs: (n,) rows.
        """
        different, back = np.unique(outputs, return_inverse=True)
        # A word and itself are at distance 0.
        same = self._scaled[different] + self._kept[different]
        total = self.evidence(different)
        shares: Reals = np.divide(same, total, out=np.zeros(len(same)), where=total > 0.0)[back]
        return shares

    def originals(self, outputs: Ids, count: int) -> tuple[Ids, Reals]:
        """Return the likeliest inputs of each output, the likeliest first.

        Args:
            outputs: (n,) rows.
            count: How many; fewer if there are not so many words.

        Returns:
            (n, count) rows and their probabilities. What is missing to 1 is that of the others,
            the unknown word among them.
        """
        different, back = np.unique(outputs, return_inverse=True)
        size = len(self._scaled)
        count = min(count, size)
        best = np.empty((len(different), count), dtype=np.int64)
        shares = np.empty((len(different), count))
        step = max(1, BLOCK_BYTES // (8 * size))
        for start in range(0, len(different), step):
            part = different[start : start + step]
            joint = self.mechanism.weights(part) * self._scaled
            at = np.arange(len(part))
            joint[at, part] += self._kept[part]
            totals = joint.sum(axis=1) + self._unknown[part]
            found = largest(joint, count)
            best[start : start + step] = found
            top = np.take_along_axis(joint, found, axis=1)
            shares[start : start + step] = np.divide(
                top, totals[:, None], out=np.zeros_like(top), where=totals[:, None] > 0.0
            )
        return best[back], shares[back]

    def of_mixture(self, ways: Mapping[int, float]) -> Reals:
        """Return (V,) how likely each input is, given a word that several outputs may appear as.

        Args:
            ways: For each of these outputs the probability that it appears as the word.
        """
        joint, unknown = np.zeros(len(self._scaled)), 0.0
        for row, chance in ways.items():
            joint += chance * self.mechanism.weights(np.array([row]))[0] * self._scaled
            joint[row] += chance * self._kept[row]
            unknown += chance * self._unknown[row]
        total = joint.sum() + unknown
        shares: Reals = joint / total if total > 0.0 else joint
        return shares


def largest(values: Reals, count: int) -> NDArray[np.int64]:
    """Return for each row the columns of the largest values, the largest first."""
    found = np.argpartition(-values, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(values, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)

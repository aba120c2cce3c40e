"""What an output of a mechanism says of its input, under a public prior of the inputs."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_one_of,
)
from hf_dxprivacy.hub import is_builtin
from hf_dxprivacy.mechanisms.base import BLOCK_BYTES, ExponentialLaw, Ids, Mechanism, Reals
from hf_dxprivacy.privatizers.privatizer import Prior, Privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.publishing.released_words import (
    ReleasedWords,
    kept_rows,
    read_release,
    released_names,
)
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import LOOKUP_FORMS

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


class WordPosterior(NamedTuple):
    """What a released word says of the word that it came from.

    Attributes:
        word: As it was released: a word, the id of a token, or a sentence.
        probability: That the original was the same word. 1.0 for words that are released as they
            are, 0.0 for random words of a shape (numbers, names), which are drawn afresh; None for
            what this privatizer does not release.
        originals: The likeliest originals with their probabilities, if they were asked for.
    """

    word: Any
    probability: float | None
    originals: tuple[tuple[Any, float], ...] = ()


def posterior(
    privatizer: Privatizer, released: Any, prior: Prior | None, k: int, masks: Any
) -> Any:
    """Return what each word of a release says of its original; see `Privatizer.posterior`."""
    require_at_least(0, k=k)
    law = _law(privatizer, prior)
    words, single = read_release(privatizer, released, masks)
    found = _posteriors(words, law, released_names(privatizer), k)
    return found[0] if single else found


def _law(privatizer: Privatizer, prior: Prior | None) -> PosteriorLaw:
    """Return the law under a prior; those of named priors are kept."""
    # Rows of token vocabularies and pools are in no order of frequency.
    of_words = isinstance(privatizer, DxPrivatizer)
    if prior is None:
        ordered = of_words and is_builtin(privatizer.space.location or "")
        prior = "zipf" if ordered else "uniform"
    laws: dict[str, PosteriorLaw] = vars(privatizer).setdefault("_laws", {})
    if isinstance(prior, str) and prior in laws:
        return laws[prior]
    expected, unknown = frequencies(privatizer.space, prior)
    kept: Ids | None = None
    if isinstance(privatizer, DxPrivatizer):
        unknown *= privatizer.oov == "centroid"
        kept = kept_rows(privatizer.space, privatizer.stopwords)
    law = PosteriorLaw(privatizer.mechanism, expected, unknown, kept)
    if isinstance(prior, str):
        laws[prior] = law
    return law


def _posteriors(
    released: ReleasedWords, law: PosteriorLaw, names: Sequence[Any], k: int
) -> list[list[WordPosterior] | None]:
    """Return for each row what its words say.

    Args:
        released: The words.
        law: Of the mechanism, under the prior.
        names: (V,) what stands for each row of the space in a release.
        k: How many originals to name.
    """
    shares, drawn = released.known.copy(), (released.ids >= 0) & (released.known != 1.0)
    own = drawn & np.isnan(released.known)
    shares[own] = law.unchanged(released.ids[own])
    originals: list[tuple[tuple[Any, float], ...]] = [()] * len(shares)
    if k:
        best, likely = law.originals(released.ids[drawn], k)
        for at, rows, found in zip(np.flatnonzero(drawn), best, likely, strict=True):
            pairs = zip(rows.tolist(), found.tolist(), strict=True)
            originals[at] = tuple((names[row], share) for row, share in pairs if share > 0.0)
    mixed = {word: law.of_mixture(ways) for word, ways in released.ways.items()}
    words = [word for row in released.rows for word in row or ()] if mixed else []
    for place, word in enumerate(words):
        if word in mixed and drawn[place]:
            joint = mixed[word]
            shares[place] = joint[released.ids[place]] if own[place] else shares[place]
            likeliest = largest(joint[None], min(k, len(joint)))[0].tolist() if k else []
            named = ((names[row], float(joint[row])) for row in likeliest)
            originals[place] = tuple(pair for pair in named if pair[1] > 0.0)
    values = [None if math.isnan(share) else share for share in shares.tolist()]
    lengths = [len(row or ()) for row in released.rows]
    starts = pairwise(np.cumsum([0, *lengths]).tolist())
    return [
        None
        if row is None
        else [*map(WordPosterior, row, values[start:stop], originals[start:stop])]
        for row, (start, stop) in zip(released.rows, starts, strict=True)
    ]

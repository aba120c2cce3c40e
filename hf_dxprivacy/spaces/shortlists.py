"""The words near a word, with lower bounds in place of distances.

A bound costs a fraction of a distance: one product of single precision, and no entry is computed
again where digits cancel. What rounding may add is taken off beforehand: with centred x and y,
‖x−y‖² = ‖x‖²+‖y‖²−2⟨x,y⟩, and whatever the order of the sum, a computed product is off by no more
than a multiple ρ of ‖x‖²+‖y‖² (Higham, Accuracy and Stability of Numerical Algorithms, §3.1). So
(1−ρ)(‖x‖²+‖y‖²)−2⟨x,y⟩, as it is computed, never exceeds the squared distance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import euclidean
from hf_dxprivacy.spaces.distances import MODERATE, Distances

# Inputs and words of one matrix product: large ones keep BLAS at full speed.
ROWS = 512
COLUMNS = 8192

# Roundings beside those of the product of n+2 terms, each twice the half of eps: of the vectors to
# single precision, of their norms, of the sums. A dozen would do.
OTHER_ROUNDINGS = 14

# What is taken off a bound for its rounding to single precision, and off the limit of a list. The
# second is more than bounds are off by, so that whether a word is listed depends on its distance
# and not on the order of sums: what a seed draws for a row does not depend on the batch.
ROUNDING = 1e-6
CLEARANCE = 1e-3

# Rank among sampled words of the one that bounds a list, and how much longer than needed the list
# is then expected to be. Too short a list, of 1 % of the inputs, is still a valid one.
SAMPLE_RANK = 16
SURPLUS = 2
# Of very short lists so much is not sampled.
SAMPLE_PART = 8


@dataclass(frozen=True, eq=False)
class Shortlists:
    """The words near each of m inputs, in any order, and how far away all others are at least.

    Attributes:
        words: (m, k) int32 rows of the vocabulary.
        lower: (m, k) float32 lower bounds of their distances; infinite where a list is shorter
            than k, for places that hold no word.
        beyond: (m,) lower bounds of the distances of all words that are not listed.
    """

    words: NDArray[np.int32]
    lower: NDArray[np.float32]
    beyond: NDArray[np.float64]


class Shortlister:
    """Finds the words near a word.

    Args:
        distances: The distances of V words of n dimensions.
    """

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self._hyperbolic = distances.metric == "poincare"
        self._dtype = _dtype(distances)
        # Exactly what the rounded vectors are measured from, so that large means cost no digits.
        self._center = distances.centroid.astype(self._dtype)
        n = len(self._center)
        self._keep = 1.0 - (n + 2 + OTHER_ROUNDINGS) * float(np.finfo(self._dtype).eps)
        self._norms = self._keep * euclidean.squared_norms(
            distances.vectors, self._center.astype(np.float64)
        )
        self._order = keyed_generator(0).permutation(len(self._norms))

    def find(self, ids: NDArray[np.int64], k: int) -> Shortlists:
        """Return at most k words near each input.

        Args:
            ids: (m,) rows, at least one; −1 is the centroid.
            k: How many, at least 1; all words if there are not more.
        """
        _threads.limit_in_worker()
        k = min(k, len(self._norms))
        parts = [self._find(ids[rows], k) for rows in euclidean.blocks(0, len(ids), ROWS)]
        return Shortlists(
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.lower for part in parts]),
            np.concatenate([part.beyond for part in parts]),
        )

    def _find(self, ids: NDArray[np.int64], k: int) -> Shortlists:
        queries = self._queries(ids)
        farthest = self._farthest(ids, queries, k)
        columns = self._candidates(queries, self._limits(ids, farthest))
        beyond = farthest * (1.0 - CLEARANCE)
        lower = self._bounds(ids, columns)
        if columns.shape[1] > k:
            beyond = np.minimum(beyond, np.partition(lower, k, axis=1)[:, k])
        inside = lower < beyond[:, None]
        words = np.zeros((len(ids), k), dtype=np.int32)
        nearest = np.full((len(ids), k), np.inf, dtype=np.float32)
        places = np.arange(k) < inside.sum(axis=1)[:, None]
        words[places] = columns[inside]
        nearest[places] = lower[inside] * (1.0 - ROUNDING)
        return Shortlists(words, nearest, beyond * (1.0 - ROUNDING))

    def _bounds(self, ids: NDArray[np.int64], columns: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return (m, most) lower bounds of the distances of candidates; infinite without one."""
        lower = np.full(columns.shape, np.inf)
        rows, places = np.nonzero(columns >= 0)
        words = columns[rows, places].astype(np.int64)
        lower[rows, places] = self._distances.pair_bounds(ids[rows], words)[0]
        return lower

    def _queries(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return (m, n+2) factors of the products that are the keys of words."""
        centred = self._distances.points(ids) - self._center
        squared = self._keep * np.einsum("ij,ij->i", centred, centred)
        ones = np.ones(len(ids))
        return np.column_stack([-2.0 * centred, ones, squared]).astype(self._dtype)

    def _keys(
        self, queries: NDArray[np.floating], words: slice | NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Return (m, words) keys: lower bounds of squared distances, over the gaps of the words."""
        keys: NDArray[np.floating] = queries @ self._factors(words).T
        if self._hyperbolic:
            keys /= self._distances.gaps[:-1][words]
        return keys

    def _factors(self, words: slice | NDArray[np.int64]) -> NDArray[np.floating]:
        """Return (words, n+2) factors of the products that are the keys of words."""
        vectors = self._distances.vectors[words]
        factors = np.empty((len(vectors), vectors.shape[1] + 2), dtype=self._dtype)
        np.subtract(vectors, self._center, out=factors[:, :-2])
        factors[:, -2], factors[:, -1] = self._norms[words], 1.0
        return factors

    def _farthest(
        self, ids: NDArray[np.int64], queries: NDArray[np.floating], k: int
    ) -> NDArray[np.float64]:
        """Return (m,) distances below which somewhat more than k words are expected."""
        size = len(self._norms)
        sample = self._order[: min(size // SAMPLE_PART, SAMPLE_RANK * size // (SURPLUS * k))]
        if len(sample) < SAMPLE_RANK:
            return np.full(len(ids), np.inf)
        keys = self._keys(queries, sample)
        last = np.argpartition(keys, SAMPLE_RANK - 1, axis=1)[:, SAMPLE_RANK - 1]
        return self._distances.pair_bounds(ids, sample[last])[0]

    def _limits(
        self, ids: NDArray[np.int64], farthest: NDArray[np.float64]
    ) -> NDArray[np.floating]:
        """Return (m,) keys that no word nearer than a distance has."""
        reach = farthest / self._distances.scale
        if self._hyperbolic:
            with np.errstate(over="ignore"):
                squared = self._distances.gaps[ids] * np.sinh(reach / 2.0) ** 2
        else:
            squared = reach**2
        limits: NDArray[np.floating] = (squared * (1.0 + ROUNDING)).astype(self._dtype)
        return limits

    def _candidates(
        self, queries: NDArray[np.floating], limits: NDArray[np.floating]
    ) -> NDArray[np.int32]:
        """Return the words below the limits in ascending order, (m, most), with −1 after them."""
        found = list(self._below(queries, limits))
        counts = np.array([np.bincount(rows, minlength=len(queries)) for rows, _ in found])
        filled = np.cumsum(counts, axis=0)
        columns = np.full((len(queries), filled[-1].max()), -1, dtype=np.int32)
        for (rows, words), count, end in zip(found, counts, filled, strict=True):
            # The rows come in order, so that an entry's place follows from its number.
            places = np.arange(len(rows)) + (end - np.cumsum(count))[rows]
            columns[rows, places] = words
        return columns

    def _below(
        self, queries: NDArray[np.floating], limits: NDArray[np.floating]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the rows, in order, and the words of the keys below the limits, part by part."""
        for part in euclidean.blocks(0, len(self._norms), COLUMNS):
            keys = self._keys(queries, part)
            rows, columns = np.divmod(np.flatnonzero(keys < limits[:, None]), keys.shape[1])
            yield rows, columns + part.start


def _dtype(distances: Distances) -> type[np.floating]:
    """Return single precision where it will do."""
    if distances.metric == "poincare" or distances.vectors.dtype != np.float32:
        return np.float64
    largest = distances.squared_norms.max()
    return np.float32 if MODERATE[0] < largest < MODERATE[1] else np.float64

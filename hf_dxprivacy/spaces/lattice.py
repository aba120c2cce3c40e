"""Vectors rounded to a lattice so coarse that products of them are exact.

A product of matrices of whole numbers is exact in floating point, whatever the order of its sums,
if no sum leaves the range in which whole numbers are exact. By Cauchy-Schwarz none does if the
vectors are short enough. So anything computed from such products is the same in any batch, with
any number of threads and on any device. Between processors of different makes only the step of the
lattice may differ, in its last digit.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.distances import MODERATE, Distances

# Norms in units of the lattice: sums up to 2·norm² are exact whole numbers in that dtype.
LONGEST = {"euclidean": (np.float32, 2890.0), "poincare": (np.float64, 3e7)}
# The lattice is made for norms up to so many times the median. A longer vector is moved nearer.
OUTLIER = 4.0
SHORTEST = 1e-150
# What double precision may add to an error, many times over.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Rounded:
    """Vectors in units of a lattice.

    Attributes:
        whole: (m, n) whole numbers.
        half_norms: (m,) halves of their squared norms, rounded down.
    """

    whole: NDArray[np.floating]
    half_norms: NDArray[np.floating]

    def as_queries(self) -> NDArray[np.floating]:
        """Return (m, n+2) factors; see `as_words`."""
        ones = np.ones_like(self.half_norms)
        return np.column_stack([-self.whole, ones, self.half_norms])

    def as_words(self) -> NDArray[np.floating]:
        """Return (m, n+2) factors, whose products with queries are halves of squared distances.

        A product is at most 1 below, and never above.
        """
        return np.column_stack([self.whole, self.half_norms, np.ones_like(self.half_norms)])


class IntegerLattice:
    """A lattice around the centroid of the words.

    Args:
        distances: The distances of V words of n dimensions.

    Attributes:
        unit: Its step.
        errors: (V+1,) largest distance of a word from its point; then of the centroid.
    """

    def __init__(self, distances: Distances) -> None:
        self._dtype, longest = LONGEST[distances.metric]
        self._vectors = distances.vectors
        norms = np.sqrt(distances.squared_norms)
        moderate = MODERATE[0] < norms.max() ** 2 < MODERATE[1]
        # Exactly what the rounded vectors are measured from.
        self._center = distances.centroid.astype(self._dtype if moderate else np.float64)
        # Rounding to whole numbers lengthens a vector by half of √n at most.
        reach = _reach(norms)
        self.unit = reach / (longest - math.sqrt(len(self._center)))
        self._factors = np.minimum(1.0, reach / np.maximum(norms, reach)) / self.unit
        self.errors = np.empty(len(norms))
        for rows in metrics.blocks(0, len(self._vectors)):
            ids = np.arange(rows.start, rows.stop)
            self.errors[rows] = self._error(self._vectors[rows], ids)
        self.errors[-1:] = self._error(distances.centroid[None], np.array([-1]))

    def rounded(self, ids: NDArray[np.int64]) -> Rounded:
        """Return the points of the lattice for some words; −1 is the centroid."""
        centred = self._vectors[ids].astype(self._center.dtype, copy=False) - self._center
        centred *= self._factors[ids, None]
        centred[ids < 0] = 0.0
        return self.whole(centred)

    def whole(self, vectors: NDArray[np.floating]) -> Rounded:
        """Round vectors that are in units of the lattice."""
        whole = np.rint(vectors).astype(self._dtype, copy=False)
        squared = np.einsum("ij,ij->i", whole, whole)
        return Rounded(whole, np.floor(squared / 2.0))

    def _error(self, vectors: NDArray[np.floating], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        back = self.unit * self.rounded(ids).whole.astype(np.float64)
        squared = metrics.pair_squared(vectors - self._center.astype(np.float64), back)
        return np.sqrt(squared) * (1.0 + ROUNDING)


def _reach(norms: NDArray[np.float64]) -> float:
    """Return up to which norm vectors are only rounded."""
    usual = OUTLIER * float(np.median(norms[norms > 0])) if norms.any() else 0.0
    return max(SHORTEST, min(float(norms.max()), usual))

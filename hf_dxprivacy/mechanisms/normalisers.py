"""Normalisers of the exponential law for many slopes at once, in one pass over the distances.

Z_s(w) is the sum of exp(−min(s·d(w, y), L)) over all words y, with L = s·γ the same for all slopes.
Distances are sorted into bins that are as wide as the steps between the slopes, and all that is
kept of those in one bin are their moments: over a bin, the weight is a polynomial of the place in
it, up to 1e-13 of the sum. Every γ is an edge of a bin, so no bin is half truncated; and slope k
weighs bin b as slope 0 weighs bin b+k, so that one row of coefficients serves all.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms.certificate_store import STEPS_PER_OCTAVE
from hf_dxprivacy.spaces.distances import Distances

# Words whose distances are computed, and then sorted into bins, together: the cache holds them.
COLUMNS = 2048
SORTED_ROWS = 32

# The interpolation is off by at most (0.011·s·d)^7/(7!·2^6) of a weight. Weights of s·d ≫ ln V do
# not matter beside Z ≥ 1, which leaves 1e-12 of Z for a million words.
DEGREE = 6

# exp(−x) is 1 for smaller x.
NEGLIGIBLE = 1e-17


class Normalisers:
    """Works out ln Z of words for slopes s = rate·2^(k/32).

    Args:
        distances: The distances of V words.
        floor: exp(−L) < 1, the least weight.
        rate: The slope of step 0.
        steps: The steps k, whole numbers.
    """

    def __init__(
        self, distances: Distances, floor: float, rate: float, steps: Sequence[int]
    ) -> None:
        exponent = -math.log(floor)
        first, span = min(steps), max(steps) - min(steps)
        octaves = max(1, math.ceil(math.log2(exponent / NEGLIGIBLE)))
        self._distances = distances
        # Bins are counted up to the largest γ, that of the first step, with one more beyond it.
        self._inside = span + STEPS_PER_OCTAVE * octaves
        self._unit = rate * 2.0 ** (first / STEPS_PER_OCTAVE) / exponent
        coefficients = _coefficients(exponent, self._inside)
        beyond = np.zeros((DEGREE + 1, span + 1))
        beyond[0] = floor
        windows = np.lib.stride_tricks.sliding_window_view(
            np.concatenate([coefficients, beyond], axis=1), self._inside + 1, axis=1
        )
        # (moments, bins, slopes)
        self._table = windows[:, np.asarray(steps) - first].transpose(0, 2, 1).copy()

    def log_sums(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ln Z, (m, slopes), for m words."""
        moments = np.zeros((DEGREE + 1, len(ids), self._inside + 1))
        size = len(self._distances.vectors)
        for start in range(0, size, COLUMNS):
            block = self._distances.rows(ids, slice(start, min(start + COLUMNS, size)))
            for row in range(0, len(ids), SORTED_ROWS):
                part = slice(row, row + SORTED_ROWS)
                self._sort_in(moments[:, part], block[part])
        sums: NDArray[np.float64] = np.matmul(moments, self._table).sum(axis=0)
        return np.log(sums)

    def _sort_in(self, moments: NDArray[np.float64], distances: NDArray[np.float64]) -> None:
        """Add the distances of m words, (m, columns), to their moments, (DEGREE+1, m, bins)."""
        place = distances * self._unit
        np.maximum(place, 2.0 ** (-self._inside / STEPS_PER_OCTAVE), out=place)
        np.log2(place, out=place)
        place *= STEPS_PER_OCTAVE
        place += self._inside
        np.minimum(place, self._inside + 0.5, out=place)
        bins = place.astype(np.int64)
        # From here on the place within the bin, from −1 to 1.
        place -= bins
        place *= 2.0
        place -= 1.0
        lowest = bins.min()
        used = slice(lowest, bins.max() + 1)
        width = used.stop - used.start
        bins += np.arange(len(bins))[:, None] * width - lowest
        cells, powers, size = bins.ravel(), np.ones(bins.size), len(bins) * width
        for moment in moments[:, :, used]:
            moment += np.bincount(cells, powers, size).reshape(moment.shape)
            powers *= place.ravel()


def _coefficients(exponent: float, bins: int) -> NDArray[np.float64]:
    """Return the polynomials of the weights in the bins below γ, (DEGREE+1, bins).

    In bin b, counted from γ downwards, s·d = exponent·2^(−(b − (1+u)/2)/32) with u from −1 to 1.
    """
    nodes = np.cos((np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1))
    middle = np.arange(-bins, 0) + 0.5
    values = np.exp(-exponent * 2.0 ** ((middle + nodes[:, None] / 2.0) / STEPS_PER_OCTAVE))
    return np.linalg.solve(np.vander(nodes, increasing=True), values)

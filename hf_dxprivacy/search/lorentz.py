"""Exact nearest neighbour in the Poincaré ball."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime

# Bytes of one block of scores (queries by words).
BLOCK_BYTES = 1 << 24


class PoincareSearch:
    """Exact search in the Poincaré ball, in float64.

    The distance grows with ‖q−u‖²/((1−‖q‖²)(1−‖u‖²)), so the nearest point minimises
    ‖q−u‖²/(1−‖u‖²). That is well defined for a query on the boundary too, where rounding can
    put it, and it is the inner product of (‖q‖², 1, −2q) with (1, ‖u‖², u)/(1−‖u‖²). Near the
    boundary its terms cancel to many digits even in float64; points that it cannot tell apart are
    compared by their differences from the query. The lowest row wins a tie.

    Args:
        points: (V, n), norms below 1.
        gaps: (V,) 1−‖u‖² of the points, to full relative precision.
    """

    def __init__(self, points: NDArray[np.floating], gaps: NDArray[np.float64]) -> None:
        self._points, self._gaps = points.astype(np.float64, copy=False), gaps
        planes = np.column_stack([np.ones(len(points)), 1.0 - gaps, points]) / gaps[:, None]
        # (n+2, V)
        self._planes = np.ascontiguousarray(planes.T)
        # Bounds of the rounding of products: the terms of ‖q‖²+‖u‖²−2⟨q,u⟩ are at most 1 each.
        self._errors = (4.0 + points.shape[1]) * np.finfo(np.float64).eps / gaps

    def nearest(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row of the nearest point for each query.

        Args:
            queries: (m, n) float64, norms at most 1.

        Returns:
            (m,) int64 rows of `points`.
        """
        _runtime.limit_in_worker()
        largest_error = self._errors.max()
        nearest = np.empty(len(queries), dtype=np.int64)
        step = max(1, BLOCK_BYTES // (8 * len(self._points)))
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            scores = lifted(block) @ self._planes
            best = scores.argmin(axis=1)
            least = scores[np.arange(len(block)), best] + self._errors[best]
            close = scores <= (least + largest_error)[:, None]
            for row in np.flatnonzero(np.count_nonzero(close, axis=1) > 1):
                among = np.flatnonzero(scores[row] - self._errors <= least[row])
                difference = self._points[among] - block[row]
                exact = np.einsum("ij,ij->i", difference, difference) / self._gaps[among]
                best[row] = among[exact.argmin()]
            nearest[start : start + step] = best
        return nearest


def nearest_poincare(
    queries: NDArray[np.float64], points: NDArray[np.floating], gaps: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return (m,) rows of the nearest points; see `PoincareSearch`."""
    return PoincareSearch(points, gaps).nearest(queries)


def lifted(queries: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (‖q‖², 1, −2q) for each query, (m, n+2)."""
    squared = np.einsum("ij,ij->i", queries, queries)
    return np.column_stack([squared, np.ones(len(queries)), -2.0 * queries])

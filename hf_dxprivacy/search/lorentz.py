"""Exact nearest neighbour in the Poincaré ball."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime

# Bytes of one block of scores (queries by words).
BLOCK_BYTES = 1 << 24


def nearest_poincare(
    queries: NDArray[np.float64], points: NDArray[np.floating], gaps: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the row of the nearest point for each query.

    The distance grows with ‖q−u‖²/((1−‖q‖²)(1−‖u‖²)), so the nearest point minimises
    ‖q−u‖²/(1−‖u‖²). That is well defined for a query on the boundary too, where rounding can
    put it, and it is an inner product with (1, ‖u‖², u)/(1−‖u‖²). Near the boundary its terms
    cancel to many digits even in float64; points that it cannot tell apart are compared by their
    differences from the query. The lowest row wins a tie.

    Args:
        queries: (m, n) float64, norms at most 1.
        points: (V, n), norms below 1.
        gaps: (V,) 1−‖u‖² of the points, to full relative precision.

    Returns:
        (m,) int64 rows of `points`.
    """
    _runtime.limit_in_worker()
    points = points.astype(np.float64, copy=False)
    planes, errors = lifted_points(points, gaps)
    largest_error = errors.max()
    nearest = np.empty(len(queries), dtype=np.int64)
    step = max(1, BLOCK_BYTES // (8 * len(points)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        scores = lifted_queries(block) @ planes
        best = scores.argmin(axis=1)
        least = scores[np.arange(len(block)), best] + errors[best]
        close = scores <= (least + largest_error)[:, None]
        for row in np.flatnonzero(np.count_nonzero(close, axis=1) > 1):
            among = np.flatnonzero(scores[row] - errors <= least[row])
            difference = points[among] - block[row]
            exact = np.einsum("ij,ij->i", difference, difference) / gaps[among]
            best[row] = among[exact.argmin()]
        nearest[start : start + step] = best
    return nearest


def lifted_points(
    points: NDArray[np.floating], gaps: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (n+2, V) columns (1, ‖u‖², u)/(1−‖u‖²) to multiply lifted queries with for scores.

    And (V,) bounds of the rounding of these scores. Arguments as for `nearest_poincare`.
    """
    planes = np.column_stack([np.ones(len(points)), 1.0 - gaps, points]) / gaps[:, None]
    # The terms of ‖q‖²+‖u‖²−2⟨q,u⟩ are at most 1 each.
    errors = (4.0 + points.shape[1]) * np.finfo(np.float64).eps / gaps
    return np.ascontiguousarray(planes.T), errors


def lifted_queries(queries: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (‖q‖², 1, −2q) for each query, (m, n+2)."""
    squared = np.einsum("ij,ij->i", queries, queries)
    return np.column_stack([squared, np.ones(len(queries)), -2.0 * queries])

"""Exact nearest neighbour in the Poincaré ball."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads

# Bytes of one block of scores (queries by words).
BLOCK_BYTES = 1 << 24


def nearest_poincare(
    queries: NDArray[np.float64], points: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Return the row of the nearest point for each query.

    The distance grows with ‖q−u‖²/((1−‖q‖²)(1−‖u‖²)), so the nearest point minimises
    ‖q−u‖²/(1−‖u‖²). That is well defined for a query on the boundary too, where rounding can
    put it, and it is an inner product with (1, ‖u‖², u)/(1−‖u‖²). Everything is float64: near
    the boundary the terms cancel to many digits.

    Args:
        queries: (m, n) float64, norms at most 1.
        points: (V, n), norms below 1.

    Returns:
        (m,) int64 rows of `points`.
    """
    _threads.limit_in_worker()
    points = np.asarray(points, dtype=np.float64)
    squared_norms = np.einsum("ij,ij->i", points, points)
    lifted = np.column_stack([np.ones(len(points)), squared_norms, points])
    lifted /= (1.0 - squared_norms)[:, None]
    transposed = np.ascontiguousarray(lifted.T)
    nearest = np.empty(len(queries), dtype=np.int64)
    step = max(1, BLOCK_BYTES // (8 * len(points)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        squared = np.einsum("ij,ij->i", block, block)
        scores = np.column_stack([squared, np.ones(len(block)), -2.0 * block]) @ transposed
        nearest[start : start + step] = scores.argmin(axis=1)
    return nearest

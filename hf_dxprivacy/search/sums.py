"""Exact nearest neighbours of all sums of a point and an offset, at a fraction of a search each.

‖p+z−u‖² is least where ⟨z, u⟩ + ⟨p, u⟩ − ‖u‖²/2 is largest. The first term does not depend on the
point, the others not on the offset: with m points and k offsets there are m+k inner products with
each vector u instead of m·k, and a sum of two numbers for the rest.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads
from hf_dxprivacy.search.euclidean import nearest_euclidean
from hf_dxprivacy.search.rounding import rounding

# Bytes of one block of float32 inner products, and of the sums that are looked at together.
BLOCK_BYTES = 1 << 25
SUM_BYTES = 1 << 20


def nearest_to_sums(
    points: NDArray[np.floating], offsets: NDArray[np.floating], vectors: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return the row of the vector that is nearest to each sum of a point and an offset.

    The sums are compared in float32. Where rounding might decide, `nearest_euclidean` does.

    Args:
        points: (m, n) finite.
        offsets: (k, n) finite; taken in float32.
        vectors: (V, n) float32, C-contiguous.

    Returns:
        (m, k) int64 rows of `vectors`.
    """
    _threads.limit_in_worker()
    points = np.asarray(points)
    noise: NDArray[np.float32] = np.asarray(offsets, dtype=np.float32)
    half_norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64) / 2.0
    nearest = np.empty((len(points), len(noise)), dtype=np.int64)
    margins = np.empty(nearest.shape, dtype=np.float32)
    step = max(1, BLOCK_BYTES // (4 * len(vectors)))
    for rows in _blocks(len(points), step):
        own = points[rows].astype(np.float32) @ vectors.T
        own -= half_norms.astype(np.float32)
        for columns in _blocks(len(noise), step):
            shared = noise[columns] @ vectors.T
            _search(own, shared, nearest[rows, columns], margins[rows, columns])
    # Written so that a sum beyond the range of float32 is unsure too.
    reach = _norms(points)[:, None] + _norms(noise)
    unsure = ~(margins > rounding(reach, float(np.sqrt(2.0 * half_norms.max())), noise.shape[1]))
    point, offset = np.nonzero(unsure)
    nearest[unsure] = nearest_euclidean(points[point] + noise[offset], vectors)
    return nearest


def _search(
    own: NDArray[np.float32],
    shared: NDArray[np.float32],
    nearest: NDArray[np.int64],
    margins: NDArray[np.float32],
) -> None:
    """Fill in the largest entry of each own[i] + shared[j], and by how much it is the largest."""

    @np.errstate(over="ignore", invalid="ignore")
    def search(columns: slice) -> None:
        sums = np.empty_like(shared[columns])
        each = np.arange(len(sums))
        for row, terms in enumerate(own):
            np.add(shared[columns], terms, out=sums)
            best = sums.argmax(axis=1)
            nearest[row, columns] = best
            largest = sums[each, best]
            sums[each, best] = -np.inf
            margins[row, columns] = largest - sums.max(axis=1)

    parts = list(_blocks(len(shared), max(1, SUM_BYTES // (4 * own.shape[1]))))
    workers = 1 if _threads.in_worker() else os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(search, parts):
            pass


def _norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.linalg.norm(vectors.astype(np.float64, copy=False), axis=1)
    return norms


def _blocks(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))

"""Exact nearest neighbour in L2."""

from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.search.threads import limit_threads_in_worker

# A float32 search may order near-ties by rounding error. The true nearest is nearly always among
# the first few, and it is known when it need not be: then more are looked at.
SHORTLISTS = (2, 64)

# Bytes of one block of float64 scores (queries by words), and rows converted to float64 at once.
BLOCK_BYTES = 1 << 24
BLOCK_ROWS = 2048

# Finds k candidates for each query, (m, k) rows in any order, and bounds from below the true
# squared distance of all other vectors, (m,).
Shortlist = Callable[[NDArray[np.float32], int], tuple[NDArray[np.int64], NDArray[np.float64]]]


def nearest_euclidean(
    queries: NDArray[np.floating],
    vectors: NDArray[np.float32],
    shortlist: Shortlist | None = None,
) -> NDArray[np.int64]:
    """Return the row of the nearest vector for each query.

    The search runs in float32 directly on the (memory-mapped) matrix, without a copy of it; a
    shortlist is then ranked in float64. Where rounding may have kept the nearest out of the
    shortlist (a query or a common offset that is huge beside the distances, many equal vectors),
    all vectors are compared in float64. So the answer depends neither on the number of queries in
    a call nor on that of threads. The lowest row wins a tie.

    Args:
        queries: (m, n) finite vectors; taken in float32.
        vectors: (V, n) float32, C-contiguous.
        shortlist: What finds candidates, a matter of speed only; faiss by default.

    Returns:
        (m,) int64 rows of `vectors`.
    """
    limit_threads_in_worker()
    shortlist = shortlist or partial(_by_faiss, vectors)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    nearest = np.empty(len(queries), dtype=np.int64)
    pending = np.arange(len(queries))
    for size in SHORTLISTS:
        if size >= len(vectors) or len(pending) == 0:
            break
        found, outside = shortlist(queries[pending], size)
        found.sort(axis=1)
        nearest[pending], squared = rank(queries[pending], vectors, found)
        pending = pending[~(squared < outside)]
    nearest[pending] = compare_all(queries[pending], vectors)
    return nearest


def rank(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], found: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the nearest of each shortlist in float64.

    Args:
        queries: (m, n) float32.
        vectors: (V, n) float32.
        found: (m, k) rows of `vectors`, ascending in each shortlist; the first one wins a tie.

    Returns:
        (m,) rows of `vectors` and (m,) squared distances.
    """
    squared = np.empty(found.shape)
    for column in range(found.shape[1]):
        difference = vectors[found[:, column]].astype(np.float64)
        difference -= queries
        squared[:, column] = np.einsum("ij,ij->i", difference, difference)
    best = squared.argmin(axis=1)[:, None]
    nearest: NDArray[np.int64] = np.take_along_axis(found, best, axis=1)[:, 0]
    return nearest, np.take_along_axis(squared, best, axis=1)[:, 0]


def _by_faiss(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    coarse, found = faiss.knn(queries, vectors, size)
    return found, least_outside(queries, coarse[:, -1])


def least_outside(queries: NDArray[np.float32], last: NDArray[np.floating]) -> NDArray[np.float64]:
    """Bound from below the true squared distance of what the shortlist left out.

    The search computes ‖q‖²+‖u‖²−2⟨q,u⟩ in float32, which is off by a few roundings of ‖q‖²+‖u‖²
    (by one, in practice); and ‖u‖² is at most twice the squared distance plus twice ‖q‖².

    Args:
        queries: (m, n) float32.
        last: (m,) the largest squared distance of each shortlist, as computed.

    Returns:
        (m,) float64.
    """
    few = (4.0 + 0.5 * np.sqrt(queries.shape[1])) * np.finfo(np.float32).eps
    last = last.astype(np.float64)
    bound: NDArray[np.float64] = last - few * (squared_norms(queries) + last)
    return bound


def compare_all(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Find the nearest of all vectors in float64.

    By ‖u‖²−2⟨q,u⟩, everything measured from one of the vectors. The lowest row wins a tie.

    Args:
        queries: (m, n) float32.
        vectors: (V, n) float32.

    Returns:
        (m,) rows of `vectors`.
    """
    center = vectors[0].astype(np.float64)
    nearest = np.empty(len(queries), dtype=np.int64)
    squared = np.empty(len(vectors))
    step = max(1, BLOCK_BYTES // (8 * len(vectors)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step] - center
        scores = np.empty((len(block), len(vectors)))
        for first in range(0, len(vectors), BLOCK_ROWS):
            part = slice(first, min(first + BLOCK_ROWS, len(vectors)))
            candidates = vectors[part] - center
            squared[part] = squared_norms(candidates)
            np.matmul(-2.0 * block, candidates.T, out=scores[:, part])
        scores += squared
        best = scores.argmin(axis=1)
        # Equal vectors may score differently in the last digits.
        slack = 1e-13 * (squared[best] + np.sqrt(squared[best] * squared_norms(block)))
        close = scores <= (scores.min(axis=1) + slack)[:, None]
        nearest[start : start + step] = close.argmax(axis=1)
    return nearest


def squared_norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the squared norm of each row, (V,) float64."""
    squared: NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return squared

"""Exact nearest neighbour in L2."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.search.blocks import one_thread, rows_within, two_nearest
from hf_dxprivacy.search.rounding import rounding
from hf_dxprivacy.search.threads import limit_threads_in_worker

# A float32 search may order near-ties by rounding error. The true nearest is nearly always among
# the first few, and it is known when it need not be: then more are looked at.
SHORTLISTS = (2, 64)

# Vectors that rounding leaves in question for a query; with more of them, all are compared.
CLOSE = 64

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

    The search runs in float32 directly on the (memory-mapped) matrix, without a copy of it. Where
    rounding might decide, what is in question is compared in float64, and all vectors if that is
    many (a query or a common offset that is huge beside the distances, many equal vectors). So the
    answer depends neither on the number of queries in a call nor on that of threads. The lowest row
    wins a tie.

    Args:
        queries: (m, n) finite vectors; taken in float32.
        vectors: (V, n) float32, C-contiguous.
        shortlist: What finds candidates, a matter of speed only; by default, a search in blocks.

    Returns:
        (m,) int64 rows of `vectors`.
    """
    limit_threads_in_worker()
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if len(queries) == 0:
        return np.empty(0, dtype=np.int64)
    if shortlist is None:
        nearest, pending = _by_blocks(queries, vectors)
    else:
        nearest, pending = _by_shortlists(queries, vectors, shortlist)
    nearest[pending] = compare_all(queries[pending], vectors)
    return nearest


def _by_blocks(
    queries: NDArray[np.float32], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (m,) rows of the nearest, and the queries of which it is not known."""
    found = two_nearest(queries, vectors)
    error = rounding(np.sqrt(squared_norms(queries)), found.largest**0.5, queries.shape[1])
    with np.errstate(invalid="ignore"):
        # In float64; written so that what overflows in float32 is unsure too.
        limits = found.least + 2.0 * error
        unsure = np.flatnonzero(~(limits < found.second))
    rows, known = _among_close(queries[unsure], vectors, limits[unsure], found.blocks[:, unsure])
    found.rows[unsure[known]] = rows
    return found.rows, unsure[~known]


def _among_close(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    limits: NDArray[np.float64],
    blocks: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Compare in float64 the vectors within the limits.

    Returns:
        Rows of the nearest for those queries of which it is known, and (m,) which these are.
    """
    limits = np.where(np.isfinite(limits), limits, -np.inf)
    counts = np.zeros(len(queries), dtype=np.int64)
    pairs = [np.empty((2, 0), dtype=np.int64)]
    with one_thread():
        for query, row in rows_within(queries, vectors, limits, blocks):
            counts += np.bincount(query, minlength=len(queries))
            limits[counts > CLOSE] = -np.inf
            pairs.append(np.stack([query, row]))
    known = np.isfinite(limits) & (counts > 0)
    query, row = np.concatenate(pairs, axis=1)
    query, row = query[known[query]], row[known[query]]
    difference = vectors[row].astype(np.float64) - queries[query]
    order = np.lexsort((row, squared_norms(difference), query))
    _, firsts = np.unique(query[order], return_index=True)
    return row[order[firsts]], known


def _by_shortlists(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], shortlist: Shortlist
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (m,) rows of the nearest, and the queries of which it is not known."""
    nearest = np.empty(len(queries), dtype=np.int64)
    pending = np.arange(len(queries))
    for size in SHORTLISTS:
        if size >= len(vectors) or len(pending) == 0:
            break
        found, outside = shortlist(queries[pending], size)
        found.sort(axis=1)
        nearest[pending], squared = rank(queries[pending], vectors, found)
        pending = pending[~(squared < outside)]
    return nearest, pending


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

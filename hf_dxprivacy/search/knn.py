"""Exact nearest neighbours in L2: in float32 by tiles, with near-ties decided in float64.

faiss multiplies matrices in `knn` only from some number of queries on, 128,000/n since version
1.15; below it the search is five times slower. Here it multiplies always, and the rest is a minimum
over a tile that is still in the cache. The second least distance says how sure the least one is.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime
from hf_dxprivacy._runtime import limit_threads_in_worker


def rounding(norms: NDArray[np.float64], largest: float, dim: int) -> NDArray[np.float64]:
    """Bound the error of ‖q‖²+‖u‖²−2⟨q,u⟩ in float32, up to what all vectors u have in common.

    An inner product of n terms is off by at most n·2⁻²⁴·‖q‖‖u‖, in whatever order it is added up
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The error of ‖q‖² itself
    is the same for all vectors and leaves their order alone; that of adding it is not, and happens
    once for each of the few pieces that a matrix product may cut n into.

    Args:
        norms: ‖q‖, of any shape.
        largest: The largest ‖u‖.
        dim: n.

    Returns:
        As many bounds; infinite or NaN where float32 may overflow.
    """
    float32 = np.finfo(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        products = (dim + 4.0) * largest * (2.0 * norms + largest)
        bound = float32.eps / 2.0 * (products + (4.0 + dim / 64.0) * norms**2)
        safe = (norms + largest) ** 2 < float(float32.max) / 4.0
    # Products below the smallest normal number keep fewer digits, or none.
    return np.where(safe, bound + dim * float(float32.tiny), np.inf)


# Queries and vectors of a block, 2 MB of distances.
QUERIES = 1024
VECTORS = 512


@dataclass(frozen=True)
class TwoNearest:
    """The nearest vector to each of m queries, and bounds on all others.

    Attributes:
        rows: (m,) int64, the row of the nearest vector.
        least: (m,) float32, its squared distance.
        second: (m,) float32, at most the squared distance of every other vector.
        blocks: (B, m) float32, the least squared distance in each block of `VECTORS` vectors.
        largest: The largest squared norm of a vector.
    """

    rows: NDArray[np.int64]
    least: NDArray[np.float32]
    second: NDArray[np.float32]
    blocks: NDArray[np.float32]
    largest: float


def two_nearest(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> TwoNearest:
    """Find the nearest vector to each query in float32, and a bound on the next one.

    A distance is NaN or infinite where float32 overflows.

    Args:
        queries: (m, n) float32, C-contiguous.
        vectors: (V, n) float32, C-contiguous; V >= 1.
    """
    scan = _Scan(queries, vectors)
    pieces = [*product(range(len(scan.blocks)), range(0, len(queries), QUERIES))]
    workers = 1 if _runtime.in_worker() else faiss.omp_get_max_threads()
    workers = min(workers, len(pieces))
    if workers == 1:
        for piece in pieces:
            scan.add(piece)
    else:
        # Each takes the next piece when it is done with one, and has one thread of OpenMP.
        with ThreadPoolExecutor(
            workers, initializer=faiss.omp_set_num_threads, initargs=(1,)
        ) as pool:
            for _ in pool.map(scan.add, pieces):
                pass
    return TwoNearest(scan.rows, scan.least, scan.second, scan.blocks, float(scan.largest.max()))


def rows_within(
    queries: NDArray[np.float32],
    vectors: NDArray[np.float32],
    limits: NDArray[np.float64],
    blocks: NDArray[np.float32],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs of a query and a vector whose squared distance in float32 is within a limit.

    Args:
        queries: (m, n) float32, C-contiguous.
        vectors: (V, n) float32, C-contiguous.
        limits: (m,) limits, which the caller may change between two yields.
        blocks: (B, m) as `TwoNearest` has them; blocks beyond the limit are not looked at.

    Yields:
        (p,) queries and (p,) rows of vectors.
    """
    for block, least in enumerate(blocks):
        first = block * VECTORS
        near = np.flatnonzero(least <= limits)
        for start in range(0, len(near), QUERIES):
            part = near[start : start + QUERIES]
            squared = _squared_distances(queries[part], vectors[first : first + VECTORS])
            query, row = np.nonzero(squared <= limits[part, None])
            yield part[query], row + first


@contextmanager
def one_thread() -> Iterator[None]:
    """Let faiss compute in this thread alone: small products are not worth waiting for others."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class _Scan:
    """The two least distances among the pieces that were added, in any order."""

    def __init__(self, queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> None:
        self._queries, self._vectors = queries, vectors
        self._lock = threading.Lock()
        self.rows = np.zeros(len(queries), dtype=np.int64)
        self.least = np.full(len(queries), np.inf, dtype=np.float32)
        self.second = self.least.copy()
        blocks = -(-len(vectors) // VECTORS)
        self.blocks = np.empty((blocks, len(queries)), dtype=np.float32)
        self.largest = np.zeros(blocks, dtype=np.float32)

    def add(self, piece: tuple[int, int]) -> None:
        """Compare the vectors of a block with some queries, by the first of these."""
        block, start = piece
        first, part = block * VECTORS, slice(start, start + QUERIES)
        vectors = self._vectors[first : first + VECTORS]
        if start == 0:
            self.largest[block] = np.einsum("ij,ij->i", vectors, vectors).max()
        squared = _squared_distances(self._queries[part], vectors)
        # Another thread may change what was found before; any state of it will do.
        columns, least, second = _least(squared, self.least[part])
        self.blocks[block, part] = least
        with self._lock:
            self._merge(part, columns + first, least, second)

    def _merge(
        self,
        part: slice,
        rows: NDArray[np.int64],
        least: NDArray[np.float32],
        second: NDArray[np.float32],
    ) -> None:
        # Minima that hand NaN on: a distance that is unknown must not look like a large one.
        later = np.maximum(self.least[part], least)
        self.second[part] = np.minimum(later, np.minimum(self.second[part], second))
        self.rows[part] = np.where(least < self.least[part], rows, self.rows[part])
        self.least[part] = np.minimum(self.least[part], least)


def _least(
    squared: NDArray[np.float32], before: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Return the columns of the least entries, these, and the second least if it matters.

    It does where the least is below what was found before; elsewhere it is infinity.
    """
    columns = squared.argmin(axis=1)
    least = np.take_along_axis(squared, columns[:, None], axis=1)[:, 0]
    second = np.full_like(least, np.inf)
    better = np.flatnonzero(least < before)
    squared[better, columns[better]] = np.inf
    second[better] = squared[better].min(axis=1)
    return columns, least, second


def _squared_distances(
    queries: NDArray[np.float32], vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    squared: NDArray[np.float32] = faiss.pairwise_distances(queries, vectors)
    return squared


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
    """Return (m,) rows of the nearest, and the queries that rounding leaves undecided."""
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
    """Return (m,) rows of the nearest, and the queries that rounding leaves undecided."""
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


# Bytes of one block of float32 inner products, and of the sums that are looked at together.
PRODUCT_BYTES = 1 << 25
SUM_BYTES = 1 << 20


def nearest_to_sums(
    points: NDArray[np.floating], offsets: NDArray[np.floating], vectors: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return the row of the vector that is nearest to each sum of a point and an offset.

    ‖p+z−u‖² is least where ⟨z, u⟩ + ⟨p, u⟩ − ‖u‖²/2 is largest. The first term does not depend on
    the point, the others not on the offset: with m points and k offsets there are m+k inner
    products with each vector u instead of m·k, and a sum of two numbers for the rest.

    The sums are compared in float32. Where rounding might decide, `nearest_euclidean` does.

    Args:
        points: (m, n) finite.
        offsets: (k, n) finite; taken in float32.
        vectors: (V, n) float32, C-contiguous.

    Returns:
        (m, k) int64 rows of `vectors`.
    """
    _runtime.limit_in_worker()
    points = np.asarray(points)
    noise: NDArray[np.float32] = np.asarray(offsets, dtype=np.float32)
    half_norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64) / 2.0
    nearest = np.empty((len(points), len(noise)), dtype=np.int64)
    margins = np.empty(nearest.shape, dtype=np.float32)
    step = max(1, PRODUCT_BYTES // (4 * len(vectors)))
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
    workers = 1 if _runtime.in_worker() else os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(search, parts):
            pass


def _norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    norms: NDArray[np.float64] = np.linalg.norm(vectors.astype(np.float64, copy=False), axis=1)
    return norms


def _blocks(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))

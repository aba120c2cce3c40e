"""Exact nearest neighbours in L2: in float32 by tiles, with near-ties decided in float64.

faiss multiplies matrices in `knn` only from some number of queries on, 128,000/n since version
1.15; below it the search is five times slower. Here it multiplies always, and the rest is a minimum
over a tile that is still in the cache. The second least distance says how sure the least one is.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime

# Rows of the vectors; matrices in single precision.
Rows = NDArray[np.int64]
Single = NDArray[np.float32]
# (m, k) candidates found in float32, and (m,) by how much the squared distance of every other
# vector is at least larger than the least one.
Shortlist = tuple[Rows, NDArray[np.float64]]

# Queries and vectors of a tile, 2 MB of distances.
QUERIES = 1024
VECTORS = 512

# Candidates for a query. The first is the true nearest nearly always, and it is known when it need
# not be: then the longer list is ranked, and where that does not decide either, all vectors are.
SHORTLISTS = (1, 64)

# Bytes of one block of scores (queries by words), and rows converted to float64 at once.
BLOCK_BYTES = 1 << 24
BLOCK_ROWS = 2048


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


class ExactSearch:
    """Exact search in L2.

    It runs in float32 directly on the (memory-mapped) matrix, without a copy of it. Where rounding
    might decide, which is about one query in a thousand, all vectors are compared in float64. So
    the answer depends neither on the number of queries in a call nor on that of threads. The lowest
    row wins a tie.

    Args:
        vectors: (V, n) float32, C-contiguous.
    """

    def __init__(self, vectors: Single) -> None:
        self._vectors = vectors
        self._largest = float(squared_norms(vectors).max() ** 0.5)
        # So many queries are ranked by longer lists; more are faster compared with all vectors.
        self._listed: float = vectors.shape[1]

    def nearest(self, queries: NDArray[np.floating]) -> Rows:
        """Return the row of the nearest vector for each query.

        Args:
            queries: (m, n) finite vectors; taken in float32.

        Returns:
            (m,) int64 rows of `vectors`.
        """
        _runtime.limit_in_worker()
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        error = rounding(np.sqrt(squared_norms(queries)), self._largest, queries.shape[1])
        nearest = np.empty(len(queries), dtype=np.int64)
        pending = np.arange(len(queries))
        for size in SHORTLISTS:
            most = len(queries) if size == 1 else self._listed
            if size >= len(self._vectors) or not 0 < len(pending) <= most:
                break
            found, margins = self._shortlist(queries[pending], size)
            nearest[pending] = rank(queries[pending], self._vectors, found)
            # Written so that what overflows in float32 is unsure too.
            pending = pending[~(margins > 2.0 * error[pending])]
        nearest[pending] = compare_all(queries[pending], self._vectors)
        return nearest

    def _shortlist(self, queries: Single, size: int) -> Shortlist:
        """Find candidates for each query, (m, size)."""
        return self._two_least(queries) if size == 1 else self._list(queries, size)

    def _list(self, queries: Single, size: int) -> Shortlist:
        found = np.empty((len(queries), size), dtype=np.int64)
        margins = np.empty(len(queries))
        step = max(1, BLOCK_BYTES // (4 * len(self._vectors)))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            squared = faiss.pairwise_distances(queries[part], self._vectors)
            rows = squared.argpartition(size, axis=1)[:, : size + 1]
            least = np.take_along_axis(squared, rows, axis=1).astype(np.float64)
            found[part] = rows[:, :size]
            with np.errstate(invalid="ignore"):
                margins[part] = least[:, size] - least[:, :size].min(axis=1)
        return found, margins

    def _two_least(self, queries: Single) -> Shortlist:
        workers = 1 if _runtime.in_worker() else faiss.omp_get_max_threads()
        workers = min(workers, -(-len(self._vectors) // VECTORS))
        # Each thread has a run of the vectors, and one thread of OpenMP.
        ends = [len(self._vectors) * k // workers for k in range(workers + 1)]
        scan = partial(_scan, queries, self._vectors)
        if workers == 1:
            runs = [scan((ends[0], ends[1]))]
        else:
            with ThreadPoolExecutor(
                workers, initializer=faiss.omp_set_num_threads, initargs=(1,)
            ) as pool:
                runs = list(pool.map(scan, pairwise(ends)))
        rows, least, second = (np.stack(parts) for parts in zip(*runs, strict=True))
        two = np.partition(np.concatenate([least, second]), 1, axis=0)[:2].astype(np.float64)
        found = np.take_along_axis(rows, least.argmin(axis=0)[None], axis=0)
        with np.errstate(invalid="ignore"):
            return found.T, two[1] - two[0]


def _scan(queries: Single, vectors: Single, run: tuple[int, int]) -> tuple[Rows, Single, Single]:
    """Return the nearest row of a run, and the least two squared distances, for each query."""
    rows = np.zeros(len(queries), dtype=np.int64)
    least = np.full(len(queries), np.inf, dtype=np.float32)
    second = least.copy()
    for first in range(run[0], run[1], VECTORS):
        tile = vectors[first : min(first + VECTORS, run[1])]
        for start in range(0, len(queries), QUERIES):
            part = slice(start, start + QUERIES)
            squared = faiss.pairwise_distances(queries[part], tile)
            columns = squared.argmin(axis=1)
            found = np.take_along_axis(squared, columns[:, None], axis=1)[:, 0]
            second[part] = np.minimum(second[part], np.maximum(found, least[part]))
            # The second least of the tile matters only where its least is the least so far.
            better = np.flatnonzero(found < least[part])
            squared[better, columns[better]] = np.inf
            rest = squared[better].min(axis=1)
            rows[start + better] = first + columns[better]
            second[start + better] = np.minimum(second[start + better], rest)
            # A minimum that hands NaN on: an unknown distance must not look like a large one.
            least[part] = np.minimum(least[part], found)
    return rows, least, second


def nearest_euclidean(queries: NDArray[np.floating], vectors: Single) -> Rows:
    """Return (m,) rows of the nearest vectors; see `ExactSearch`."""
    return ExactSearch(vectors).nearest(queries)


def rank(queries: Single, vectors: Single, found: Rows) -> Rows:
    """Return (m,) rows of the nearest of (m, k) found ones, k >= 1, by comparison in float64.

    The lowest row wins a tie.
    """
    if found.shape[1] == 1:
        return found[:, 0]
    squared = np.empty(found.shape)
    for column in range(found.shape[1]):
        difference = vectors[found[:, column]].astype(np.float64)
        difference -= queries
        squared[:, column] = squared_norms(difference)
    ties = squared == squared.min(axis=1, keepdims=True)
    nearest: Rows = np.where(ties, found, len(vectors)).min(axis=1)
    return nearest


def compare_all(queries: Single, vectors: Single) -> Rows:
    """Return (m,) rows of the nearest of all vectors, by comparison in float64.

    By ‖u‖²−2⟨q,u⟩, everything measured from one of the vectors. The lowest row wins a tie.
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


# Candidates among which the two nearest are sought, and lengths that float32 cannot square.
PAIR_LIST, TOO_LONG = 8, 1e15


def two_nearest(queries: NDArray[np.float64], vectors: Single) -> tuple[Rows, NDArray[np.float64]]:
    """Return the rows of the two nearest vectors, (m, 2), nearer one first, and their distances.

    Candidates are found in float32 and ranked in float64. Where there is one vector only, it is
    both.
    """
    _runtime.limit_in_worker()
    size = min(PAIR_LIST, len(vectors))
    short = queries * np.minimum(1.0, TOO_LONG / np.sqrt(squared_norms(queries)))[:, None]
    found = faiss.knn(np.ascontiguousarray(short, dtype=np.float32), vectors, size)[1]
    distances = np.linalg.norm(queries[:, None] - vectors[found], axis=2)
    order = np.lexsort((found, distances))[:, [0, min(1, size - 1)]]
    return np.take_along_axis(found, order, 1), np.take_along_axis(distances, order, 1)


def squared_norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the squared norm of each row, (V,) float64."""
    squared: NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return squared


# Bytes of one block of float32 inner products, and of the sums that are looked at together.
PRODUCT_BYTES = 1 << 25
SUM_BYTES = 1 << 20


def nearest_to_sums(
    points: NDArray[np.floating], offsets: NDArray[np.floating], vectors: Single
) -> Rows:
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
    noise: Single = np.asarray(offsets, dtype=np.float32)
    half_norms = squared_norms(vectors) / 2.0
    nearest = np.empty((len(points), len(noise)), dtype=np.int64)
    margins = np.empty(nearest.shape, dtype=np.float32)
    step = max(1, PRODUCT_BYTES // (4 * len(vectors)))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        own = points[rows].astype(np.float32) @ vectors.T
        own -= half_norms.astype(np.float32)
        for first in range(0, len(noise), step):
            columns = slice(first, first + step)
            shared = noise[columns] @ vectors.T
            _largest_sums(own, shared, nearest[rows, columns], margins[rows, columns])
    # Written so that a sum beyond the range of float32 is unsure too.
    norms = [np.sqrt(squared_norms(each.astype(np.float64))) for each in (points, noise)]
    error = rounding(np.add.outer(*norms), float((2.0 * half_norms.max()) ** 0.5), noise.shape[1])
    point, offset = np.nonzero(~(margins > error))
    nearest[point, offset] = nearest_euclidean(points[point] + noise[offset], vectors)
    return nearest


def _largest_sums(own: Single, shared: Single, nearest: Rows, margins: Single) -> None:
    """Fill in the largest entry of each own[i] + shared[j], and by how much it is the largest."""
    step = max(1, SUM_BYTES // (4 * own.shape[1]))

    @np.errstate(over="ignore", invalid="ignore")
    def search(start: int) -> None:
        columns = slice(start, start + step)
        sums = np.empty_like(shared[columns])
        each = np.arange(len(sums))
        for row, terms in enumerate(own):
            np.add(shared[columns], terms, out=sums)
            best = sums.argmax(axis=1)
            nearest[row, columns] = best
            largest = sums[each, best]
            sums[each, best] = -np.inf
            margins[row, columns] = largest - sums.max(axis=1)

    workers = 1 if _runtime.in_worker() else os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(search, range(0, len(shared), step)):
            pass

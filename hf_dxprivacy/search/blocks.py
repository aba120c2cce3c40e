"""The two least squared distances of each query, block by block in float32.

faiss multiplies matrices in `knn` only from some number of queries on, 128,000/n since version
1.15; below it the search is five times slower. Here it multiplies always, and the rest is a minimum
over a block that is still in the cache. The second least distance says how sure the least one is.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads

# Queries and vectors of a block, 2 MB of distances.
QUERIES = 1024
VECTORS = 512


@dataclass(frozen=True)
class TwoNearest:
    """What is nearest to each of m queries among some vectors.

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
    """Return the nearest vector to each query as float32 sees it, and how near the next one is.

    A distance is NaN or infinite where float32 overflows.

    Args:
        queries: (m, n) float32, C-contiguous.
        vectors: (V, n) float32, C-contiguous; V >= 1.
    """
    scan = _Scan(queries, vectors)
    pieces = [*product(range(len(scan.blocks)), range(0, len(queries), QUERIES))]
    workers = 1 if _threads.in_worker() else faiss.omp_get_max_threads()
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

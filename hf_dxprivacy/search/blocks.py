"""The two least squared distances of each query, block by block in float32.

faiss multiplies matrices in `knn` only from some number of queries on, 128,000/n since version
1.15; below it the search is five times slower. Here it multiplies always, and the rest is a minimum
over a block that is still in the cache. The second least distance says how sure the least one is.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

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
        largest: The largest squared norm of a vector.
    """

    rows: NDArray[np.int64]
    least: NDArray[np.float32]
    second: NDArray[np.float32]
    largest: float

    def merged(self, other: "TwoNearest") -> "TwoNearest":
        """Return what is nearest among the vectors of both."""
        # Minima that hand NaN on: a distance that is unknown must not look like a large one.
        later = np.maximum(self.least, other.least)
        return TwoNearest(
            np.where(other.least < self.least, other.rows, self.rows),
            np.minimum(self.least, other.least),
            np.minimum(later, np.minimum(self.second, other.second)),
            max(self.largest, other.largest),
        )


def two_nearest(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> TwoNearest:
    """Return the nearest vector to each query as float32 sees it, and how near the next one is.

    A distance is NaN or infinite where float32 overflows.

    Args:
        queries: (m, n) float32, C-contiguous.
        vectors: (V, n) float32, C-contiguous; V >= 1.
    """
    workers = 1 if _threads.in_worker() else faiss.omp_get_max_threads()
    workers = min(workers, -(-len(vectors) // VECTORS))
    if workers == 1:
        return _scan(queries, vectors, 0, len(vectors))
    cuts = np.linspace(0, len(vectors), workers + 1).astype(int).tolist()
    # One thread of OpenMP in each of these, none of which waits for another.
    with ThreadPoolExecutor(workers, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        scan = pool.map(lambda k: _scan(queries, vectors, cuts[k], cuts[k + 1]), range(workers))
        return reduce(TwoNearest.merged, scan)


def rows_within(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], limits: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs of a query and a vector whose squared distance in float32 is within a limit.

    Args:
        queries: (m, n) float32, C-contiguous.
        vectors: (V, n) float32, C-contiguous.
        limits: (m,) limits, which the caller may change between two yields.

    Yields:
        (p,) queries and (p,) rows of vectors.
    """
    for first in range(0, len(vectors), VECTORS):
        for start in range(0, len(queries), QUERIES):
            part = slice(start, start + QUERIES)
            squared = _squared_distances(queries[part], vectors[first : first + VECTORS])
            query, row = np.nonzero(squared <= limits[part, None])
            yield query + start, row + first


def _scan(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], first: int, end: int
) -> TwoNearest:
    rows = np.zeros(len(queries), dtype=np.int64)
    least = np.full(len(queries), np.inf, dtype=np.float32)
    found = TwoNearest(rows, least, least.copy(), 0.0)
    for row in range(first, end, VECTORS):
        block = vectors[row : min(row + VECTORS, end)]
        norm = float(np.einsum("ij,ij->i", block, block).max())
        parts = [
            _least(_squared_distances(queries[part], block), found.least[part])
            for part in (slice(k, k + QUERIES) for k in range(0, len(queries), QUERIES))
        ]
        columns, nearest, second = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        found = found.merged(TwoNearest(columns + row, nearest, second, norm))
    return found


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

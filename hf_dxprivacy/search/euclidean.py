"""Exact nearest neighbour in L2."""

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads

# A float32 search may order near-ties by rounding error; the true nearest is among this many.
SHORTLIST = 4


def nearest_euclidean(
    queries: NDArray[np.floating], vectors: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Return the row of the nearest vector for each query.

    The search runs in float32 directly on the (memory-mapped) matrix, without a copy of it; a
    shortlist is then ranked in float64, so that the answer depends neither on the number of
    queries in a call nor on that of threads. The lowest row wins a tie.

    Args:
        queries: (m, n) vectors.
        vectors: (V, n) float32, C-contiguous.

    Returns:
        (m,) int64 rows of `vectors`.
    """
    if len(queries) == 0:
        return np.empty(0, dtype=np.int64)
    _threads.limit_in_worker()
    if _threads.in_worker():
        # OpenMP keeps this number per thread, so it is set where the search is called.
        faiss.omp_set_num_threads(1)
    shortlist = min(SHORTLIST, len(vectors))
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    _, found = faiss.knn(queries, vectors, shortlist)
    found.sort(axis=1)
    return _rank(queries, vectors, found)


def _rank(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], found: NDArray[np.int64]
) -> NDArray[np.int64]:
    squared = np.empty(found.shape)
    for column in range(found.shape[1]):
        difference = vectors[found[:, column]].astype(np.float64)
        difference -= queries
        squared[:, column] = np.einsum("ij,ij->i", difference, difference)
    best: NDArray[np.int64] = np.take_along_axis(found, squared.argmin(axis=1)[:, None], axis=1)
    return best[:, 0]

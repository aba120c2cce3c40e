"""What an index finds, beside what there is to be found."""

import faiss
import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.search.euclidean import nearest_euclidean
from hf_dxprivacy.search.index import SHORTLIST, VectorIndex


def compare_with_flat(index: VectorIndex, queries: NDArray[np.floating]) -> dict[str, float]:
    """Compare an index with exact search.

    Args:
        index: The index.
        queries: (m, n) finite vectors, m >= 1.

    Returns:
        Parts of 1: "recall_at_1", how often the first candidate is the nearest vector;
        "recall_at_10", how many of the ten nearest are among the ten candidates; and
        "changed_outputs", how often another vector is found in the end.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    nearest = nearest_euclidean(queries, index.vectors)
    _, ten = faiss.knn(queries, index.vectors, min(10, len(index.vectors)))
    found = index.candidates(queries, SHORTLIST)
    return {
        "recall_at_1": float((found[:, 0] == nearest).mean()),
        "recall_at_10": float((ten[:, :, None] == found[:, None, :]).any(axis=2).mean()),
        "changed_outputs": float((index.search(queries) != nearest).mean()),
    }

"""Nearest vectors: a deterministic function of a noisy vector, hence free of privacy cost."""

from hf_dxprivacy.search.ann_index import VectorIndex, build_index, compare_with_flat
from hf_dxprivacy.search.knn import ExactSearch, nearest_euclidean, nearest_to_sums, two_nearest
from hf_dxprivacy.search.lorentz import PoincareSearch, nearest_poincare

__all__ = [
    "ExactSearch",
    "PoincareSearch",
    "VectorIndex",
    "build_index",
    "compare_with_flat",
    "nearest_euclidean",
    "nearest_poincare",
    "nearest_to_sums",
    "two_nearest",
]

"""Nearest vectors: a deterministic function of a noisy vector, hence free of privacy cost."""

from hf_dxprivacy.search.euclidean import nearest_euclidean
from hf_dxprivacy.search.hyperbolic import nearest_poincare
from hf_dxprivacy.search.index import VectorIndex, build_index
from hf_dxprivacy.search.quality import compare_with_flat
from hf_dxprivacy.search.sums import nearest_to_sums

__all__ = [
    "VectorIndex",
    "build_index",
    "compare_with_flat",
    "nearest_euclidean",
    "nearest_poincare",
    "nearest_to_sums",
]

"""Nearest vectors: a deterministic function of a noisy vector, hence free of privacy cost."""

from hf_dxprivacy.search.euclidean import nearest_euclidean
from hf_dxprivacy.search.hyperbolic import nearest_poincare
from hf_dxprivacy.search.index import VectorIndex, build_index

__all__ = ["VectorIndex", "build_index", "nearest_euclidean", "nearest_poincare"]

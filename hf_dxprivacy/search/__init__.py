"""Nearest vectors: a deterministic function of a noisy vector, hence free of privacy cost."""

from hf_dxprivacy.search.euclidean import nearest_euclidean
from hf_dxprivacy.search.hyperbolic import nearest_poincare

__all__ = ["nearest_euclidean", "nearest_poincare"]

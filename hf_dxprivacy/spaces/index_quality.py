"""Approximate-search indexes of spaces: built, and compared with exact search."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import VectorIndex, build_index, compare_with_flat
from hf_dxprivacy.spaces.distances import sample_rows

if TYPE_CHECKING:
    from hf_dxprivacy.spaces.space import EmbeddingSpace

# Noise for which an index is measured: its standard deviation along one direction, in median
# distances to the nearest neighbour. A word becomes another where noise exceeds half of one.
NOISE = (0.125, 0.25, 0.5)


def build(space: EmbeddingSpace, kind: str) -> VectorIndex:
    """Build an index over the vectors of a space, and compare it with exact search.

    Raises:
        InvalidTypeError: If the kind is not a string.
        InvalidValueError: If the space is not Euclidean, or faiss cannot build such an index.
    """
    if space.metric != "euclidean":
        raise InvalidValueError(
            f"index artifacts are for Euclidean spaces; a space with the metric {space.metric!r} "
            "uses exact search"
        )
    index = build_index(np.ascontiguousarray(space.vectors, dtype=np.float32), kind)
    return replace(index, quality=_quality(index, space))


def _quality(index: VectorIndex, space: EmbeddingSpace) -> dict[str, Any]:
    """Compare with exact search, for words as they are and under noise of several sizes."""
    rows = sample_rows(len(space))
    step = space.neighbour_distances()[1]
    epsilons = [math.sqrt(space.dim) / (noise * step) for noise in NOISE] if step > 0 else []
    rng = keyed_generator(0)
    words = space.points(rows)
    measured: list[dict[str, Any]] = [{"epsilon": None, **compare_with_flat(index, words)}]
    for epsilon in epsilons:
        noise = multivariate_laplace(rng, len(rows), space.dim, epsilon)
        measured.append({"epsilon": epsilon, **compare_with_flat(index, words + noise)})
    return {"words": len(rows), "noise": measured}

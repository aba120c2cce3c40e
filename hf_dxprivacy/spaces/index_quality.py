"""Approximate-search indexes of spaces: built, and compared with exact search."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import VectorIndex, build_index, compare_with_flat
from hf_dxprivacy.spaces.distances import Distances, sample_rows

# Noise for which an index is measured: its standard deviation along one direction, in median
# distances to the nearest neighbour. A word becomes another where noise exceeds half of one.
NOISE = (0.125, 0.25, 0.5)


def build(space: Distances, step: float, kind: str) -> VectorIndex:
    """Build an index over the vectors of a space, and compare it with exact search.

    Args:
        space: The space.
        step: Its median distance to the nearest neighbour.
        kind: See `build_index`.

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
    return replace(index, quality=_quality(index, space, step))


def _quality(index: VectorIndex, space: Distances, step: float) -> dict[str, Any]:
    """Compare with exact search, for words as they are and under noise of several sizes."""
    size, dim = space.vectors.shape
    rows = sample_rows(size)
    epsilons = [math.sqrt(dim) / (noise * step) for noise in NOISE] if step > 0 else []
    rng = keyed_generator(0)
    words = space.points(rows)
    measured: list[dict[str, Any]] = [{"epsilon": None, **compare_with_flat(index, words)}]
    for epsilon in epsilons:
        noise = multivariate_laplace(rng, len(rows), dim, epsilon)
        measured.append({"epsilon": epsilon, **compare_with_flat(index, words + noise)})
    return {"words": len(rows), "noise": measured}

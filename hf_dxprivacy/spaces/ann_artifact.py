"""Approximate-search indexes of spaces: built, measured, stored, and loaded if they fit.

The file is read by faiss, in C++. It is handed over only if its digest is the one in
``config.json``, which shows damage and exchange, not malice: load the index of a publisher only if
you would run their code.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import HubOptions, tensors
from hf_dxprivacy.hub.artifact import CONFIG, read_config, sidecar_entry
from hf_dxprivacy.hub.download import ArtifactSource
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import VectorIndex, build_index, compare_with_flat
from hf_dxprivacy.spaces.distances import sample_rows

if TYPE_CHECKING:
    from hf_dxprivacy.spaces.space import EmbeddingSpace

FILE = "index.faiss"
ENTRY = "index"

# Noise for which an index is measured: its standard deviation along one direction, in median
# distances to the nearest neighbour. A word becomes another where noise exceeds half of one.
NOISE = (0.125, 0.25, 0.5)

_FIELDS: dict[str, type] = {
    **dict.fromkeys(("kind", "factory", "faiss", "sha256", "vectors_sha256"), str),
    "quality": dict,
}


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
    index = build_index(_single(space.vectors), kind)
    return replace(index, quality=_quality(index, space))


def entry(index: VectorIndex, vectors_sha256: str) -> dict[str, Any]:
    """Return the entry of an index in ``config.json``.

    Args:
        index: The index.
        vectors_sha256: SHA-256 of the vectors that it belongs to, in hexadecimal.
    """
    return {
        "kind": index.kind,
        "factory": index.factory,
        "faiss": index.faiss_version,
        "sha256": index.sha256,
        "vectors_sha256": vectors_sha256,
        "quality": index.quality,
    }


def load(
    space: EmbeddingSpace,
    kind: str,
    config: dict[str, Any],
    source: ArtifactSource,
    access: HubOptions,
) -> VectorIndex:
    """Load the index that is stored beside the vectors of a space.

    Args:
        space: The space.
        kind: The kind of index that is wanted; any other is refused.
        config: What ``config.json`` says.
        source: Where the space was loaded from.
        access: How to reach the Hub.

    Raises:
        ArtifactError: If there is no such index, it belongs to other vectors, or it is damaged.
        HubError: If the Hub refuses it or cannot be reached.
    """
    remedy = f"make one with space.build_index({kind!r}), or load without index="
    path = source.folder / CONFIG
    if config.get(ENTRY) is None:
        raise ArtifactError(f"{path}: this space is stored without an index; {remedy}")
    stored = sidecar_entry(config, ENTRY, _FIELDS, path, remedy)
    if stored["kind"] != kind:
        raise ArtifactError(
            f"{path}: the index is of kind {stored['kind']!r}, not {kind!r}; {remedy}"
        )
    return source.sidecar(FILE, access, remedy, lambda path: _read(path, stored, space))


def kind_in(folder: Path) -> str | None:
    """Return the kind of the index that a folder holds; None if it holds none.

    Raises:
        ArtifactError: If the folder holds no artifact, or one of which the index is not described.
    """
    config = read_config(folder)
    if config.get(ENTRY) is None:
        return None
    stored = sidecar_entry(config, ENTRY, _FIELDS, folder / CONFIG, "save the space again")
    return str(stored["kind"])


def _read(path: Path, stored: dict[str, Any], space: EmbeddingSpace) -> VectorIndex:
    if stored["vectors_sha256"] != space.vectors_sha256:
        raise ArtifactError(f"{path}: the index was built for other vectors than those beside it")
    content = tensors.read_bytes(path, stored["sha256"])
    try:
        return VectorIndex(
            kind=stored["kind"],
            factory=stored["factory"],
            content=content,
            vectors=_single(space.vectors),
            quality=stored["quality"],
            faiss_version=stored["faiss"],
            stored_sha256=stored["sha256"],
        )
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from error


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


def _single(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.ascontiguousarray(vectors, dtype=np.float32)

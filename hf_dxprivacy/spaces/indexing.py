"""The index of a space: built and measured, stored beside the vectors, read only if it fits them.

Its file is read by faiss, in C++. It is handed over only if its digest is the one in
``config.json``, which shows damage and exchange, not malice: ask for the index of somebody else
only if you would run their code.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, HubFileNotFoundError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, mapping
from hf_dxprivacy.hub.folder import CONFIG, read_config
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import VectorIndex, build_index, compare_with_flat
from hf_dxprivacy.spaces.base import WordSpace
from hf_dxprivacy.spaces.locate import Place
from hf_dxprivacy.spaces.nearest import sample_rows

FILE = "index.faiss"

# Noise for which an index is measured: its standard deviation along one direction, in median
# distances to the nearest neighbour. A word becomes another where noise exceeds half of one.
NOISE = (0.125, 0.25, 0.5)

# What a configuration says of an index.
_ENTRIES = {
    "kind": str,
    "factory": str,
    "faiss": str,
    "sha256": str,
    "vectors_sha256": str,
    "quality": dict,
}


def build(space: WordSpace, kind: str) -> VectorIndex:
    """Build an index over the vectors of a space, and compare it with exact search.

    Raises:
        InvalidTypeError: If the kind is not a string.
        InvalidValueError: If the space is not Euclidean, or faiss can not build such an index.
    """
    if space.metric != "euclidean":
        raise InvalidValueError(
            f"index artifacts are for Euclidean spaces; a space with the metric {space.metric!r} "
            "uses exact search"
        )
    index = build_index(_single(space.vectors), kind)
    return replace(index, quality=_quality(index, space))


def entry(index: VectorIndex, vectors_sha256: str) -> dict[str, Any]:
    """Return what the configuration of a space says of its index.

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
    space: WordSpace, kind: str, config: dict[str, Any], place: Place, access: HubAccess
) -> VectorIndex:
    """Load the index that is stored beside the vectors of a space.

    Args:
        space: The space.
        kind: The kind of index that is wanted; any other is refused.
        config: What ``config.json`` says.
        place: Where the space was loaded from; on the Hub, the index is fetched from that commit.
        access: How to reach the Hub.

    Raises:
        ArtifactError: If there is no such index, it belongs to other vectors, or it is damaged.
        HubError: If the Hub refuses it or can not be reached.
    """
    try:
        stored = _stored(config, kind, place.folder / CONFIG)
        path = place.file(FILE, access)
        with place.named():
            return _read(path, stored, space)
    except (ArtifactError, HubFileNotFoundError) as error:
        raise ArtifactError(
            f"{error}; make one with space.build_index({kind!r}), or load without index="
        ) from error


def kind_in(folder: Path) -> str | None:
    """Return the kind of the index that a folder holds; None if it holds none.

    Raises:
        ArtifactError: If the folder holds no artifact, or one of which the index is not described.
    """
    config = read_config(folder)
    return None if config.get("index") is None else str(_described(config, folder / CONFIG)["kind"])


def _stored(config: dict[str, Any], kind: str, path: Path) -> dict[str, Any]:
    if config.get("index") is None:
        raise ArtifactError(f"{path}: this space is stored without an index")
    stored = _described(config, path)
    if stored["kind"] != kind:
        raise ArtifactError(f"{path}: the index is of kind {stored['kind']!r}, not {kind!r}")
    return stored


def _described(config: dict[str, Any], path: Path) -> dict[str, Any]:
    stored = config["index"]
    if not isinstance(stored, dict) or not all(
        isinstance(stored.get(name), expected) for name, expected in _ENTRIES.items()
    ):
        raise ArtifactError(f"{path}: the entry index lacks one of {', '.join(_ENTRIES)}")
    return stored


def _read(path: Path, stored: dict[str, Any], space: WordSpace) -> VectorIndex:
    if stored["vectors_sha256"] != space.vectors_sha256:
        raise ArtifactError(f"{path}: the index was built for other vectors than those beside it")
    content = mapping.read_bytes(path, stored["sha256"])
    vectors = _single(space.vectors)
    about = {name: stored[name] for name in ("kind", "factory", "quality")}
    try:
        index = VectorIndex(
            content=content, vectors=vectors, faiss_version=stored["faiss"], **about
        )
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from error
    # Computing it once more would fill memory with all the pages that are mapped.
    vars(index)["sha256"] = stored["sha256"]
    return index


def _quality(index: VectorIndex, space: WordSpace) -> dict[str, Any]:
    """Compare with exact search, for words as they are and under noise of several sizes."""
    rows = sample_rows(len(space))
    step = space.neighbour_distances()[1]
    epsilons = [math.sqrt(space.dim) / (noise * step) for noise in NOISE] if step > 0 else []
    rng = keyed_generator(0)
    words = space.points(rows)
    measured: list[dict[str, Any]] = [{"epsilon": None, **compare_with_flat(index, words)}]
    for epsilon in epsilons:
        noisy = words + multivariate_laplace(rng, len(rows), space.dim, epsilon)
        measured.append({"epsilon": epsilon, **compare_with_flat(index, noisy)})
    return {"words": len(rows), "noise": measured}


def _single(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.ascontiguousarray(vectors, dtype=np.float32)

"""Artifacts and records written, with the digests that reading them checks."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.hub.artifact import (
    CONFIG,
    HEADER,
    RESERVED,
    TENSOR,
    VECTORS,
    VOCABULARY,
    bind,
    read_config,
    to_json,
    vocabulary_bytes,
)
from hf_dxprivacy.hub.atomic import atomic_write, current_folder


def write_record(path: Path, entries: Mapping[str, Any]) -> None:
    """Write a JSON object with what `artifact.read_record` checks, in one atomic step."""
    record = HEADER | dict(entries)
    atomic_write(path, [to_json(bind(record))])


def write_artifact(
    folder: str | Path,
    *,
    vectors: NDArray[np.floating],
    words: Sequence[str],
    config: Mapping[str, Any],
    files: Mapping[str, Iterable[bytes | memoryview]] | None = None,
) -> None:
    """Write the files of an artifact one by one, ``config.json`` last; see `atomic_folder`.

    Args:
        folder: Created if missing. Files of an artifact already there are replaced.
        vectors: (V, n) float16, float32 or float64.
        words: V distinct words without line breaks.
        config: JSON-serialisable entries to store beside those of `RESERVED`.
        files: Contents of further files, in pieces, by name; what is read from them should be bound
            by a digest in `config`.

    Raises:
        InvalidValueError: If words and vectors do not go together or the config sets a reserved
            entry.
        InvalidTypeError: If the config is not JSON-serialisable.
    """
    folder = Path(folder)
    _refuse_reserved(config)
    if vectors.ndim != 2 or len(vectors) != len(words) or vectors.size == 0:
        raise InvalidValueError(
            f"expected vectors of shape ({len(words)}, n) with n >= 1 for {len(words)} words, "
            f"got {vectors.shape}"
        )
    if vectors.dtype.name not in ("float16", "float32", "float64"):
        raise InvalidValueError(
            f"expected float16, float32 or float64 vectors, got {vectors.dtype}"
        )
    vocabulary = vocabulary_bytes(words)
    entries = {
        **HEADER,
        "size": len(words),
        "dim": vectors.shape[1],
        "dtype": vectors.dtype.name,
        "vectors_sha256": tensors.sha256({TENSOR: vectors}),
        "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
        **config,
    }
    text = to_json(bind(entries))
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / VECTORS, tensors.pieces({TENSOR: vectors}))
    atomic_write(folder / VOCABULARY, [vocabulary])
    for name, pieces in (files or {}).items():
        atomic_write(folder / name, pieces)
    atomic_write(folder / CONFIG, [text])


def update_config(folder: str | Path, changes: Mapping[str, Any]) -> None:
    """Replace some top-level entries of ``config.json``, in one atomic step.

    Raises:
        InvalidValueError: If an entry of `RESERVED` is among them.
        ArtifactError: If the configuration cannot be read.
    """
    _refuse_reserved(changes)
    folder = current_folder(folder)
    atomic_write(folder / CONFIG, [to_json(bind(read_config(folder) | dict(changes)))])


def _refuse_reserved(config: Mapping[str, Any]) -> None:
    if taken := sorted(RESERVED & set(config)):
        raise InvalidValueError(
            f"the config entries {', '.join(taken)} follow from the arrays and cannot be set"
        )

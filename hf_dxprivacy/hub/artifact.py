"""Artifacts on disk: a configuration, vectors and words in a folder that is checked on reading.

A space is ``config.json``, ``vectors.safetensors`` and ``vocabulary.txt`` (one word a line, UTF-8,
in row order). The configuration carries the SHA-256 of the other two, and of its own entries but
the provenance. Nothing in a folder is ever executed.
"""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError
from hf_dxprivacy.hub import tensors

FORMAT_VERSION = 1
LIBRARY_NAME = "hf_dxprivacy"
HEADER = {"format_version": FORMAT_VERSION, "library_name": LIBRARY_NAME}
CONFIG = "config.json"
# In the folder of a privatizer, which holds no artifact.
PRIVATIZER = "privatizer.json"
# In the folder of a pool of sentences, beside the artifact of its space.
ENCODER = "encoder.json"
VECTORS, TENSOR = "vectors.safetensors", "vectors"
VOCABULARY = "vocabulary.txt"
# The card of anything that is published, and the picture on it.
README, PICTURE = "README.md", "privacy.png"

# SHA-256 of the other entries, in hexadecimal. Artifacts of version 0.2 have none, and what is no
# space has one since 0.4.
CONFIG_DIGEST = "config_sha256"
# Free text about the origin, which its owner may edit by hand.
UNBOUND = frozenset({CONFIG_DIGEST, "provenance"})

# Entries that `writing.write_artifact` derives from the arrays.
DERIVED = frozenset({*HEADER, "size", "dim", "dtype", "vectors_sha256", "vocabulary_sha256"})
RESERVED = DERIVED | {CONFIG_DIGEST}

# Errors of NumPy and zipfile for a damaged archive of arrays, and of what is made from it.
UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(ValueError, KeyError, TypeError),
)


def cache_dir() -> Path:
    """Return the user's cache folder for this package; it need not exist yet.

    The first of: ``$HF_DXPRIVACY_CACHE``, ``$HF_HOME/dxprivacy``,
    ``$XDG_CACHE_HOME/huggingface/dxprivacy``, ``~/.cache/huggingface/dxprivacy``. The variables are
    read at each call.
    """
    if own := os.environ.get("HF_DXPRIVACY_CACHE"):
        return Path(own).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "dxprivacy"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface" / "dxprivacy"


def read_json(path: Path, hint: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ArtifactError: If it cannot be read, with the hint what the folder was expected to be, or
            if it is truncated or no JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}); {hint}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: truncated or not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ArtifactError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return an object as a JSON file.

    Raises:
        InvalidTypeError: If it holds something that JSON does not have.
    """
    try:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"the config is not JSON-serialisable: {error}") from error
    return f"{text}\n".encode()


def read_record(path: Path, hint: str) -> dict[str, Any]:
    """Read the entries of a JSON object that `writing.write_record` wrote.

    Raises:
        ArtifactError: If it cannot be read, is damaged or altered, of another library or of a newer
            format.
    """
    record = _read_headed(path, hint)
    require_unaltered(path, record)
    return {name: v for name, v in record.items() if name not in (*HEADER, CONFIG_DIGEST)}


def _read_headed(path: Path, hint: str) -> dict[str, Any]:
    record = read_json(path, hint)
    version = record.get("format_version")
    if record.get("library_name") != LIBRARY_NAME or type(version) is not int:
        raise ArtifactError(f"{path}: not written by {LIBRARY_NAME}")
    if version > FORMAT_VERSION:
        raise ArtifactError(
            f"{path}: format_version is {version}, this version reads up to {FORMAT_VERSION}; "
            "run: pip install --upgrade hf-dxprivacy"
        )
    if version < 1:
        raise ArtifactError(
            f"{path}: format_version is {version}, and the first format is 1; the file was "
            "altered: fetch or save it again"
        )
    return record


def require_fields(path: Path, entries: Any, fields: Mapping[str, Any]) -> None:
    """Require a JSON object to have exactly some fields; privacy may rest on any of them.

    Args:
        path: Its file, for the message.
        entries: The object, without the header.
        fields: The type, or types, of each field.

    Raises:
        ArtifactError: If a field is missing, unknown, or of another type.
    """
    if not isinstance(entries, dict):
        raise ArtifactError(f"{path}: expected a JSON object, got {type(entries).__name__}")
    if missing := sorted(set(fields) - set(entries)):
        raise ArtifactError(f"{path}: missing {', '.join(missing)}; save it again")
    if unknown := sorted(set(entries) - set(fields)):
        raise ArtifactError(
            f"{path}: unknown {', '.join(unknown)}; the file was altered, or written by a newer "
            "version (run: pip install --upgrade hf-dxprivacy)"
        )
    for name, kind in fields.items():
        # True is an int to Python.
        if not isinstance(entries[name], kind) or (
            isinstance(entries[name], bool) and kind is not bool
        ):
            raise ArtifactError(f"{path}: {name} cannot be {entries[name]!r}; save it again")


class Artifact(NamedTuple):
    """Content of the folder of a space: read-only (V, n) vectors, V words, and its config."""

    vectors: NDArray[np.floating]
    words: tuple[str, ...]
    config: dict[str, Any]


def read_artifact(folder: Path) -> Artifact:
    """Read and check an artifact; its vectors are memory-mapped, so that processes share them.

    Raises:
        ArtifactError: If a file is missing, truncated, altered, of a newer format, or does not
            belong to the others; names the file.
    """
    config = read_config(folder)
    path = folder / VECTORS
    stored = tensors.read(path, config["vectors_sha256"])
    vectors = stored.pop(TENSOR, np.empty(0))
    if stored or vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ArtifactError(
            f"{path}: expected a safetensors header with one two-dimensional tensor {TENSOR!r} of "
            "F16, F32, F64"
        )
    for name, found in (("dtype", vectors.dtype.name), ("dim", vectors.shape[1])):
        if config[name] != found:
            raise ArtifactError(f"{path}: {name} is {found}, not {config[name]}")
    path = folder / VOCABULARY
    content = tensors.read_file(path, config["vocabulary_sha256"])
    try:
        *words, rest = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: not UTF-8 at byte {error.start}") from error
    if rest:
        raise ArtifactError(f"{path}: the last line does not end in a newline")
    if not len(words) == len(vectors) == config["size"]:
        raise ArtifactError(
            f"{folder / CONFIG}: expected {config['size']} words and vectors, got {len(words)} "
            f"words and {len(vectors)} vectors"
        )
    return Artifact(vectors, tuple(words), config)


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json`` of an artifact and check what this version relies on.

    Raises:
        ArtifactError: If it is missing, malformed, incomplete or of a newer format.
    """
    path = folder / CONFIG
    if not path.is_file() and path.with_name(PRIVATIZER).is_file():
        raise ArtifactError(
            f"{folder} holds a privatizer, not a space; load it with from_pretrained of its class, "
            "which brings its own ε"
        )
    config = _read_headed(path, "expected the folder of an artifact")
    if missing := sorted(DERIVED - set(config)):
        raise ArtifactError(f"{path}: missing {', '.join(missing)}")
    return config


def is_bound(config: Mapping[str, Any]) -> bool:
    """Tell whether a configuration carries a digest of its entries, as all since 0.3 do.

    Raises:
        ArtifactError: If it does, and an entry was changed since.
    """
    if CONFIG_DIGEST not in config:
        return False
    if config[CONFIG_DIGEST] != config_sha256(config):
        raise ArtifactError(
            f"an entry was changed after the file was written: {CONFIG_DIGEST} does not match; "
            "undo the change, or fetch or save it again"
        )
    return True


def require_unaltered(path: Path, record: Mapping[str, Any]) -> None:
    """Raise an ArtifactError that names the file if a record was changed after it was written."""
    try:
        is_bound(record)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from error


def config_sha256(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the entries of a configuration that a digest binds, in hexadecimal.

    It is taken over canonical JSON: sorted keys, no spaces, numbers as Python writes them.
    """
    # Through JSON once, so that tuples and keys that are numbers are what a reader will find.
    entries = json.loads(to_json({k: v for k, v in config.items() if k not in UNBOUND}))
    canonical = json.dumps(entries, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def bind(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the digest of its entries."""
    return {**config, CONFIG_DIGEST: config_sha256(config)}


def vocabulary_bytes(words: Iterable[str]) -> bytes:
    """Return the content of ``vocabulary.txt``."""
    return "".join(f"{word}\n" for word in words).encode()

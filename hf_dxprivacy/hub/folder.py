"""A matrix, its words and a configuration, in a folder that can be checked before it is used.

The folder holds ``config.json``, ``vectors.safetensors`` and ``vocabulary.txt`` (one word a line,
UTF-8, in row order). The configuration carries the SHA-256 of the other two and is written last,
so a folder whose writing was interrupted is recognised. Nothing in it is ever executed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.hub.records import read_json, to_json, write_whole

FORMAT_VERSION = 1
LIBRARY_NAME = "hf_dxprivacy"
CONFIG = "config.json"
# In the folder of a privatizer, which holds no artifact.
PRIVATIZER = "privatizer.json"
VECTORS = "vectors.safetensors"
VOCABULARY = "vocabulary.txt"

# What `write_artifact` derives from the arrays; nobody else may set it.
RESERVED = frozenset(
    {"format_version", "library_name", "size", "dim", "dtype"}
    | {"vectors_sha256", "vocabulary_sha256"}
)


@dataclass(frozen=True, eq=False)
class Artifact:
    """What a folder holds.

    Attributes:
        vectors: (V, n) read-only, memory-mapped float16, float32 or float64.
        words: V words, unique, in row order.
        config: Everything in ``config.json``.
        folder: Where it was read from.
    """

    vectors: NDArray[np.floating]
    words: tuple[str, ...]
    config: dict[str, Any]
    folder: Path


def write_artifact(
    folder: str | Path,
    *,
    vectors: NDArray[np.floating],
    words: Sequence[str],
    config: Mapping[str, Any],
    files: Mapping[str, bytes | memoryview] | None = None,
) -> None:
    """Write an artifact; each file appears whole or not at all, ``config.json`` last.

    Args:
        folder: Created if missing. Files of an artifact already there are replaced.
        vectors: (V, n) float16, float32 or float64.
        words: V distinct words without line breaks.
        config: JSON-serialisable entries to store beside those of `RESERVED`.
        files: Contents of further files by name; what is read from them should be bound by a
            digest in `config`.

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
    if problem := _problem_with(words):
        raise InvalidValueError(problem)
    vocabulary = vocabulary_bytes(words)
    entries = {
        "format_version": FORMAT_VERSION,
        "library_name": LIBRARY_NAME,
        "size": len(words),
        "dim": vectors.shape[1],
        "dtype": vectors.dtype.name,
        "vectors_sha256": tensors.sha256(vectors),
        "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
        **config,
    }
    text = to_json(entries)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / VECTORS, tensors.serialized(vectors))
    write_whole(folder / VOCABULARY, [vocabulary])
    for name, content in (files or {}).items():
        write_whole(folder / name, [content])
    write_whole(folder / CONFIG, [text])


def read_artifact(folder: str | Path) -> Artifact:
    """Read and check an artifact.

    Args:
        folder: A folder written by `write_artifact`.

    Returns:
        The artifact; its vectors are memory-mapped, so that processes share them.

    Raises:
        ArtifactError: If a file is missing, truncated, altered, of a newer format, or does not
            belong to the others; names the file.
    """
    folder = Path(folder)
    config = read_config(folder)
    vectors = tensors.read(folder / VECTORS, config["vectors_sha256"])
    for name, stored in (("dtype", vectors.dtype.name), ("dim", vectors.shape[1])):
        if config[name] != stored:
            raise ArtifactError(f"{folder / VECTORS}: {name} is {stored}, not {config[name]}")
    words = _read_words(folder / VOCABULARY, config["vocabulary_sha256"])
    if not len(words) == len(vectors) == config["size"]:
        raise ArtifactError(
            f"{folder / CONFIG}: expected {config['size']} words and vectors, got {len(words)} "
            f"words and {len(vectors)} vectors"
        )
    return Artifact(vectors=vectors, words=words, config=config, folder=folder)


def read_config(folder: str | Path) -> dict[str, Any]:
    """Read ``config.json`` of an artifact and check what this version relies on.

    Raises:
        ArtifactError: If it is missing, malformed, incomplete or of a newer format.
    """
    path = Path(folder) / CONFIG
    if not path.is_file() and path.with_name(PRIVATIZER).is_file():
        raise ArtifactError(
            f"{folder} holds a privatizer, not a space; load it with from_pretrained of its class, "
            "which brings its own ε"
        )
    config = read_json(path, "expected the folder of an artifact")
    version = config.get("format_version")
    if config.get("library_name") != LIBRARY_NAME or type(version) is not int:
        raise ArtifactError(f"{path}: not written by {LIBRARY_NAME}")
    if version > FORMAT_VERSION:
        raise ArtifactError(
            f"{path}: format_version is {version}, this version reads up to {FORMAT_VERSION}; "
            "run: pip install --upgrade hf-dxprivacy"
        )
    if missing := sorted(RESERVED - set(config)):
        raise ArtifactError(f"{path}: missing {', '.join(missing)}")
    return config


def update_config(folder: str | Path, changes: Mapping[str, Any]) -> None:
    """Replace top-level entries of ``config.json``, in one atomic step.

    Args:
        folder: An artifact.
        changes: New values of entries; the others stay.

    Raises:
        InvalidValueError: If an entry of `RESERVED` is among them.
        ArtifactError: If the configuration cannot be read.
    """
    _refuse_reserved(changes)
    config = read_config(folder) | dict(changes)
    write_whole(Path(folder) / CONFIG, [to_json(config)])


def vocabulary_bytes(words: Iterable[str]) -> bytes:
    """Return the content of ``vocabulary.txt``."""
    return "".join(f"{word}\n" for word in words).encode()


def _refuse_reserved(config: Mapping[str, Any]) -> None:
    if taken := sorted(RESERVED & set(config)):
        raise InvalidValueError(
            f"the config entries {', '.join(taken)} follow from the arrays and cannot be set"
        )


def _problem_with(words: Sequence[str]) -> str | None:
    if len(set(words)) != len(words):
        seen: set[str] = set()
        twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        return f"the word {twice!r} occurs twice"
    text = "".join(words)
    if all(words) and "\n" not in text and "\r" not in text:
        return None
    for row, word in enumerate(words):
        if not word or "\n" in word or "\r" in word:
            return f"row {row}: the word {word!r} is empty or contains a line break"
    return None


def _read_words(path: Path, expected_sha256: str) -> tuple[str, ...]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected_sha256:
        raise ArtifactError(
            f"{path}: SHA-256 is {digest}, but config.json says {expected_sha256}; the file was "
            "altered, truncated or belongs to another artifact; fetch or save it again"
        )
    try:
        words = tuple(content.decode().split("\n"))
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: not UTF-8 at byte {error.start}") from error
    if words[-1]:
        raise ArtifactError(f"{path}: the last line does not end in a newline")
    if problem := _problem_with(words[:-1]):
        raise ArtifactError(f"{path}: {problem}")
    return words[:-1]

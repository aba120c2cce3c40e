"""Memory-mapped files, checked against their SHA-256; one matrix in one safetensors file.

A file is read once through a buffer for its digest, so that its pages do not count as this
process's memory, and mapped through the same open file, so that it cannot be exchanged between.
"""

import hashlib
import json
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidValueError

TENSOR = "vectors"
DTYPES: dict[str, np.dtype[Any]] = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}

_CHUNK_BYTES = 1 << 20
_LARGEST_HEADER = 1 << 16


def read_bytes(path: Path, expected_sha256: str) -> NDArray[np.uint8]:
    """Check a file, and memory-map its bytes.

    It is read once through a buffer for its digest, so that its pages do not count as this
    process's memory, and mapped through the same open file, so that it cannot be exchanged between.

    Args:
        path: The file.
        expected_sha256: SHA-256 of the whole file, in hexadecimal.

    Returns:
        (bytes,) read-only uint8, backed by the file.

    Raises:
        ArtifactError: If the file is missing, empty or has another digest; names it.
    """
    try:
        with path.open("rb") as file:
            found, length = digest(file)
            if not length:
                raise ArtifactError(f"{path}: the file is empty; fetch or save it again")
            require_digest(path, found, expected_sha256)
            return np.asarray(np.memmap(file, np.uint8, "r"))
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def digest(file: BinaryIO) -> tuple[str, int]:
    """Return the SHA-256 of what is left of a file, in hexadecimal, and the number of its bytes."""
    sha256 = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    length = 0
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        sha256.update(buffer[:count])
        length += count
    return sha256.hexdigest(), length


def require_digest(path: Path, found: str, expected: str) -> None:
    """Require the digest of a file to be the one in the configuration.

    Raises:
        ArtifactError: If it is another.
    """
    if found != expected:
        raise ArtifactError(
            f"{path}: SHA-256 is {found}, but config.json says {expected}; the file was altered or "
            "belongs to another artifact; fetch or save it again"
        )


def dtype_name(vectors: NDArray[np.floating]) -> str:
    """Return the name that safetensors gives to the dtype of a matrix.

    Raises:
        InvalidValueError: If it is not float16, float32 or float64.
    """
    for name, dtype in DTYPES.items():
        if vectors.dtype.newbyteorder("<") == dtype:
            return name
    raise InvalidValueError(f"expected float16, float32 or float64 vectors, got {vectors.dtype}")


def serialized(vectors: NDArray[np.floating]) -> Iterator[bytes | memoryview]:
    """Yield the safetensors file of a matrix in pieces, as the safetensors library would write it.

    Args:
        vectors: (V, n) of float16, float32 or float64.
    """
    name = dtype_name(vectors)
    entry = {"dtype": name, "shape": list(vectors.shape), "data_offsets": [0, vectors.nbytes]}
    header = json.dumps({TENSOR: entry}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    yield struct.pack("<Q", len(header)) + header
    rows = max(1, _CHUNK_BYTES // max(1, vectors.strides[0]))
    for start in range(0, len(vectors), rows):
        part = np.ascontiguousarray(vectors[start : start + rows], dtype=DTYPES[name])
        yield part.reshape(-1).view(np.uint8).data


def sha256(vectors: NDArray[np.floating]) -> str:
    """Return the SHA-256 of the safetensors file of a matrix, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in serialized(vectors):
        digest.update(piece)
    return digest.hexdigest()


def read(path: Path, expected_sha256: str) -> NDArray[np.floating]:
    """Check a safetensors file that holds one matrix, and memory-map the matrix.

    The file is read once through a buffer for its digest, so that its pages do not count as this
    process's memory, and mapped through the same open file, so that it cannot be exchanged between.

    Args:
        path: The file.
        expected_sha256: SHA-256 of the whole file, in hexadecimal.

    Returns:
        (V, n) read-only matrix backed by the file.

    Raises:
        ArtifactError: If the file is missing, malformed or has another digest; names it.
    """
    try:
        with path.open("rb") as file:
            found, length = digest(file)
            dtype, shape, offset = _layout(file, length, path)
            require_digest(path, found, expected_sha256)
            return np.asarray(np.memmap(file, dtype, "r", offset, shape))
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def release(vectors: NDArray[np.floating]) -> None:
    """Give the memory back that reading a mapped matrix has filled; it stays in the page cache.

    Args:
        vectors: A matrix that `read` returned; any other is left alone.
    """
    base: Any = vectors
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _layout(file: BinaryIO, length: int, path: Path) -> tuple[np.dtype[Any], tuple[int, int], int]:
    file.seek(0)
    start = file.read(8)
    size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < size <= min(_LARGEST_HEADER, length - 8):
        raise ArtifactError(f"{path}: not a safetensors file, or truncated ({length} bytes)")
    try:
        header = json.loads(file.read(size))
        entry = header[TENSOR]
        dtype = DTYPES[entry["dtype"]]
        rows, columns = entry["shape"]
        first, last = entry["data_offsets"]
        whole = all(type(value) is int and value >= 0 for value in (rows, columns, first, last))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(
            f"{path}: expected a safetensors header with one two-dimensional tensor {TENSOR!r} of "
            f"{', '.join(DTYPES)}"
        ) from error
    expected = rows * columns * dtype.itemsize if whole else -1
    if set(header) - {"__metadata__"} != {TENSOR} or first != 0 or last != expected:
        raise ArtifactError(f"{path}: the safetensors header contradicts itself")
    if length != 8 + size + expected or expected == 0:
        raise ArtifactError(
            f"{path}: expected {8 + size + expected} bytes for shape {rows}x{columns}, got "
            f"{length}; the file is empty, truncated or has something appended"
        )
    return dtype, (rows, columns), 8 + size

"""Files that a digest protects: small ones, mapped ones, and named tensors (safetensors)."""

import hashlib
import json
import math
import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError

# Types of tensors, by their names in safetensors.
DTYPES: dict[str, np.dtype[Any]] = {
    **{"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8")},
    "I32": np.dtype("<i4"),
}

_CHUNK_BYTES = 1 << 20
_LARGEST_HEADER = 1 << 16


def read_file(path: Path, expected_sha256: str, source: str = "config.json") -> bytes:
    """Read a small file whole, and check it against the SHA-256 that `source` states.

    Raises:
        ArtifactError: If it is missing or has another digest; names it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error
    _require_digest(path, hashlib.sha256(content).hexdigest(), expected_sha256, source)
    return content


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
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_CHUNK_BYTES))
    try:
        with path.open("rb") as file:
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
            _require_digest(path, digest.hexdigest(), expected_sha256, "config.json")
            if not file.tell():
                raise ArtifactError(f"{path}: the file is empty; fetch or save it again")
            return np.asarray(np.memmap(file, np.uint8, "r"))
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def read(path: Path, expected_sha256: str) -> dict[str, NDArray[Any]]:
    """Check a safetensors file, and memory-map its tensors; see `read_bytes`.

    Returns:
        The tensors by name, read-only, backed by the file.

    Raises:
        ArtifactError: If the file is missing, has another digest or is malformed; names it.
    """
    content = read_bytes(path, expected_sha256)
    size = int.from_bytes(content[:8].tobytes(), "little") if len(content) > 8 else 0
    if not 0 < size <= min(_LARGEST_HEADER, len(content) - 8):
        raise ArtifactError(f"{path}: not a safetensors file, or truncated ({len(content)} bytes)")
    start = 8 + size
    try:
        header = json.loads(content[8:start].tobytes())
        layout = {
            name: (*entry["data_offsets"], entry["shape"], DTYPES[entry["dtype"]])
            for name, entry in header.items()
            if name != "__metadata__"
        }
        numbers = [n for first, last, shape, _ in layout.values() for n in (first, last, *shape)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(
            f"{path}: expected a safetensors header with tensors of {', '.join(DTYPES)}"
        ) from error
    whole = {*map(type, numbers)} <= {int} and min(numbers, default=0) >= 0
    end = 0
    for first, last, shape, dtype in layout.values():
        if not whole or first != end or last - first != math.prod(shape) * dtype.itemsize:
            raise ArtifactError(f"{path}: the safetensors header contradicts itself")
        end = last
    if len(content) != start + end or not end:
        raise ArtifactError(
            f"{path}: expected {start + end} bytes, got {len(content)}; the file is empty, "
            "truncated or has something appended"
        )
    try:
        return {
            name: content[start + first : start + last].view(dtype).reshape(shape)
            for name, (first, last, shape, dtype) in layout.items()
        }
    except ValueError as error:  # too many dimensions, or one too large beside a 0
        raise ArtifactError(f"{path}: NumPy has no arrays of these shapes") from error


def pieces(tensors: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """Yield a safetensors file in pieces, as the safetensors library would write it.

    Args:
        tensors: Arrays of `DTYPES` by name; the library has them in the order of their names.
    """
    entries, end = {}, 0
    for name, array in tensors.items():
        kind = f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}"
        offsets = [end, end := end + array.nbytes]
        entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    yield struct.pack("<Q", len(header)) + header
    for array in tensors.values():
        rows = max(1, _CHUNK_BYTES // max(1, array.strides[0]))
        for row in range(0, len(array), rows):
            part = np.ascontiguousarray(array[row : row + rows], array.dtype.newbyteorder("<"))
            yield part.reshape(-1).view(np.uint8).data


def sha256(tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the safetensors file of arrays, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in pieces(tensors):
        digest.update(piece)
    return digest.hexdigest()


def release(mapped: NDArray[Any]) -> None:
    """Give the memory back that reading a mapped array has filled; it stays in the page cache.

    Args:
        mapped: An array that `read_bytes` returned, or a view of it; any other is left alone.
    """
    base: Any = mapped
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _require_digest(path: Path, found: str, expected: str, source: str) -> None:
    if found != expected:
        raise ArtifactError(
            f"{path}: SHA-256 is {found}, but {source} says {expected}; the file was altered, "
            "truncated or belongs to another artifact; fetch or save it again"
        )

"""Files that are checked against their digest and then used in place."""

import hashlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError

_CHUNK_BYTES = 1 << 20


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

"""Stored lower bounds of the distance from every word to every block of a partition.

Computed once, stored beside the vectors, and memory-mapped. Unlike distances, bounds cannot be
checked without computing them again: one that is too large changes what is drawn, and with it the
guarantee. Their digest shows damage, not malice, so they are read only if the caller asks for them.
"""

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import HubOptions, tensors
from hf_dxprivacy.hub.artifact import CONFIG, sidecar_entry
from hf_dxprivacy.hub.download import ArtifactSource
from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.partition import ROWS, Partition

FILE = "neighbours.safetensors"
ENTRY = "neighbour_lists"

_FIELDS: dict[str, type] = {"k": int, "sha256": str, "space": str}
_REMEDY = "make lists with space.build_neighbours(), or load without neighbour_lists="


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds for all V words of a space.

    Attributes:
        content: (bytes,) uint8, a safetensors file: ``order`` as in `Partition`, and ``lower``.
        size: V.
        k: Number of blocks.
        stored_sha256: SHA-256 of the content if a digest check has found it already: computing it
            again would fill memory with all the pages that are mapped.
    """

    content: NDArray[np.uint8] = field(repr=False)
    size: int
    k: int
    stored_sha256: str | None = None

    @lazy_property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return self.stored_sha256 or hashlib.sha256(self.content.data).hexdigest()

    @lazy_property
    def order(self) -> NDArray[np.int32]:
        """(V,) all words, those of one block together."""
        return self._field("order")

    @lazy_property
    def lower(self) -> NDArray[np.float32]:
        """(V, k) lower bounds of the distances from a word to all others of a block."""
        return self._field("lower")

    def _field(self, wanted: str) -> NDArray[Any]:
        start = len(_header(self.size, self.k))
        for name, (dtype, shape) in _layout(self.size, self.k).items():
            stop = start + dtype.itemsize * int(np.prod(shape))
            if name == wanted:
                return self.content[start:stop].view(dtype).reshape(shape)
            start = stop
        raise KeyError(wanted)


def build(partition: Partition, progress: bool) -> DistanceBounds:
    """Compute the bounds of all words.

    Args:
        partition: The blocks.
        progress: Show a bar.
    """
    size, k = len(partition.order), len(partition.starts) - 1
    header = _header(size, k)
    content = np.empty(len(header) + _data_bytes(size, k), dtype=np.uint8)
    content[: len(header)] = np.frombuffer(header, dtype=np.uint8)
    bounds = DistanceBounds(content, size, k)
    bounds.order[:] = partition.order
    with tqdm(total=size, unit=" words", desc="neighbours", disable=not progress) as bar:
        for rows in metrics.blocks(0, size, ROWS):
            bounds.lower[rows] = partition.bounds(np.arange(rows.start, rows.stop))
            bar.update(rows.stop - rows.start)
    # Views that were made before it are of the builder only.
    content.setflags(write=False)
    return DistanceBounds(content, size, k)


def entry(bounds: DistanceBounds, digest: str) -> dict[str, Any]:
    """Return the entry of the bounds in ``config.json``.

    Args:
        bounds: The bounds.
        digest: Digest of the space that they belong to.
    """
    return {"k": bounds.k, "sha256": bounds.sha256, "space": digest}


def are_in(config: dict[str, Any]) -> bool:
    """Tell whether a space is stored with bounds."""
    return config.get(ENTRY) is not None


def load(
    config: dict[str, Any], size: int, digest: str, source: ArtifactSource, access: HubOptions
) -> DistanceBounds:
    """Load the bounds that are stored beside the vectors of a space.

    Args:
        config: What ``config.json`` says.
        size: V.
        digest: Digest of the space.
        source: Where the space was loaded from.
        access: How to reach the Hub.

    Raises:
        ArtifactError: If there are none, they belong to another space, or they are damaged.
        HubError: If the Hub refuses them or cannot be reached.
    """
    path = source.folder / CONFIG
    if not are_in(config):
        raise ArtifactError(f"{path}: this space is stored without lists of neighbours; {_REMEDY}")
    stored = sidecar_entry(config, ENTRY, _FIELDS, path, _REMEDY)
    if stored["space"] != digest:
        raise ArtifactError(
            f"{path}: the lists of neighbours were made for another space; {_REMEDY}"
        )
    return source.sidecar(FILE, access, _REMEDY, lambda path: _read(path, stored, size))


def _read(path: Path, stored: dict[str, Any], size: int) -> DistanceBounds:
    content, k = tensors.read_bytes(path, stored["sha256"]), stored["k"]
    header = _header(size, k) if 1 <= k <= size else b""
    whole = header and len(content) == len(header) + _data_bytes(size, k)
    if not whole or bytes(content[: len(header)]) != header:
        raise ArtifactError(f"{path}: these are no lists of {k} neighbours of {size} words")
    found = DistanceBounds(content, size, k, stored["sha256"])
    if not (np.sort(found.order) == np.arange(size)).all():
        raise ArtifactError(f"{path}: the order does not name every word of the space once")
    if not found.lower.min() >= 0:
        raise ArtifactError(f"{path}: a bound of a distance is negative or not a number")
    return found


def _layout(size: int, k: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return dtype and shape of the fields in the order of the file."""
    return {
        "lower": (np.dtype("<f4"), (size, k)),
        "order": (np.dtype("<i4"), (size,)),
    }


def _header(size: int, k: int) -> bytes:
    entries, start = {}, 0
    for name, (dtype, shape) in _layout(size, k).items():
        stop = start + dtype.itemsize * int(np.prod(shape))
        kind = f"{dtype.kind.upper()}{8 * dtype.itemsize}"
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, stop]}
        start = stop
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header


def _data_bytes(size: int, k: int) -> int:
    return sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in _layout(size, k).values())

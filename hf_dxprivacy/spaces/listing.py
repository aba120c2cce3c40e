"""How near every word is to every cell: worked out once, stored beside the vectors, and mapped.

Unlike distances, lists can not be checked without working them out again: a bound that is too large
changes what is drawn, and with it the guarantee. Their digest shows damage, not malice, so they are
read only if the caller asks for them.
"""

import hashlib
import json
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import ArtifactError, HubFileNotFoundError
from hf_dxprivacy.hub import HubAccess, mapping
from hf_dxprivacy.hub.folder import CONFIG
from hf_dxprivacy.spaces import euclidean
from hf_dxprivacy.spaces.cells import ROWS, Cells
from hf_dxprivacy.spaces.locate import Place

FILE = "neighbours.safetensors"
ENTRY = "neighbour_lists"


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """The lists of all V words of a space.

    Attributes:
        content: (bytes,) uint8, a safetensors file: ``order`` as in `Cells`, and ``lower``.
        size: V.
        k: Length of the lists, the number of cells.
    """

    content: NDArray[np.uint8] = field(repr=False)
    size: int
    k: int

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content.data).hexdigest()

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """(V,) all words, those of one cell together."""
        return self._field("order")

    @cached_property
    def lower(self) -> NDArray[np.float32]:
        """(V, k) lower bounds of the distances from a word to all others of a cell."""
        return self._field("lower")

    def _field(self, wanted: str) -> NDArray[Any]:
        start = len(_header(self.size, self.k))
        for name, (dtype, shape) in _layout(self.size, self.k).items():
            stop = start + dtype.itemsize * int(np.prod(shape))
            if name == wanted:
                return self.content[start:stop].view(dtype).reshape(shape)
            start = stop
        raise KeyError(wanted)


def build(cells: Cells, progress: bool) -> NeighbourLists:
    """Work out the lists of all words.

    Args:
        cells: What is near to what.
        progress: Show a bar.
    """
    size, k = len(cells.order), len(cells.starts) - 1
    header = np.frombuffer(_header(size, k), dtype=np.uint8)
    layout = _layout(size, k).values()
    places = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in layout)
    content = np.empty(len(header) + places, dtype=np.uint8)
    content[: len(header)] = header
    lists = NeighbourLists(content, size, k)
    lists.order[:] = cells.order
    with tqdm(total=size, unit=" words", desc="neighbours", disable=not progress) as bar:
        for rows in euclidean.blocks(0, size, ROWS):
            lists.lower[rows] = cells.bounds(np.arange(rows.start, rows.stop))
            bar.update(rows.stop - rows.start)
    # Views that were made before it are of the builder only.
    content.setflags(write=False)
    return NeighbourLists(content, size, k)


def entry(lists: NeighbourLists, digest: str) -> dict[str, Any]:
    """Return what the configuration of a space says of its lists.

    Args:
        lists: The lists.
        digest: Digest of the space that they belong to.
    """
    return {"k": lists.k, "sha256": lists.sha256, "space": digest}


def are_in(config: dict[str, Any]) -> bool:
    """Tell whether a space is stored with lists."""
    return config.get(ENTRY) is not None


def load(
    config: dict[str, Any], size: int, digest: str, place: Place, access: HubAccess
) -> NeighbourLists:
    """Load the lists that are stored beside the vectors of a space.

    Args:
        config: What ``config.json`` says.
        size: V.
        digest: Digest of the space.
        place: Where the space was loaded from; on the Hub, the lists are fetched from that commit.
        access: How to reach the Hub.

    Raises:
        ArtifactError: If there are none, they belong to another space, or they are damaged.
        HubError: If the Hub refuses them or can not be reached.
    """
    try:
        stored = _described(config, digest, place.folder / CONFIG)
        path = place.file(FILE, access)
        with place.named():
            return _read(path, stored, size)
    except (ArtifactError, HubFileNotFoundError) as error:
        raise ArtifactError(
            f"{error}; make lists with space.build_neighbours(), or load without neighbour_lists="
        ) from error


def _described(config: dict[str, Any], digest: str, path: Path) -> dict[str, Any]:
    if not are_in(config):
        raise ArtifactError(f"{path}: this space is stored without lists of neighbours")
    stored = config[ENTRY]
    kinds = {"k": int, "sha256": str, "space": str}
    if not isinstance(stored, dict) or not all(
        isinstance(stored.get(name), kind) for name, kind in kinds.items()
    ):
        raise ArtifactError(f"{path}: the entry {ENTRY} lacks one of {', '.join(kinds)}")
    if stored["space"] != digest:
        raise ArtifactError(f"{path}: the lists of neighbours were made for another space")
    return stored


def _read(path: Path, stored: dict[str, Any], size: int) -> NeighbourLists:
    content, k = mapping.read_bytes(path, stored["sha256"]), stored["k"]
    layout = _layout(size, k) if 1 <= k <= size else {}
    header = _header(size, k) if layout else b""
    bytes_ = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in layout.values())
    if (
        not layout
        or len(content) != len(header) + bytes_
        or bytes(content[: len(header)]) != header
    ):
        raise ArtifactError(f"{path}: these are no lists of {k} neighbours of {size} words")
    found = NeighbourLists(content, size, k)
    # Computing it once more would fill memory with all the pages that are mapped.
    vars(found)["sha256"] = stored["sha256"]
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

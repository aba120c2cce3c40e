"""Stored lower bounds of the distance from every word to every block of a partition.

Computed once, stored beside the vectors, and memory-mapped. Unlike distances, bounds cannot be
checked without computing them again: one that is too large changes what is drawn, and with it the
guarantee. Their digest shows damage, not malice, so they are read only if the caller asks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.partition import ROWS, Partition


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds for all V words of a space.

    Attributes:
        order: (V,) int32, all words, those of one block together, as in `Partition`.
        lower: (V, k) float32, lower bounds of the distances from a word to all others of a block.
        stored_sha256: `sha256` if a digest check has found it already: computing it again would
            fill memory with all the pages that are mapped.
    """

    order: NDArray[np.int32] = field(repr=False)
    lower: NDArray[np.float32] = field(repr=False)
    stored_sha256: str | None = None

    @property
    def k(self) -> int:
        """Number of blocks."""
        return int(self.lower.shape[1])

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as they are stored."""
        return {"lower": self.lower, "order": self.order}

    @lazy_property
    def sha256(self) -> str:
        """SHA-256 of the file of `tensors`, in hexadecimal."""
        return self.stored_sha256 or tensors.sha256(self.tensors)

    @classmethod
    def from_tensors(
        cls, stored: Mapping[str, NDArray[Any]], size: int, entry: Mapping[str, Any]
    ) -> "DistanceBounds":
        """Make bounds of `tensors` that were stored; they are used in place.

        Args:
            stored: The arrays by name.
            size: V.
            entry: "k", and "sha256" of the file.

        Raises:
            InvalidValueError: If they are no such bounds.
        """
        k = entry["k"]
        if {name: (array.dtype, array.shape) for name, array in stored.items()} != {
            "lower": (np.dtype("<f4"), (size, k)),
            "order": (np.dtype("<i4"), (size,)),
        }:
            raise InvalidValueError(f"these are no lists of {k} neighbours of {size} words")
        if not (np.sort(stored["order"]) == np.arange(size)).all():
            raise InvalidValueError("the order does not name every word of the space once")
        if not stored["lower"].min() >= 0:
            raise InvalidValueError("a bound of a distance is negative or not a number")
        return cls(**stored, stored_sha256=entry["sha256"])


def build(partition: Partition, progress: bool) -> DistanceBounds:
    """Compute the bounds of all words.

    Args:
        partition: The blocks.
        progress: Show a bar.
    """
    size = len(partition.order)
    lower = np.empty((size, len(partition.starts) - 1), dtype=np.float32)
    with tqdm(total=size, unit=" words", desc="neighbours", disable=not progress) as bar:
        for rows in metrics.blocks(0, size, ROWS):
            lower[rows] = partition.bounds(np.arange(rows.start, rows.stop))
            bar.update(rows.stop - rows.start)
    lower.setflags(write=False)
    return DistanceBounds(partition.order.astype(np.int32), lower)

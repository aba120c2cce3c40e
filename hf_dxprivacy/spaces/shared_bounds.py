"""Bounds of distances that the workers of one `map` share."""

import mmap
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# Blocks of a partition, and bytes of bounds that processes share.
BLOCKS = 512
SHARED_BYTES = 1 << 27


class SharedBounds:
    """Bounds that the processes forked from this one work out once for all of them.

    They are in memory that only these processes share, and that is gone with the last of them:
    which bounds are there tells which words occur. A row is 0 until it is written, and always with
    the same values; so what another process sees of it halfway are lower bounds as well, whichever
    bytes have arrived, since positive numbers of IEEE 754 are ordered as the whole numbers that
    their bytes are. A sum, written after the row, tells whether all of it is there, as reproducible
    draws need.

    Args:
        size: Number of words, V. Only the first are shared if there are very many.
        width: Number of blocks.
    """

    def __init__(self, size: int, width: int) -> None:
        self.owner, count = os.getpid(), min(size + 1, SHARED_BYTES // (4 * width))
        # Taken from the system when it is written to.
        rows, sums = (mmap.mmap(-1, 4 * count * each) for each in (width, 1))
        self._rows = np.frombuffer(rows, dtype=np.float32).reshape(count, width)
        self._sums = np.frombuffer(sums, dtype=np.uint32)

    def complete(
        self, ids: NDArray[np.int64], compute: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Return the bounds of some inputs, (m, width), after computing those that are not there.

        Args:
            ids: (m,) rows; −1 is the centroid.
            compute: See `Partition.bounds`.
        """
        # A process alone would only keep everything twice.
        if os.getpid() == self.owner:
            return compute(ids)
        places = np.minimum(ids + 1, len(self._sums) - 1)
        bounds = self._rows[places]
        found = (
            (self._sums[places] == _sums(bounds)) & (self._sums[places] > 0) & (places == ids + 1)
        )
        rest = np.flatnonzero(~found)
        if len(rest):
            bounds[rest] = compute(ids[rest])
            rest = rest[places[rest] == ids[rest] + 1]
            self._rows[places[rest]] = bounds[rest]
            self._sums[places[rest]] = _sums(bounds[rest])
        return bounds


def _sums(rows: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the sum of each row's bytes as whole numbers, (m,)."""
    sums: NDArray[np.uint32] = rows.view(np.uint32).sum(axis=1, dtype=np.uint32)
    return sums

"""Bounds of the distances to cells, worked out on a device of torch."""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.search.devices import block_rows, full_float32, open_device
from hf_dxprivacy.spaces import euclidean
from hf_dxprivacy.spaces.cells import Cells
from hf_dxprivacy.spaces.distances import Distances

# Copies of a block of products that a device holds at once.
COPIES = 2


class TorchCells(Cells):
    """The cells of a vocabulary, with products on a device.

    They are exact, so bounds are those of `Cells`.

    Args:
        distances: The distances of V words of n dimensions; the words are copied to the device.
        device: A device of torch; opened here.
        count: How many cells, at most V.
        order: (V,) int32, all words, those of one cell together; worked out by default.
    """

    def __init__(
        self,
        distances: Distances,
        device: str,
        count: int,
        order: NDArray[np.int32] | None = None,
    ) -> None:
        super().__init__(distances, count, order)
        self._torch, self._device = open_device(device)

    def _columns(self, rows: int) -> int:
        return block_rows(self._torch, self._device, COPIES * 8 * rows)

    def _least(
        self, ids: NDArray[np.int64], queries: NDArray[np.floating], cells: slice
    ) -> NDArray[np.floating]:
        first, end = self.starts[cells.start], self.starts[cells.stop]
        with full_float32(self._torch):
            halves = self._moved_factors[first:end] @ self._moved(queries)
        if self._gaps is not None:
            halves /= self._moved(self._gaps[self.order[first:end], None])
        columns, places = self._own(ids, first, end)
        halves[self._moved(places), self._moved(columns)] = np.inf
        cuts = self.starts[cells.start : cells.stop + 1] - first
        least = self._torch.stack([halves[a:b].amin(dim=0) for a, b in pairwise(cuts)])
        found: NDArray[np.floating] = least.cpu().numpy()
        return found

    @cached_property
    def _moved_factors(self) -> Any:
        blocks = euclidean.blocks(0, len(self.order))
        return self._torch.cat([self._moved(self._made(places)) for places in blocks])

    def _moved(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

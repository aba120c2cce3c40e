"""The words near a word, found on a device of torch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.search.devices import block_rows, full_float32, open_device
from hf_dxprivacy.spaces import euclidean
from hf_dxprivacy.spaces.distances import Distances
from hf_dxprivacy.spaces.shortlists import Shortlister

# Copies of a block of keys that a device holds at once: keys, comparisons, places.
COPIES = 4


class TorchShortlister(Shortlister):
    """Finds the words near a word on a device, by the products of `Shortlister`.

    Its bounds hold for every order of a sum, so they hold there; what is listed and bounded in the
    end is the same as without a device.

    Args:
        distances: The distances of V words of n dimensions; the words are copied to the device.
        device: A device of torch; opened here.
    """

    def __init__(self, distances: Distances, device: str) -> None:
        super().__init__(distances)
        self._torch, self._device = open_device(device)
        blocks = euclidean.blocks(0, len(distances.vectors))
        self._moved_factors = self._torch.cat([self._moved(self._factors(part)) for part in blocks])
        self._moved_gaps = self._moved(distances.gaps[:-1]) if self._hyperbolic else None

    def _keys(
        self, queries: NDArray[np.floating], words: slice | NDArray[np.int64]
    ) -> NDArray[np.floating]:
        keys: NDArray[np.floating] = self._keys_there(self._moved(queries), words).cpu().numpy()
        return keys

    def _below(
        self, queries: NDArray[np.floating], limits: NDArray[np.floating]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        moved, ceilings = self._moved(queries), self._moved(limits)[:, None]
        row_bytes = COPIES * 8 * len(queries)
        step = block_rows(self._torch, self._device, row_bytes)
        for part in euclidean.blocks(0, len(self._norms), step):
            keys = self._keys_there(moved, part)
            rows, columns = (keys < ceilings).nonzero(as_tuple=True)
            yield rows.cpu().numpy(), columns.cpu().numpy() + part.start

    def _keys_there(self, queries: Any, words: slice | NDArray[np.int64]) -> Any:
        chosen = words if isinstance(words, slice) else self._moved(words)
        with full_float32(self._torch):
            keys = queries @ self._moved_factors[chosen].T
        return keys if self._moved_gaps is None else keys / self._moved_gaps[chosen]

    def _moved(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

"""The exact searches on a device of torch; the answers are those of the processor.

A device finds candidates and says how sure they are. Whatever rounding could decide is decided on
the processor, by the code that decides it there anyway.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._devices import block_rows, full_float32, open_device
from hf_dxprivacy.search.knn import ExactSearch, Shortlist, squared_norms
from hf_dxprivacy.search.lorentz import PoincareSearch, lifted

# Copies of a row of scores that a device holds at once: the row, and the room to select from it.
COPIES = 4


class TorchEuclidean(ExactSearch):
    """Exact search in L2, with candidates from a device.

    Args:
        vectors: (V, n) float32, C-contiguous; copied to the device.
        device: A device of torch; opened here.
    """

    def __init__(self, vectors: NDArray[np.float32], device: str) -> None:
        super().__init__(vectors)
        # A comparison with all vectors would leave the device.
        self._listed = np.inf
        self._torch, self._device = open_device(device)
        self._transposed = self._torch.tensor(vectors, device=self._device).T
        with np.errstate(over="ignore"):
            squared = squared_norms(vectors).astype(np.float32)
        self._squared = self._torch.from_numpy(squared).to(self._device)

    def _shortlist(self, queries: NDArray[np.float32], size: int) -> Shortlist:
        found = np.empty((len(queries), size), dtype=np.int64)
        margins = np.empty(len(queries))
        moved = self._torch.from_numpy(queries).to(self._device)
        step = block_rows(self._torch, self._device, COPIES * 4 * len(self._vectors))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            with full_float32(self._torch):
                # ‖u‖²−2⟨q,u⟩
                scores = self._torch.addmm(self._squared, moved[part], self._transposed, alpha=-2)
            least, rows = scores.topk(size + 1, largest=False)
            found[part] = rows[:, :size].cpu().numpy()
            ends = least[:, [0, size]].cpu().numpy().astype(np.float64)
            with np.errstate(invalid="ignore"):
                margins[part] = ends[:, 1] - ends[:, 0]
        return found, margins


class TorchPoincare(PoincareSearch):
    """Exact search in the Poincaré ball, on a device in float64.

    Args:
        points: (V, n), norms below 1.
        gaps: (V,) 1−‖u‖² of the points, to full relative precision.
        device: A device of torch; opened here.
    """

    def __init__(
        self, points: NDArray[np.floating], gaps: NDArray[np.float64], device: str
    ) -> None:
        super().__init__(points, gaps)
        self._torch, self._device = open_device(device)
        self._moved = [self._to_device(array) for array in (self._planes, self._errors)]

    def nearest(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `PoincareSearch.nearest`."""
        planes, errors = self._moved
        nearest = np.empty(len(queries), dtype=np.int64)
        unsure = np.empty(len(queries), dtype=bool)
        moved = self._to_device(lifted(queries))
        step = block_rows(self._torch, self._device, COPIES * 8 * len(self._points))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            scores = moved[part] @ planes
            least, best = scores.min(dim=1)
            ceilings = least + errors[best] + errors.max()
            unsure[part] = ((scores <= ceilings[:, None]).sum(dim=1) != 1).cpu().numpy()
            nearest[part] = best.cpu().numpy()
        if unsure.any():
            nearest[unsure] = super().nearest(queries[unsure])
        return nearest

    def _to_device(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

"""A mechanism that does not tell its law, so that its statistics come from draws."""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.randomness import RowStreams


class Opaque(Mechanism):
    """Draws like the mechanism inside."""

    name = "opaque"

    def __init__(self, inner: Mechanism) -> None:
        super().__init__(inner.space, inner.epsilon)
        self.inner = inner

    def _draw(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return self.inner._draw(ids, streams, positions)

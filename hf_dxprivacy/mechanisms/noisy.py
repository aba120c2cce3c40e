"""What mechanisms that add noise have in common: what they do with the word nearest to it."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.mechanisms.base import Mechanism
from hf_dxprivacy.mechanisms.resampling import NeighbourRanks, uniforms
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.spaces import EmbeddingSpace

# How many neighbours of the word found are drawn from, if any are.
NEIGHBOURS = 100

RESAMPLING = ("resample", "resample_neighbours")

# Finds the row of the nearest vector for each of (m, n) noisy ones.
Search = Callable[[NDArray[np.float64]], NDArray[np.int64]]


class NoiseMechanism(Mechanism):
    """Finds the word nearest to a noisy point, and releases it or one of its neighbours.

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        resample: c > 0: the i-th nearest neighbour of the word found is released with a
            probability ∝ exp(−c·ε·i) (Asghar et al., 2024). None: the word found is. The guarantee
            is the same.
        resample_neighbours: k: i runs from 0, the word itself, to k.
    """

    options: ClassVar[tuple[str, ...]] = RESAMPLING

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        resample: float | None = None,
        resample_neighbours: int = NEIGHBOURS,
    ) -> None:
        super().__init__(space, epsilon)
        if resample is not None:
            _validate.positive(resample=resample)
        _validate.at_least(1, resample_neighbours=resample_neighbours)
        self.resample = None if resample is None else float(resample)
        self.resample_neighbours = int(resample_neighbours)

    @property
    def law(self) -> dict[str, float | str | None]:
        """The parameters that decide what is drawn: those of resampling only if it is done."""
        unused = RESAMPLING if self.resample is None else ()
        return {name: value for name, value in self.parameters.items() if name not in unused}

    @cached_property
    def _neighbours(self) -> NeighbourRanks | None:
        if self.resample is None:
            return None
        return NeighbourRanks(self.space, self.resample * self.epsilon, self.resample_neighbours)

    def _draw(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        found = self._find(ids, streams, positions)
        if self._neighbours is None:
            return found
        return self._neighbours.resample(found, streams.draw(uniforms, positions))

    @abstractmethod
    def _find(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Find the nearest word to a noisy point for each id."""

    def _assumptions(self) -> tuple[str, ...]:
        if self.resample is None:
            return ()
        return (
            "The word found is replaced by its i-th nearest neighbour with a probability ∝ "
            f"exp(-{self.resample:g}·ε·i), i up to {self.resample_neighbours}, which changes the "
            "output, not the guarantee: the neighbours are public.",
        )

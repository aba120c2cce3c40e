"""Resampling among the neighbours of a word, by their rank.

In many dimensions the nearest word to a noisy point is the original word or an unrelated one, and
hardly ever one near to the original (Asghar et al., 2024, arXiv 2411.13784). Their remedy is to go
on from the word found to one of its neighbours. That depends on the word found and on the public
space alone, so it costs no privacy.
"""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces import EmbeddingSpace

# Bytes of one block of distances (words by vocabulary).
BLOCK_BYTES = 1 << 24


class NeighbourRanks:
    """Replaces words by their i-th nearest neighbours, i = 0 … k, with weight exp(−decay·i).

    Rank 0 is the word itself; equally near words are ranked by row. Lists of neighbours are made
    when they are needed first, and kept.

    Args:
        space: Where the words lie; V words.
        decay: Above zero.
        neighbours: k; at most V−1 are used.
    """

    def __init__(self, space: EmbeddingSpace, decay: float, neighbours: int) -> None:
        self._space = space
        ranks = np.arange(min(neighbours, len(space) - 1) + 1)
        weights = np.exp(-decay * ranks)
        self._cumulative = np.cumsum(weights / weights.sum())
        # Memory that is not written to is not taken. One array from the start, so that threads
        # that work out the same list write the same to the same place.
        self._lists = np.empty((len(space), len(ranks)), dtype=np.int32)
        self._known = np.zeros(len(space), dtype=bool)

    def resample(
        self, words: NDArray[np.int64], uniform: NDArray[np.floating]
    ) -> NDArray[np.int64]:
        """Replace words.

        Args:
            words: (m,) rows of the vocabulary.
            uniform: (m,) numbers in [0, 1), one for each.

        Returns:
            (m,) rows of the vocabulary.
        """
        ranks = np.searchsorted(self._cumulative, uniform, side="right")
        # The sum of the weights may be rounded to less than 1.
        ranks = np.minimum(ranks, len(self._cumulative) - 1)
        moved = np.flatnonzero(ranks)
        self._rank_around(np.unique(words[moved]))
        result = words.copy()
        result[moved] = self._lists[words[moved], ranks[moved]]
        return result

    def _rank_around(self, words: NDArray[np.int64]) -> None:
        """Make the lists of those words that have none."""
        missing = words[~self._known[words]]
        step = max(1, BLOCK_BYTES // (8 * len(self._space)))
        for start in range(0, len(missing), step):
            block = missing[start : start + step]
            distances = self._space.distances(block)
            # Before those at the same place.
            distances[np.arange(len(block)), block] = -1.0
            for word, row in zip(block, distances, strict=True):
                self._lists[word] = _nearest(row, self._lists.shape[1])
            self._known[block] = True


def _nearest(distances: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the columns of the least distances, nearest first, ties by column."""
    near = np.flatnonzero(distances <= np.partition(distances, count - 1)[count - 1])
    return near[np.argsort(distances[near], kind="stable")[:count]]


def uniforms(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Draw what `NeighbourRanks.resample` needs for words, (size,)."""
    return rng.random(size)

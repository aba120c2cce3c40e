"""Exact draws from Pr[y] ∝ exp(−s·min(d(w, y), γ)) without the whole row of probabilities.

Composition-rejection: with b the weight at the distance of the K-th nearest word, each of the K
nearest words (the head) has the excess of its weight over b, with total H. All words have the rest,
at most b each: one of them is proposed uniformly, with mass V·b, and accepted with probability
min(weight, b)/b; a rejected draw starts again from the top. The two parts add up to the exact
weight of every word, whatever K is. Words of a text are Zipfian, so the heads of recent words are
kept.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _threads
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.spaces import EmbeddingSpace

Weights = Callable[[NDArray[np.float64]], NDArray[np.float64]]

HEAD = 1360
CACHE_BYTES = 1 << 28
# Bytes of one block of distances (words by vocabulary).
BLOCK_BYTES = 1 << 24


def _uniforms(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.random((size, 3))


class RowSampler:
    """Draws outputs for input words, and remembers the heads it has worked out.

    Args:
        space: Where the words lie.
        weights: Weight of an output at a distance: positive, not increasing, (m,) or (m, k).
        head: K, at most V; a matter of speed only.
        least_capacity: How many different inputs one call of `draw` may bring at the most.
        cache_bytes: Memory for heads; they are dropped together when it is full.
    """

    def __init__(
        self,
        space: EmbeddingSpace,
        weights: Weights,
        head: int = HEAD,
        least_capacity: int = 1,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._space = space
        self._weights = weights
        size = len(space)
        # With few words beyond the head, the whole row is as cheap and has no rejection.
        self._head = size if size <= 2 * head else head
        self._capacity = min(size + 1, max(least_capacity, cache_bytes // (12 * self._head)))
        # The slot of each input in the arrays below; the last entry is id −1, by its index.
        self._slot = np.full(size + 1, -1, dtype=np.int64)
        self._words = np.empty((self._capacity, self._head), dtype=np.int32)
        self._cumulative = np.empty((self._capacity, self._head), dtype=np.float64)
        self._common = np.empty(self._capacity, dtype=np.float64)
        self._next = 0

    def draw(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Draw one output word for each input word; see `Mechanism.sample`.

        Args:
            ids: (m,) inputs, with at most `least_capacity` different ones.
            streams: Where the randomness comes from.
            positions: (m,) which words of the streams they are.
        """
        self._prepare(np.unique(ids))
        drawn = np.empty(len(ids), dtype=np.int64)
        pending = np.arange(len(ids))
        size = len(self._space)
        while len(pending):
            uniform = streams.draw(_uniforms, positions[pending])
            slots = self._slot[ids[pending]]
            head_mass = self._cumulative[slots, -1]
            target = uniform[:, 0] * (head_mass + size * self._common[slots])
            in_head = target < head_mass
            column = _first_above(self._cumulative, slots[in_head], target[in_head])
            drawn[pending[in_head]] = self._words[slots[in_head], column]

            rest = np.flatnonzero(~in_head)
            # A product may round up to the size itself.
            proposal = np.minimum((uniform[rest, 1] * size).astype(np.int64), size - 1)
            weight = self._weights(self._space.pair_distances(ids[pending[rest]], proposal))
            accepted = uniform[rest, 2] * self._common[slots[rest]] < weight
            drawn[pending[rest[accepted]]] = proposal[accepted]
            pending = pending[rest[~accepted]]
        return drawn

    def _prepare(self, distinct: NDArray[np.int64]) -> None:
        """Work out the heads of those inputs that are not remembered."""
        missing = distinct[self._slot[distinct] < 0]
        if len(missing) > self._capacity - self._next:
            # A full cache is emptied as a whole: exact, and rare at the sizes it is made for.
            self._forget()
            missing = distinct
        _threads.limit_in_worker()
        step = max(1, BLOCK_BYTES // (8 * len(self._space)))
        for start in range(0, len(missing), step):
            self._fill(missing[start : start + step])

    def _forget(self) -> None:
        self._slot[:] = -1
        self._next = 0

    def _fill(self, ids: NDArray[np.int64]) -> None:
        distances = self._space.distances(ids)
        for row, word in zip(distances, ids, strict=True):
            slot = self._next
            near = self._nearest(row)
            near_distances = row[near]
            # A little nearer than the farthest word of the head, so that it bounds the weights of
            # the words outside although the head was chosen in float32.
            farthest = near_distances.max(keepdims=True) * (1.0 - 1e-6)
            common = self._weights(farthest)[0] if self._head < len(row) else 0.0
            excess = np.maximum(self._weights(near_distances) - common, 0.0)
            self._words[slot] = near
            np.cumsum(excess, out=self._cumulative[slot])
            self._common[slot] = common
            self._slot[word] = slot
            self._next += 1

    def _nearest(self, row: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return K nearest columns, in any order; which of equal ones is free."""
        if self._head == len(row):
            return np.arange(len(row))
        # float32 is several times faster and orders well enough: rounding is monotone, so a word
        # outside is nearer than one inside by a relative 2^-23 at most.
        coarse = row.astype(np.float32)
        threshold = np.partition(coarse, self._head - 1)[self._head - 1]
        inside = np.flatnonzero(coarse < threshold)
        ties = np.flatnonzero(coarse == threshold)[: self._head - len(inside)]
        return np.concatenate([inside, ties])


def _first_above(
    cumulative: NDArray[np.float64], slots: NDArray[np.int64], targets: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return for each row the first column whose cumulative weight is above the target."""
    low = np.zeros(len(targets), dtype=np.int64)
    high = np.full(len(targets), cumulative.shape[1] - 1, dtype=np.int64)
    for _ in range(int(cumulative.shape[1]).bit_length()):
        middle = (low + high) // 2
        above = cumulative[slots, middle] > targets
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return high

"""Exact rejection sampling from Pr[y] ∝ exp(−s·min(d(w, y), γ)), without the whole row of weights.

The proposal is a piecewise-constant envelope over the partition of the vocabulary: over a block of
words it is the weight at a lower bound of their distances from w, and w itself has a place of its
own, of height 1. A proposed word y is accepted with probability weight(y)/envelope(y). The law is
exactly that of the weights, whatever the partition is and however loose the bounds: the distance of
the one word proposed is computed exactly, and decides. Words of a text are Zipfian, so envelopes of
recent words are kept.
"""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import CPU
from hf_dxprivacy.mechanisms.base import Ids, Reals
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.spaces import EmbeddingSpace

# Here, so that no worker is forked while another thread imports it.
from hf_dxprivacy.spaces.partition import Partition

Weights = Callable[[Reals], Reals]

# Version of the noise-to-word mapping. Increment on any change: it is part of the stream key, so
# old and new releases under one seed stay independent.
SAMPLER = 1

CACHE_BYTES = 1 << 27
# Envelopes are kept in single precision, in parts of their mass. So much is added to each block,
# more than two roundings take away: 1.2e-4 of the mass, in all 512.
LIFT = 2.0**-22
# Owner of a row that has none; −1 is the input out of vocabulary.
FREE = -2
# The fractional parts of its multiples are spread evenly over [0, 1).
GOLDEN = (5**0.5 - 1) / 2
# Inputs whose bounds, and whose envelopes, are computed together.
BOUNDED, FILLED = 1024, 256

# Rounds after which the envelope of an input is made from exact distances, so that at least one
# proposal in a block's length is accepted. Only distances below the range of single precision, of
# which the bounds are 0, ever get there.
PATIENCE = 1000
# What is taken off an exact distance, which is good to 1e-9, to bound it from below.
ROUNDING = 1e-6
# Bytes of one block of distances (words by vocabulary).
TILE_BYTES = 1 << 24


class Envelopes:
    """Room for the envelopes of some inputs; memory is taken when it is written to.

    Attributes:
        cumulative: (R, width) float32, mass over all blocks up to one, over the scale of the row;
            beyond the last block infinity. The width is a power of two.
        scales: (R,) float64.
        rows: (V+1,) int32, row of each input, −1 without one; the last entry is id −1.
        owners: (R,) int32, input of each row, −2 if it is free.
        used: (R,) int64, number of the call that last used each row, −1 before the first.
        taken: How many rows have been handed out.
    """

    def __init__(self, count: int, width: int, size: int) -> None:
        self.cumulative = np.empty((count, width), dtype=np.float32)
        self.scales = np.empty(count)
        self.rows = np.full(size + 1, -1, dtype=np.int32)
        self.owners = np.full(count, FREE, dtype=np.int32)
        self.used = np.full(count, -1, dtype=np.int64)
        self.calls = self.taken = 0

    def missing(self, distinct: Ids) -> Ids:
        """Return those of some inputs that have no row, and note that the others were used."""
        rows = self.rows[distinct]
        self.calls += 1
        self.used[rows[rows >= 0]] = self.calls
        return distinct[rows < 0]

    def claim(self, count: int) -> NDArray[np.int64]:
        """Return free rows, (count,), or the least recently used ones after freeing them."""
        if self.taken + count <= len(self.owners):
            self.taken += count
            return np.arange(self.taken - count, self.taken)
        self.taken = len(self.owners)
        rows = np.argpartition(self.used, count - 1)[:count]
        rows.sort()
        before = self.owners[rows]
        self.rows[before[before != FREE]] = -1
        self.owners[rows] = FREE
        return rows

    def assign(self, ids: Ids, rows: NDArray[np.int64]) -> None:
        """Give rows to inputs once they are written: an interruption before leaves them free."""
        self.owners[rows], self.used[rows], self.rows[ids] = ids, self.calls, rows


class RejectionSampler:
    """Draws outputs for input words, and remembers their envelopes.

    Args:
        space: The vocabulary, of V words.
        weights: Weight of an output at a distance: positive, not increasing, 1 at no distance, of
            any shape.
        least_capacity: How many different inputs one call of `draw` may bring at the most.
        cache_bytes: Memory for envelopes; those not used for the longest time make room.
        device: Where bounds are computed; see `Mechanism.to`.
    """

    def __init__(
        self,
        space: EmbeddingSpace,
        weights: Weights,
        least_capacity: int = 1,
        cache_bytes: int = CACHE_BYTES,
        device: str = CPU,
    ) -> None:
        self._space = space
        self._device = device
        self._weights = weights
        self._floor = weights(np.array([np.inf]))[0]
        partition: Partition = space.partition(device)
        self._order, self._starts = partition.order, partition.starts
        self._sizes = np.diff(self._starts)
        self._width = 1 << (len(self._sizes) - 1).bit_length()
        count = min(len(space) + 1, max(least_capacity, cache_bytes // (4 * self._width)))
        self._envelopes = Envelopes(count, self._width, len(space))

    def draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        """Draw one output word for each input word; see `Mechanism.sample`.

        Args:
            ids: (m,) inputs, with at most `least_capacity` different ones.
            streams: Where the randomness comes from.
            positions: (m,) which words of the streams they are.
        """
        self._prepare(np.unique(ids))
        drawn, pending = ids.copy(), np.arange(len(ids))
        envelopes, rounds = self._envelopes, 0
        while len(pending):
            if rounds == PATIENCE:
                # Not kept, so that a seeded draw depends on its own noise alone.
                envelopes = self._tight(np.unique(ids[pending]))
            uniform = streams.draw(_uniform_pairs, positions[pending])
            rows = envelopes.rows[ids[pending]]
            end = envelopes.cumulative[rows, len(self._sizes) - 1].astype(np.float64)
            # The first place is that of the word itself, which the centroid does not have.
            own = (ids[pending] >= 0) / envelopes.scales[rows]
            target = uniform[:, 0] * (own + end) - own
            beyond = np.flatnonzero(target >= 0.0)
            pending = pending[beyond]
            # A product may round up.
            target = np.minimum(target, np.nextafter(end, 0.0))[beyond]
            outputs, heights = self._propose(rows[beyond], target, uniform[beyond, 1], envelopes)
            accepted = self._accepted(ids[pending], outputs, heights)
            drawn[pending[accepted]] = outputs[accepted]
            pending = pending[~accepted]
            rounds += 1
        return drawn

    def _propose(
        self,
        rows: NDArray[np.int32],
        target: Reals,
        uniform: NDArray[np.floating],
        envelopes: Envelopes,
    ) -> tuple[Ids, Reals]:
        """Return words and heights of points below the envelope, at places by their masses."""
        cumulative, first = envelopes.cumulative.ravel(), rows.astype(np.int64) * self._width
        at = first_above(cumulative, first, self._width, target)
        block = at - first
        # In double precision differences are exact: blocks are hit by the mass they have.
        before = np.where(block > 0, cumulative[at - 1].astype(np.float64), 0.0)
        mass, size = cumulative[at] - before, self._sizes[block]
        place = np.minimum(((target - before) * (size / mass)).astype(np.int64), size - 1)
        words = self._order[self._starts[block] + place].astype(np.int64)
        return words, uniform * (envelopes.scales[rows] * (mass / size))

    def _accepted(self, ids: Ids, outputs: Ids, heights: Reals) -> NDArray[np.bool_]:
        """Tell which proposals are accepted: their heights are below the weights."""
        # A word has its own place and none in its block. No weight is below the floor.
        other = outputs != ids
        under: NDArray[np.bool_] = other & (heights < self._floor)
        rest = np.flatnonzero(other & ~under)
        lower, upper = self._space.pair_bounds(ids[rest], outputs[rest])
        under[rest] = heights[rest] < self._weights(upper)
        # Bounds that do not decide are as rare as they are close; an exact distance does.
        unsure = rest[~under[rest] & (heights[rest] < self._weights(lower))]
        if len(unsure):
            exact = self._space.pair_distances(ids[unsure], outputs[unsure])
            under[unsure] = heights[unsure] < self._weights(exact)
        return under

    def _prepare(self, distinct: Ids) -> None:
        """Compute the envelopes of those inputs that have none."""
        missing = self._envelopes.missing(distinct)
        # Workers with the same words begin at different ones, and find the others done.
        missing = np.roll(missing, int(len(missing) * (os.getpid() * GOLDEN % 1.0)))
        for start in range(0, len(missing), BOUNDED):
            ids = missing[start : start + BOUNDED]
            bounds = self._space.block_bounds(ids, self._device)
            for first in range(0, len(ids), FILLED):
                part = slice(first, first + FILLED)
                self._fill(self._envelopes, ids[part], bounds[part])

    def _tight(self, ids: Ids) -> Envelopes:
        """Return the envelopes of some inputs from the least distance to each block."""
        envelopes = Envelopes(len(ids), self._width, len(self._space))
        step = max(1, TILE_BYTES // (8 * len(self._space)))
        for start in range(0, len(ids), step):
            part = ids[start : start + step]
            distances = self._space.distances(part)
            known = np.flatnonzero(part >= 0)
            distances[known, part[known]] = np.inf
            least = np.minimum.reduceat(distances[:, self._order], self._starts[:-1], axis=1)
            self._fill(envelopes, part, least * (1.0 - ROUNDING))
        return envelopes

    def _fill(self, envelopes: Envelopes, ids: Ids, bounds: NDArray[np.floating]) -> None:
        """Set the envelopes of some inputs by lower bounds of distances."""
        rows, blocks = envelopes.claim(len(ids)), len(self._sizes)
        masses = self._weights(bounds.astype(np.float64))
        masses *= self._sizes
        envelopes.scales[rows] = totals = masses.sum(axis=1)
        masses /= totals[:, None]
        masses += LIFT
        envelopes.cumulative[rows, :blocks] = np.cumsum(masses, axis=1)
        envelopes.cumulative[rows, blocks:] = np.inf
        envelopes.assign(ids, rows)


def _uniform_pairs(rng: np.random.Generator, size: int) -> Reals:
    return rng.random((size, 2))


def first_above(cumulative: NDArray[np.float32], first: Ids, width: int, targets: Reals) -> Ids:
    """Return for each target where the first value of its row above it is; the last, if none is.

    Args:
        cumulative: Rows of a power of two of ascending values, one after the other.
        first: (m,) where the row of each target starts.
        width: Length of a row.
        targets: (m,) numbers.
    """
    found = first.copy()
    step = width // 2
    while step:
        found += step * (cumulative[found + (step - 1)] <= targets)
        step //= 2
    return found

"""Exact draws from Pr[y] ∝ exp(−s·min(d(w, y), γ)) without the whole row of probabilities.

Points are thrown uniformly under a curve that is nowhere below the weights, until one is under the
weights too; its place is the draw. Over a cell of words the curve has the constant height b, the
weight at a lower bound of their distances from w; w itself has a place of its own, of height 1.
What is drawn has exactly the law of the weights, whatever the cells are and however loose the
bounds: the distance of the one word that was hit is computed exactly, and decides. Words of a text
are Zipfian, so the curves of recent words are kept.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.spaces import EmbeddingSpace

Weights = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Number of this way to make words of noise. Who changes it for a seed gives it another number, and
# with that all noise: two words made in two ways of one noise may tell what two releases may not.
SAMPLER = 1

CACHE_BYTES = 1 << 26
# Curves are kept in single precision, in parts of their mass. So much is added to each cell, more
# than two roundings take away: 1.2e-4 of the mass, in all 512.
LIFT = 2.0**-22
# Inputs whose bounds, and whose curves, are worked out together.
BOUNDED, FILLED = 1024, 256


def _uniforms(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.random((size, 2))


class RowSampler:
    """Draws outputs for input words, and remembers the curves it has worked out.

    Args:
        space: Where the words lie; V words.
        weights: Weight of an output at a distance: positive, not increasing, 1 at no distance, of
            any shape.
        least_capacity: How many different inputs one call of `draw` may bring at the most.
        cache_bytes: Memory for curves; they are dropped together when it is full.
        device: Where bounds are worked out; see `Mechanism.to`.
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
        cells = space.cells(device)
        self._order, self._starts = cells.order, cells.starts
        self._sizes = np.diff(self._starts)
        # A power of two makes the search in a row simple.
        width = 1 << (len(self._sizes) - 1).bit_length()
        rows = min(len(space) + 1, max(least_capacity, cache_bytes // (4 * width)))
        # Each row has the mass of the curve over all cells up to one, over a scale of the row.
        # Memory that is not written to is not taken.
        self._cumulative = np.empty((rows, width), dtype=np.float32)
        self._scales = np.empty(rows)
        # The row of each input, −1 without one; the last entry is id −1, by its index.
        self._rows = np.full(len(space) + 1, -1, dtype=np.int32)
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
        drawn = ids.copy()
        pending = np.arange(len(ids))
        while len(pending):
            uniform = streams.draw(_uniforms, positions[pending])
            rows = self._rows[ids[pending]]
            end = self._cumulative[rows, len(self._sizes) - 1].astype(np.float64)
            # What is hit first is the word itself, which the centroid is not.
            own = (ids[pending] >= 0) / self._scales[rows]
            target = uniform[:, 0] * (own + end) - own
            beyond = np.flatnonzero(target >= 0.0)
            pending = pending[beyond]
            # A product may round up.
            target = np.minimum(target, np.nextafter(end, 0.0))
            outputs, heights = self._points(ids[pending], target[beyond], uniform[beyond, 1])
            accepted = self._under_weights(ids[pending], outputs, heights)
            drawn[pending[accepted]] = outputs[accepted]
            pending = pending[~accepted]
        return drawn

    def _points(
        self, ids: NDArray[np.int64], target: NDArray[np.float64], uniform: NDArray[np.floating]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return words and heights of points under the curve, at places by their masses."""
        width, rows = self._cumulative.shape[1], self._rows[ids].astype(np.int64)
        first, cumulative = rows * width, self._cumulative.ravel()
        cell = _first_above(cumulative, first, width, target)
        # In double precision differences are exact: cells are hit by what the curve has over them.
        before = np.where(cell > 0, cumulative[first + cell - 1].astype(np.float64), 0.0)
        mass, size = cumulative[first + cell] - before, self._sizes[cell]
        place = np.minimum(((target - before) * (size / mass)).astype(np.int64), size - 1)
        words = self._order[self._starts[cell] + place].astype(np.int64)
        return words, uniform * (self._scales[rows] * (mass / size))

    def _under_weights(
        self, ids: NDArray[np.int64], outputs: NDArray[np.int64], heights: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell which points are under the weights of their words."""
        # A word has its own place and none in its cell. No weight is below the floor.
        other = outputs != ids
        under: NDArray[np.bool_] = other & (heights < self._floor)
        rest = np.flatnonzero(other & ~under)
        lower, upper = self._space.pair_bounds(ids[rest], outputs[rest])
        under[rest] = heights[rest] < self._weights(upper)
        # Bounds that do not decide are as rare as they are close; an exact distance does.
        unsure = rest[~under[rest] & (heights[rest] < self._weights(lower))]
        exact = self._space.pair_distances(ids[unsure], outputs[unsure])
        under[unsure] = heights[unsure] < self._weights(exact)
        return under

    def _prepare(self, distinct: NDArray[np.int64]) -> None:
        """Work out the curves of those inputs that are not remembered."""
        missing = distinct[self._rows[distinct] < 0]
        if len(missing) > len(self._cumulative) - self._next:
            # A full cache is emptied as a whole: exact, and rare at the sizes it is made for.
            self._rows[:], self._next = -1, 0
            missing = distinct
        for start in range(0, len(missing), BOUNDED):
            ids = missing[start : start + BOUNDED]
            bounds = self._space.cell_bounds(ids, self._device)
            for first in range(0, len(ids), FILLED):
                self._fill(ids[first : first + FILLED], bounds[first : first + FILLED])

    def _fill(self, ids: NDArray[np.int64], bounds: NDArray[np.float32]) -> None:
        first, self._next = self._next, self._next + len(ids)
        rows = self._cumulative[first : self._next]
        masses = self._weights(bounds.astype(np.float64))
        masses *= self._sizes
        totals = masses.sum(axis=1)
        masses /= totals[:, None]
        masses += LIFT
        rows[:, : len(self._sizes)] = np.cumsum(masses, axis=1)
        rows[:, len(self._sizes) :] = np.inf
        self._scales[first : self._next] = totals
        self._rows[ids] = np.arange(first, self._next)


def _first_above(
    cumulative: NDArray[np.float32],
    first: NDArray[np.int64],
    width: int,
    targets: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return for each target how many values of its row are not above it, less than the width.

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
    return found - first

"""Exact draws from Pr[y] ∝ exp(−s·min(d(w, y), γ)) without the whole row of probabilities.

Points are thrown uniformly under a curve that is nowhere below the weights, until one is under the
weights too; its place is the draw. With b the largest weight that a word off the list of w may
have, the curve is b everywhere, and at a listed word the weight at a lower bound of its distance if
that is more. Its part above b, the head, has a total H; the rest is V·b. What is drawn has exactly
the law of the weights, whatever is listed and however loose the bounds: the distance of the one
word that was hit is computed exactly, and decides. Words of a text are Zipfian, so the heads of
recent words are kept.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.spaces import EmbeddingSpace

Weights = Callable[[NDArray[np.float64]], NDArray[np.float64]]

HEAD = 128
# All words out of vocabulary are one input, and a frequent one with no word at its place: its
# list is so many times as long.
CENTROID_LISTS = 64
CACHE_BYTES = 1 << 26
BYTES = 12
# Inputs whose heads are worked out together.
FILLED = 512


def _uniforms(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.random((size, 3))


class RowSampler:
    """Draws outputs for input words, and remembers the heads it has worked out.

    Args:
        space: Where the words lie; V words.
        weights: Weight of an output at a distance: positive, not increasing, of any shape.
        head: How many words to list, at most V; a matter of speed only.
        least_capacity: How many different inputs one call of `draw` may bring at the most.
        cache_bytes: Memory for heads; they are dropped together when it is full.
        device: Where heads are found; see `Mechanism.to`.
    """

    def __init__(
        self,
        space: EmbeddingSpace,
        weights: Weights,
        head: int = HEAD,
        least_capacity: int = 1,
        cache_bytes: int = CACHE_BYTES,
        device: str = CPU,
    ) -> None:
        self._space = space
        self._device = device
        self._weights = weights
        self._floor = weights(np.array([np.inf]))[0]
        size = len(space)
        # With few words beyond the head, the whole row is as cheap and has no rejection.
        self._head = size if size <= 2 * head else head
        self._centroid_head = min(size, CENTROID_LISTS * self._head)
        # Each head has a place more, at its start, which holds no word.
        least = least_capacity * (self._head + 1) + self._centroid_head + 1
        most = size * (self._head + 1) + self._centroid_head + 1
        places = min(most, max(least, cache_bytes // BYTES))
        # Differences of the cumulative weights are what the curve has above b.
        self._words = np.empty(places, dtype=np.int32)
        self._cumulative = np.empty(places, dtype=np.float64)
        # First and last place of each input's head, and its b; the last entry is id −1, by its
        # index. No head is remembered where the last place is −1.
        self._first = np.zeros(size + 1, dtype=np.int64)
        self._last = np.full(size + 1, -1, dtype=np.int64)
        self._common = np.zeros(size + 1)
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
        while len(pending):
            uniform = streams.draw(_uniforms, positions[pending])
            outputs, heights = self._points(ids[pending], uniform)
            accepted = self._under_weights(ids[pending], outputs, heights)
            drawn[pending[accepted]] = outputs[accepted]
            pending = pending[~accepted]
        return drawn

    def _points(
        self, ids: NDArray[np.int64], uniform: NDArray[np.floating]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the words and the heights of points that are uniform under the curve."""
        size, common = len(self._space), self._common[ids]
        head_mass = self._cumulative[self._last[ids]]
        target = uniform[:, 0] * (head_mass + size * common)
        # A product may round up to the size itself.
        words = np.minimum((uniform[:, 1] * size).astype(np.int64), size - 1)
        heights = uniform[:, 2] * common
        head = np.flatnonzero(target < head_mass)
        first, last = self._first[ids[head]], self._last[ids[head]]
        place = _first_above(self._cumulative, first, last, target[head])
        words[head] = self._words[place]
        thickness = self._cumulative[place] - self._cumulative[place - 1]
        heights[head] = common[head] + uniform[head, 2] * thickness
        return words, heights

    def _under_weights(
        self, ids: NDArray[np.int64], outputs: NDArray[np.int64], heights: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell which points are under the weights of their words."""
        # A word has the weight 1 for itself, and no weight is below the floor.
        under: NDArray[np.bool_] = (outputs == ids) | (heights < self._floor)
        rest = np.flatnonzero(~under)
        lower, upper = self._space.pair_bounds(ids[rest], outputs[rest])
        under[rest] = heights[rest] < self._weights(upper)
        # Bounds that do not decide are as rare as they are close; an exact distance does.
        unsure = rest[~under[rest] & (heights[rest] < self._weights(lower))]
        exact = self._space.pair_distances(ids[unsure], outputs[unsure])
        under[unsure] = heights[unsure] < self._weights(exact)
        return under

    def _prepare(self, distinct: NDArray[np.int64]) -> None:
        """Work out the heads of those inputs that are not remembered."""
        missing = distinct[self._last[distinct] < 0]
        room = len(self._words) - self._next
        if self._places(missing) > room:
            # A full cache is emptied as a whole: exact, and rare at the sizes it is made for.
            self._last[:], self._next = -1, 0
            missing = distinct
        words = missing[missing >= 0]
        for start in range(0, len(words), FILLED):
            self._fill(words[start : start + FILLED], self._head)
        self._fill(missing[missing < 0], self._centroid_head)

    def _places(self, ids: NDArray[np.int64]) -> int:
        centroids = int(np.count_nonzero(ids < 0))
        words = len(ids) - centroids
        return words * (self._head + 1) + centroids * (self._centroid_head + 1)

    def _fill(self, ids: NDArray[np.int64], head: int) -> None:
        if not len(ids):
            return
        lists = self._space.shortlists(ids, head, self._device)
        # Stored lists may be shorter than what was asked for.
        places = lists.words.shape[1] + 1
        common = self._weights(lists.beyond)
        excess = self._weights(lists.lower.astype(np.float64)) - common[:, None]
        first, shape = self._next, (len(ids), places)
        self._next += len(ids) * places
        self._words[first : self._next].reshape(shape)[:, 1:] = lists.words
        cumulative = self._cumulative[first : self._next].reshape(shape)
        cumulative[:, 0] = 0.0
        np.cumsum(np.maximum(excess, 0.0), axis=1, out=cumulative[:, 1:])
        self._first[ids] = np.arange(first, self._next, places)
        self._last[ids] = self._first[ids] + places - 1
        self._common[ids] = common


def _first_above(
    cumulative: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    targets: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return for each target the first place from first to last whose value is above it."""
    low, high = first, last
    for _ in range(int((last - first).max(initial=0) + 1).bit_length()):
        middle = (low + high) // 2
        above = cumulative[middle] > targets
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return high

"""Partition of the vocabulary into blocks of near words, with lower bounds of their distances.

Words are clustered, and put in order by cluster and by distance from the centroid; a block is a run
of equal length of that order. In high dimensions distances concentrate, so a single lower bound per
block is tight. The bounds are minima of products on an `IntegerLattice`, the same in every batch.
"""

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime
from hf_dxprivacy._runtime import block_rows, full_float32, lazy_property, open_device
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.distances import Distances
from hf_dxprivacy.spaces.lattice import IntegerLattice, Rounded

BLOCKS = 512
# Clusters, found among some of the words by some rounds of k-means.
CLUSTERS, SAMPLE, STEPS = 32, 1 << 12, 5
# Inputs and words of one matrix product, which BLAS multiplies at full speed.
ROWS, COLUMNS = 1024, 1024
# Inputs whose bounds are finished together: they stay in the cache.
FINISHED = 128
# Factors of a smaller vocabulary are kept, which is a fifth faster for short texts.
KEPT_NUMBERS = 1 << 24
# What is taken off a bound for rounding that is not of the lattice.
ROUNDING = 1e-6


def first_places(size: int, count: int) -> NDArray[np.int64]:
    """Return the first place of each block in the order of so many words, and their number."""
    return np.arange(count + 1, dtype=np.int64) * size // count


@dataclass(frozen=True)
class _Extremes:
    """Extremes over the words of each block, (blocks,) each."""

    nearest: NDArray[np.float64]
    farthest: NDArray[np.float64]
    error: NDArray[np.float64]
    stretch: NDArray[np.float64]


class Partition:
    """Partition of a vocabulary.

    Args:
        distances: The distances of V words of n dimensions.
        count: How many blocks, at most V.
        order: (V,) int32, all words, those of one block together; computed by default.

    Attributes:
        order: As given, or as computed.
        starts: (count+1,) first place in the order of each block, and V.
    """

    def __init__(
        self, distances: Distances, count: int, order: NDArray[np.int32] | None = None
    ) -> None:
        self._distances = distances
        _runtime.limit_in_worker()
        self.order = _clustered(self._lattice, len(distances.vectors)) if order is None else order
        self.starts = first_places(len(self.order), count)
        self._gaps = distances.gaps if distances.metric == "poincare" else None

    @lazy_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of which words are in which blocks, and in which order."""
        return hashlib.sha256(self.starts.tobytes() + self.order.tobytes()).hexdigest()

    def bounds(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return lower bounds of the distances to all words of each block but the input itself.

        Args:
            ids: (m,) rows; −1 is the centroid.

        Returns:
            (m, blocks) float32.
        """
        _runtime.limit_in_worker()
        bounds = np.empty((len(ids), len(self.starts) - 1), dtype=np.float32)
        for rows in metrics.blocks(0, len(ids), ROWS):
            halves = self._halves(ids[rows])
            for part in metrics.blocks(rows.start, rows.stop, FINISHED):
                columns = slice(part.start - rows.start, part.stop - rows.start)
                bounds[part] = self._finished(ids[part], halves[:, columns].T)
        # Below the normal numbers single precision rounds up by as much as the half.
        bounds[bounds < np.finfo(np.float32).tiny] = 0.0
        return bounds

    def _halves(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return (blocks, m) least halves of squared distances, over the gaps of the words."""
        queries, count = self._lattice.rounded(ids).as_queries().T, len(self.starts) - 1
        step = max(1, self._columns(len(ids)) * count // len(self.order))
        groups = metrics.blocks(0, count, step)
        return np.concatenate([self._least(ids, queries, blocks) for blocks in groups])

    def _finished(
        self, ids: NDArray[np.int64], halves: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return (m, blocks) lower bounds of distances."""
        blocks = self._extremes
        reach = np.sqrt(2.0 * np.maximum(halves, 0.0, dtype=np.float64)) * self._lattice.unit
        reach -= blocks.error
        reach -= self._lattice.errors[ids, None] * blocks.stretch
        if self._gaps is not None:
            reach = 2.0 * np.arcsinh(np.maximum(reach, 0.0) / np.sqrt(self._gaps[ids, None]))
        reach *= self._distances.scale
        # By the distances from the centroid, for what lies too far out for the lattice.
        radii = self._radii[ids, None]
        slack = ROUNDING * (radii + blocks.farthest)
        np.maximum(reach, blocks.nearest - radii - slack, out=reach)
        np.maximum(reach, radii - blocks.farthest - slack, out=reach)
        reach *= 1.0 - ROUNDING
        bounds: NDArray[np.float64] = np.clip(reach, 0.0, np.finfo(np.float32).max, out=reach)
        return bounds

    def _columns(self, rows: int) -> int:
        """Return how many words so many inputs are multiplied with at once."""
        del rows
        return COLUMNS

    def _least(
        self, ids: NDArray[np.int64], queries: NDArray[np.floating], blocks: slice
    ) -> NDArray[np.floating]:
        """Return what `_halves` does, for some of the blocks."""
        first, end = self.starts[blocks.start], self.starts[blocks.stop]
        halves: NDArray[np.floating] = self._factors(slice(first, end)) @ queries
        if self._gaps is not None:
            halves /= self._gaps[self.order[first:end], None]
        columns, places = self._own(ids, first, end)
        halves[places, columns] = np.inf
        # Several times faster than `reduceat`.
        cuts = self.starts[blocks.start : blocks.stop + 1] - first
        return np.stack([halves[a:b].min(axis=0) for a, b in pairwise(cuts)])

    def _own(
        self, ids: NDArray[np.int64], first: int, end: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which inputs are words of some places, and at which of them."""
        places = self._places[ids].astype(np.int64)
        columns = np.flatnonzero((ids >= 0) & (first <= places) & (places < end))
        return columns, places[columns] - first

    @lazy_property
    def _lattice(self) -> IntegerLattice:
        return IntegerLattice(self._distances)

    @lazy_property
    def _places(self) -> NDArray[np.int32]:
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    @lazy_property
    def _radii(self) -> NDArray[np.float64]:
        """(V+1,) distances from the centroid; the last is its own, 0."""
        if self._gaps is None:
            norms: NDArray[np.float64] = np.sqrt(self._distances.squared_norms)
            return self._distances.scale * norms
        ids = np.append(np.arange(len(self.order)), -1)
        return self._distances.pairs(ids, np.full_like(ids, -1))

    @lazy_property
    def _extremes(self) -> _Extremes:
        radii, first = self._radii[self.order], self.starts[:-1]
        stretch = np.ones_like(radii) if self._gaps is None else self._gaps[self.order] ** -0.5
        return _Extremes(
            np.minimum.reduceat(radii, first),
            np.maximum.reduceat(radii, first),
            np.maximum.reduceat(self._lattice.errors[self.order] * stretch, first),
            np.maximum.reduceat(stretch, first),
        )

    def _factors(self, places: slice) -> NDArray[np.floating]:
        small = self._distances.vectors.size <= KEPT_NUMBERS
        return self._all_factors[places] if small else self._made(places)

    @lazy_property
    def _all_factors(self) -> NDArray[np.floating]:
        return self._made(slice(None))

    def _made(self, places: slice) -> NDArray[np.floating]:
        return self._lattice.rounded(self.order[places].astype(np.int64)).as_words()


def _clustered(lattice: IntegerLattice, size: int) -> NDArray[np.int32]:
    """Return all words by cluster, and in a cluster by the norm."""
    sample = lattice.rounded(keyed_generator(0).permutation(size)[:SAMPLE])
    centers = lattice.whole(sample.whole[:CLUSTERS])
    for _ in range(STEPS):
        nearest = _nearest(sample, centers)
        means = centers.whole.copy()
        for cluster in np.unique(nearest):
            # Sums of whole numbers are exact in any order.
            means[cluster] = sample.whole[nearest == cluster].mean(axis=0, dtype=np.float64)
        centers = lattice.whole(means)
    clusters, norms = np.empty(size, dtype=np.int64), np.empty(size)
    for rows in metrics.blocks(0, size):
        rounded = lattice.rounded(np.arange(rows.start, rows.stop))
        clusters[rows], norms[rows] = _nearest(rounded, centers), rounded.half_norms
    return np.lexsort((norms, clusters)).astype(np.int32)


def _nearest(points: Rounded, centers: Rounded) -> NDArray[np.int64]:
    nearest: NDArray[np.int64] = (points.as_words() @ centers.as_queries().T).argmin(axis=1)
    return nearest


# Copies of a block of products that a device holds at once.
COPIES = 2


class TorchPartition(Partition):
    """Partition of a vocabulary, with products on a device.

    They are exact, so bounds are those of `Partition`.

    Args:
        distances: The distances of V words of n dimensions; the words are copied to the device.
        device: A device of torch; opened here.
        count: How many blocks, at most V.
        order: (V,) int32, all words, those of one block together; computed by default.
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
        self, ids: NDArray[np.int64], queries: NDArray[np.floating], blocks: slice
    ) -> NDArray[np.floating]:
        first, end = self.starts[blocks.start], self.starts[blocks.stop]
        with full_float32(self._torch):
            halves = self._moved_factors[first:end] @ self._moved(queries)
        if self._gaps is not None:
            halves /= self._moved(self._gaps[self.order[first:end], None])
        columns, places = self._own(ids, first, end)
        halves[self._moved(places), self._moved(columns)] = np.inf
        cuts = self.starts[blocks.start : blocks.stop + 1] - first
        least = self._torch.stack([halves[a:b].amin(dim=0) for a, b in pairwise(cuts)])
        found: NDArray[np.floating] = least.cpu().numpy()
        return found

    @lazy_property
    def _moved_factors(self) -> Any:
        blocks = metrics.blocks(0, len(self.order))
        return self._torch.cat([self._moved(self._made(places)) for places in blocks])

    def _moved(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

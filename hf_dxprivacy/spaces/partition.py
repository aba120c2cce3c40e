"""Partition of the vocabulary into blocks of near words, with lower bounds of their distances.

Words are clustered, and put in order by cluster and by distance from the centroid; a block is a run
of equal length of that order. In high dimensions distances concentrate, so a single lower bound per
block is tight. The bounds are minima of products on a lattice so coarse that they are exact.

A product of matrices of whole numbers is exact in floating point, whatever the order of its sums,
if no sum leaves the range in which whole numbers are exact. By Cauchy-Schwarz none does if the
vectors are short enough. So bounds are the same in any batch, with any number of threads and on any
device. Between processors of different makes only the step of the lattice may differ, in its last
digit.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy import _runtime
from hf_dxprivacy._devices import block_rows, full_float32, open_device
from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.distances import MODERATE, Distances

# Clusters, found among some of the words by some rounds of k-means.
CLUSTERS, SAMPLE, STEPS = 32, 1 << 12, 5
# Inputs and words of one matrix product, which BLAS multiplies at full speed.
ROWS, COLUMNS = 1024, 1024
# Inputs whose bounds are finished together: they stay in the cache.
FINISHED = 128
# Factors of a smaller vocabulary are kept, which is a fifth faster for short texts.
KEPT_NUMBERS = 1 << 24
# Copies of a block of products that a device of torch holds at once.
COPIES = 2

# Norms in units of the lattice: sums up to 2·norm² are exact whole numbers in that dtype.
LONGEST = {"euclidean": (np.float32, 2890.0), "poincare": (np.float64, 3e7)}
# The lattice is made for norms up to so many times the median. A longer vector is moved nearer.
OUTLIER = 4.0
SHORTEST = 1e-150
# What rounding other than to the lattice may change in an error or a bound, many times over.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Rounded:
    """Vectors in units of a lattice.

    Attributes:
        whole: (m, n) whole numbers.
        half_norms: (m,) halves of their squared norms, rounded down.
    """

    whole: NDArray[np.floating]
    half_norms: NDArray[np.floating]

    def as_queries(self) -> NDArray[np.floating]:
        """Return (m, n+2) factors; see `as_words`."""
        ones = np.ones_like(self.half_norms)
        return np.column_stack([-self.whole, ones, self.half_norms])

    def as_words(self) -> NDArray[np.floating]:
        """Return (m, n+2) factors, whose products with queries are halves of squared distances.

        A product is at most 1 below, and never above.
        """
        return np.column_stack([self.whole, self.half_norms, np.ones_like(self.half_norms)])

    def nearest(self, centers: "Rounded") -> NDArray[np.int64]:
        """Return the nearest of some centers to each vector, (m,)."""
        nearest: NDArray[np.int64] = (self.as_words() @ centers.as_queries().T).argmin(axis=1)
        return nearest


class IntegerLattice:
    """A lattice around the centroid of the words.

    Args:
        distances: The distances of V words of n dimensions.

    Attributes:
        unit: Its step.
        errors: (V+1,) largest distance of a word from its point; then of the centroid.
    """

    def __init__(self, distances: Distances) -> None:
        self._dtype, longest = LONGEST[distances.metric]
        self._vectors = distances.vectors
        norms = np.sqrt(distances.squared_norms)
        moderate = MODERATE[0] < norms.max() ** 2 < MODERATE[1]
        # Exactly what the rounded vectors are measured from.
        self._center = distances.centroid.astype(self._dtype if moderate else np.float64)
        # Up to this norm vectors are only rounded.
        usual = OUTLIER * float(np.median(norms[norms > 0])) if norms.any() else 0.0
        reach = max(SHORTEST, min(float(norms.max()), usual))
        # Rounding to whole numbers lengthens a vector by half of √n at most.
        self.unit = reach / (longest - math.sqrt(len(self._center)))
        self._factors = np.minimum(1.0, reach / np.maximum(norms, reach)) / self.unit
        self.errors = np.empty(len(norms))
        for rows in metrics.blocks(0, len(self._vectors)):
            ids = np.arange(rows.start, rows.stop)
            self.errors[rows] = self._error(self._vectors[rows], ids)
        self.errors[-1:] = self._error(distances.centroid[None], np.array([-1]))

    def rounded(self, ids: NDArray[np.int64]) -> Rounded:
        """Return the points of the lattice for some words; −1 is the centroid."""
        centred = self._vectors[ids].astype(self._center.dtype, copy=False) - self._center
        centred *= self._factors[ids, None]
        centred[ids < 0] = 0.0
        return self.whole(centred)

    def whole(self, vectors: NDArray[np.floating]) -> Rounded:
        """Round vectors that are in units of the lattice."""
        whole = np.rint(vectors).astype(self._dtype, copy=False)
        squared = np.einsum("ij,ij->i", whole, whole)
        return Rounded(whole, np.floor(squared / 2.0))

    def _error(self, vectors: NDArray[np.floating], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        back = self.unit * self.rounded(ids).whole.astype(np.float64)
        squared = metrics.pair_squared(vectors - self._center.astype(np.float64), back)
        return np.sqrt(squared) * (1.0 + ROUNDING)


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
        size = len(distances.vectors)
        self.order = _clustered(self._lattice, size) if order is None else order
        self.starts = np.arange(count + 1, dtype=np.int64) * size // count
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
        count = len(self.starts) - 1
        bounds = np.empty((len(ids), count), dtype=np.float32)
        for rows in metrics.blocks(0, len(ids), ROWS):
            here = ids[rows]
            queries = self._lattice.rounded(here).as_queries().T
            step = max(1, self._columns(len(here)) * count // len(self.order))
            groups = metrics.blocks(0, count, step)
            halves = np.concatenate([self._least(here, queries, blocks) for blocks in groups])
            for part in metrics.blocks(0, len(here), FINISHED):
                done = slice(rows.start + part.start, rows.start + part.stop)
                bounds[done] = self._finished(here[part], halves[:, part].T)
        # Below the normal numbers single precision rounds up by as much as the half.
        bounds[bounds < np.finfo(np.float32).tiny] = 0.0
        return bounds

    def all_bounds(self, progress: bool = False) -> "DistanceBounds":
        """Return the bounds of all words and the centroid, to be stored."""
        ids = np.append(np.arange(len(self.order)), -1)
        lower = np.empty((len(ids), len(self.starts) - 1), dtype=np.float32)
        with tqdm(total=len(ids), unit=" words", desc="neighbours", disable=not progress) as bar:
            for rows in metrics.blocks(0, len(ids), ROWS):
                lower[rows] = self.bounds(ids[rows])
                bar.update(rows.stop - rows.start)
        lower.setflags(write=False)
        return DistanceBounds(self.order.astype(np.int32), lower)

    def _finished(
        self, ids: NDArray[np.int64], halves: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return (m, blocks) lower bounds of distances."""
        nearest, farthest, error, stretch = self._extremes
        reach = np.sqrt(2.0 * np.maximum(halves, 0.0, dtype=np.float64)) * self._lattice.unit
        reach -= error
        reach -= self._lattice.errors[ids, None] * stretch
        if self._gaps is not None:
            reach = 2.0 * np.arcsinh(np.maximum(reach, 0.0) / np.sqrt(self._gaps[ids, None]))
        reach *= self._distances.scale
        # By the distances from the centroid, for what lies too far out for the lattice.
        radii = self._radii[ids, None]
        slack = ROUNDING * (radii + farthest)
        np.maximum(reach, nearest - radii - slack, out=reach)
        np.maximum(reach, radii - farthest - slack, out=reach)
        reach *= 1.0 - ROUNDING
        bounds: NDArray[np.float64] = np.clip(reach, 0.0, np.finfo(np.float32).max, out=reach)
        return bounds

    def _least(
        self, ids: NDArray[np.int64], queries: NDArray[np.floating], blocks: slice
    ) -> NDArray[np.floating]:
        """Return (blocks, m) least halves of squared distances, over the gaps of the words."""
        first, end = self.starts[blocks.start], self.starts[blocks.stop]
        halves = self._products(slice(first, end), queries)
        if self._gaps is not None:
            halves /= self._moved(self._gaps[self.order[first:end], None])
        places = self._places[ids].astype(np.int64)
        own = np.flatnonzero((ids >= 0) & (first <= places) & (places < end))
        halves[self._moved(places[own] - first), self._moved(own)] = np.inf
        cuts = self.starts[blocks.start : blocks.stop + 1] - first
        return self._minima([halves[a:b] for a, b in pairwise(cuts)])

    # Overridden for a device of torch.

    def _columns(self, rows: int) -> int:
        """Return the number of words in one matrix product, for a number of inputs."""
        del rows
        return COLUMNS

    def _moved(self, array: NDArray[Any]) -> Any:
        """Return an array on the device of the products."""
        return array

    def _products(self, places: slice, queries: NDArray[np.floating]) -> Any:
        """Return (places, m) products of the words at some places with queries."""
        small = self._distances.vectors.size <= KEPT_NUMBERS
        factors = self._all_factors[places] if small else self._factors(places)
        return factors @ queries

    def _minima(self, parts: list[Any]) -> NDArray[np.floating]:
        """Return the minima of the columns of each part, several times faster than `reduceat`."""
        return np.stack([part.min(axis=0) for part in parts])

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
        return self._distances.pair_distances(ids, np.full_like(ids, -1))

    @lazy_property
    def _extremes(self) -> tuple[NDArray[np.float64], ...]:
        """Least and largest radius, largest error and largest stretch in each block."""
        radii, first = self._radii[self.order], self.starts[:-1]
        stretch = np.ones_like(radii) if self._gaps is None else self._gaps[self.order] ** -0.5
        return (
            np.minimum.reduceat(radii, first),
            np.maximum.reduceat(radii, first),
            np.maximum.reduceat(self._lattice.errors[self.order] * stretch, first),
            np.maximum.reduceat(stretch, first),
        )

    @lazy_property
    def _all_factors(self) -> NDArray[np.floating]:
        return self._factors(slice(None))

    def _factors(self, places: slice) -> NDArray[np.floating]:
        return self._lattice.rounded(self.order[places].astype(np.int64)).as_words()


def _clustered(lattice: IntegerLattice, size: int) -> NDArray[np.int32]:
    """Return all words by cluster, and in a cluster by the norm."""
    sample = lattice.rounded(keyed_generator(0).permutation(size)[:SAMPLE])
    centers = lattice.whole(sample.whole[:CLUSTERS])
    for _ in range(STEPS):
        nearest = sample.nearest(centers)
        means = centers.whole.copy()
        for cluster in np.unique(nearest):
            # Sums of whole numbers are exact in any order.
            means[cluster] = sample.whole[nearest == cluster].mean(axis=0, dtype=np.float64)
        centers = lattice.whole(means)
    clusters, norms = np.empty(size, dtype=np.int64), np.empty(size)
    for rows in metrics.blocks(0, size):
        rounded = lattice.rounded(np.arange(rows.start, rows.stop))
        clusters[rows], norms[rows] = rounded.nearest(centers), rounded.half_norms
    return np.lexsort((norms, clusters)).astype(np.int32)


class TorchPartition(Partition):
    """Partition of a vocabulary, with products on a device.

    They are exact, so bounds are those of `Partition`.

    Args:
        distances: The distances of V words of n dimensions; the words are copied to the device.
        device: A device of torch; opened here.
        count: How many blocks, at most V.
        order: As for `Partition`.
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

    def _moved(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def _products(self, places: slice, queries: NDArray[np.floating]) -> Any:
        with full_float32(self._torch):
            return self._moved_factors[places] @ self._moved(queries)

    def _minima(self, parts: list[Any]) -> NDArray[np.floating]:
        minima: NDArray[np.floating] = (
            self._torch.stack([p.amin(dim=0) for p in parts]).cpu().numpy()
        )
        return minima

    @lazy_property
    def _moved_factors(self) -> Any:
        blocks = metrics.blocks(0, len(self.order))
        return self._torch.cat([self._moved(self._factors(places)) for places in blocks])


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds of the distance from every word of a space to every block, stored beside it.

    Computed once, and memory-mapped. Unlike distances, bounds cannot be checked without computing
    them again: one that is too large changes what is drawn, and with it the guarantee. Their digest
    shows damage, not malice, so they are read only if the caller asks for them.

    Attributes:
        order: (V,) int32, all words, those of one block together, as in `Partition`.
        lower: (V+1, k) float32, lower bounds of the distances from a word to all others of a block;
            the last row is that of the centroid, which version 0.2 did not store.
        stored_sha256: `sha256` if a digest check has found it already: computing it again would
            fill memory with all the pages that are mapped.
    """

    order: NDArray[np.int32] = field(repr=False)
    lower: NDArray[np.float32] = field(repr=False)
    stored_sha256: str | None = None

    @property
    def k(self) -> int:
        """Number of blocks."""
        return int(self.lower.shape[1])

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as they are stored."""
        return {"lower": self.lower, "order": self.order}

    @lazy_property
    def sha256(self) -> str:
        """SHA-256 of the file of `tensors`, in hexadecimal."""
        return self.stored_sha256 or tensors.sha256(self.tensors)

    @property
    def pieces(self) -> Iterable[bytes | memoryview]:
        """The file of `tensors`, in pieces."""
        return tensors.pieces(self.tensors)

    @property
    def described(self) -> dict[str, Any]:
        """What ``config.json`` says of them beside digests."""
        return {"k": self.k}

    @classmethod
    def restored(
        cls,
        stored: Mapping[str, NDArray[Any]],
        entry: Mapping[str, Any],
        vectors: NDArray[np.floating],
    ) -> "DistanceBounds":
        """Make bounds of `tensors` that were stored; they are used in place.

        Args:
            stored: The arrays by name.
            entry: "k", and "sha256" of the file.
            vectors: (V, n), those of the space.

        Raises:
            InvalidValueError: If they are no such bounds.
        """
        k, size = entry["k"], len(vectors)
        found = {name: (array.dtype, array.shape) for name, array in stored.items()}
        expected = [
            {"lower": (np.dtype("<f4"), (rows, k)), "order": (np.dtype("<i4"), (size,))}
            for rows in (size + 1, size)
        ]
        if found not in expected or not 1 <= k <= size:
            raise InvalidValueError(f"these are no lists of {k} neighbours of {size} words")
        if not (np.sort(stored["order"]) == np.arange(size)).all():
            raise InvalidValueError("the order does not name every word of the space once")
        if not stored["lower"].min() >= 0:
            raise InvalidValueError("a bound of a distance is negative or not a number")
        return cls(**stored, stored_sha256=entry["sha256"])

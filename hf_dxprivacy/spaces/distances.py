"""Distances between the rows of a matrix under either metric, a block at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _runtime
from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.spaces import metrics

# Rows in one matrix product: enough to keep the threads of BLAS busy.
PRODUCT_ROWS = 8192
# Pairs of vectors of single precision that are compared at once: they stay in the cache.
PAIR_ROWS = 256
# Squares at which single precision neither overflows nor loses what matters.
MODERATE = (1e-20, 1e30)


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between rows; index −1 is the centroid of the matrix.

    Attributes:
        vectors: (V, n) float32 or float64.
        metric: "euclidean" or "poincare".
        scale: Factor on every distance.
    """

    vectors: NDArray[np.floating]
    metric: str
    scale: float

    @lazy_property
    def centroid(self) -> NDArray[np.float64]:
        """(n,) mean of the rows; the origin of the Poincaré ball."""
        if self.metric == "poincare":
            center = np.zeros(self.vectors.shape[1])
        else:
            center = metrics.mean(self.vectors)
        center.setflags(write=False)
        return center

    @lazy_property
    def squared_norms(self) -> NDArray[np.float64]:
        """(V+1,) squared norms of the rows, measured from the centroid; the last is its own, 0."""
        return np.append(metrics.squared_norms(self.vectors, self.centroid), 0.0)

    @lazy_property
    def gaps(self) -> NDArray[np.float64]:
        """(V+1,) gaps 1−‖x‖² of the rows of a ball; the last is that of the centroid."""
        return np.append(metrics.boundary_gap(self.vectors), 1.0)

    @lazy_property
    def radius(self) -> float:
        """Largest distance of a row from the centroid."""
        everything = np.arange(len(self.vectors))
        return float(self.pairs(everything, np.full_like(everything, -1)).max())

    def points(self, ids: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the rows in float64, (m, n); the centroid for −1."""
        ids = self.checked(ids)
        rows = self.vectors[ids].astype(np.float64)
        rows[ids == -1] = self.centroid
        return rows

    def pairs(self, a_ids: NDArray[np.integer], b_ids: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the distance between matching entries of two lists of ids, (m,) float64."""
        a_ids, b_ids = self.checked(a_ids), self.checked(b_ids)
        if a_ids.shape != b_ids.shape:
            raise InvalidValueError(
                f"expected as many ids on both sides, got {len(a_ids)} and {len(b_ids)}"
            )
        squared = np.empty(len(a_ids))
        step = max(1, metrics.CHUNK_NUMBERS // self.vectors.shape[1])
        for chunk in metrics.blocks(0, len(a_ids), step):
            squared[chunk] = metrics.pair_squared(
                self.points(a_ids[chunk]), self.points(b_ids[chunk])
            )
        self._finish(squared, a_ids, b_ids)
        return squared

    def pair_bounds(
        self, a_ids: NDArray[np.int64], b_ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bounds of the distance between matching entries, several times faster.

        Args:
            a_ids: (m,) rows or −1.
            b_ids: (m,) rows.

        Returns:
            (m,) lower and (m,) upper bounds of what `pairs` returns: where single precision
            serves, about a part of 1e-5 apart, and elsewhere equal.
        """
        if self.metric != "euclidean" or self.vectors.dtype != np.float32:
            exact = self.pairs(a_ids, b_ids)
            return exact, exact
        # In single precision; anything for −1.
        squared = np.empty(len(a_ids), dtype=np.float32)
        first, second = np.empty((2, PAIR_ROWS, self.vectors.shape[1]), dtype=np.float32)
        with np.errstate(over="ignore"):
            for start in range(0, len(a_ids), PAIR_ROWS):
                chunk = slice(start, start + PAIR_ROWS)
                x, y = first[: len(squared[chunk])], second[: len(squared[chunk])]
                # Without clipping, `take` would copy once more to be able to fail.
                np.take(self.vectors, a_ids[chunk], axis=0, out=x, mode="clip")
                np.take(self.vectors, b_ids[chunk], axis=0, out=y, mode="clip")
                x -= y
                np.einsum("ij,ij->i", x, x, out=squared[chunk])
        # Of n+3 roundings at most, each half of eps; and twice that, since a root halves it.
        margin = (self.vectors.shape[1] + 3) * float(np.finfo(np.float32).eps)
        distance = np.sqrt(squared.astype(np.float64))
        centroid = np.flatnonzero(a_ids < 0)
        distance[centroid] = np.sqrt(self.squared_norms[b_ids[centroid]])
        serves = (a_ids < 0) | ((MODERATE[0] < squared) & (squared < MODERATE[1]))
        lower, upper = distance * (1.0 - margin), distance * (1.0 + margin)
        rest = np.flatnonzero(~serves)
        if len(rest):
            lower[rest] = upper[rest] = self.pairs(a_ids[rest], b_ids[rest])
        return lower, upper

    def rows(self, ids: NDArray[np.integer], block: slice = slice(None)) -> NDArray[np.float64]:
        """Return the distance from each id to each row of a block, (m, rows of the block) float64.

        Products of BLAS, corrected where they cancel: an entry is 0 exactly if the two vectors
        are equal, and otherwise right to about 1e-9 of its value.
        """
        _runtime.limit_in_worker()
        ids = self.checked(ids)
        first, last, step = block.indices(len(self.vectors))
        if step != 1:
            raise InvalidValueError(f"expected a block of consecutive rows, got step={step}")
        queries = self.points(ids) - self.centroid
        result = np.empty((len(ids), max(0, last - first)))
        for part in metrics.blocks(first, last, PRODUCT_ROWS):
            self._fill(result[:, part.start - first : part.stop - first], queries, ids, part)
        return result

    def checked(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return ids as a one-dimensional int64 array, all of them rows or −1."""
        ids = np.asarray(ids)
        if ids.size and ids.dtype.kind not in "iu":
            raise InvalidTypeError(f"expected integer ids, got dtype {ids.dtype}")
        if ids.ndim != 1:
            raise InvalidValueError(f"expected a one-dimensional array of ids, got {ids.ndim} axes")
        if ids.size and not (-1 <= ids.min() and ids.max() < len(self.vectors)):
            raise InvalidValueError(
                f"expected ids from -1 to {len(self.vectors) - 1}, got {ids.min()} to {ids.max()}"
            )
        return ids.astype(np.int64, copy=False)

    def _fill(
        self,
        out: NDArray[np.float64],
        queries: NDArray[np.float64],
        ids: NDArray[np.int64],
        part: slice,
    ) -> None:
        norms, candidates = self.squared_norms, self.vectors[part] - self.centroid
        rows, columns = metrics.cross_squared(queries, candidates, norms[ids], norms[part], out)
        step = max(1, metrics.CHUNK_NUMBERS // self.vectors.shape[1])
        for chunk in metrics.blocks(0, len(rows), step):
            out[rows[chunk], columns[chunk]] = metrics.pair_squared(
                self.points(ids[rows[chunk]]), self.vectors[part.start + columns[chunk]]
            )
        self._finish(out, ids[:, None], np.arange(part.start, part.stop))

    def _finish(
        self, squared: NDArray[np.float64], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> None:
        if self.metric == "poincare":
            metrics.distance_from_squared(squared, self.gaps[a], self.gaps[b], out=squared)
        else:
            np.sqrt(squared, out=squared)
        if self.scale != 1.0:
            squared *= self.scale


# Words whose neighbours stand for those of all.
SAMPLE = 1000


def nearest(
    distances: Distances, row: int, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k nearest other rows and their distances, nearest first, ties by row.

    Args:
        distances: The distances of a space.
        row: The row, or −1 for the centroid.
        k: How many, at least 1.

    Returns:
        (k,) rows and (k,) distances; fewer if there are not that many others.
    """
    row_distances = distances.rows(np.array([row]))[0]
    others = len(row_distances) - (row >= 0)
    if row >= 0:
        row_distances[row] = np.inf
    order = np.argsort(row_distances, kind="stable")[: min(k, others)]
    return order, row_distances[order]


def sample_rows(size: int) -> NDArray[np.int64]:
    """Return at most `SAMPLE` evenly spaced rows of a vocabulary of a size."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).round().astype(np.int64))


def sampled_distances(distances: Distances, ks: Sequence[int]) -> dict[int, NDArray[np.float64]]:
    """Return the distances to the k-th nearest other row, for each k, of evenly spaced rows.

    k is capped at V−1, and a lone row counts as its own neighbour at distance 0.

    Args:
        distances: The distances of a space.
        ks: Ranks, each at least 1.

    Returns:
        (min(V, `SAMPLE`),) float64 by k.
    """
    size = len(distances.vectors)
    sample = sample_rows(size)
    ranks = {k: min(k, size - 1) for k in ks}
    keep = max(ranks.values()) + 1
    best = np.empty((len(sample), 0))
    for block in metrics.blocks(0, size, PRODUCT_ROWS):
        best = np.concatenate([best, distances.rows(sample, block)], axis=1)
        if best.shape[1] > keep:
            best = np.partition(best, keep - 1, axis=1)[:, :keep]
    # Each sampled row is among its own nearest, at 0, so that column k is its k-th neighbour.
    best.sort(axis=1)
    return {k: best[:, rank].copy() for k, rank in ranks.items()}

"""Distances between the rows of a matrix under either metric, a block at a time."""

from collections.abc import Sequence

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
# Words whose neighbours stand for those of all.
SAMPLE = 1000


Ids = NDArray[np.integer] | Sequence[int]


class Distances:
    """Distances between the rows of a matrix; id −1 is the centroid of the matrix.

    Args:
        vectors: (V, n) float32 or float64.
        metric: "euclidean" or "poincare".
        scale: Factor on every distance.
    """

    vectors: NDArray[np.floating]
    metric: str
    scale: float

    def __init__(self, vectors: NDArray[np.floating], metric: str, scale: float) -> None:
        self.vectors, self.metric, self.scale = vectors, metric, scale

    @lazy_property
    def centroid(self) -> NDArray[np.float64]:
        """(n,) mean of the vectors, or origin of the ball: the place of unknown words."""
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
        """Largest distance of a row from the centroid; the diameter is at most twice that."""
        everything = np.arange(len(self.vectors))
        return float(self.pair_distances(everything, np.full_like(everything, -1)).max())

    def points(self, ids: Ids) -> NDArray[np.float64]:
        """Return the rows in float64, (m, n); the centroid for −1."""
        return self._points(self.checked_ids(ids))

    def _points(self, ids: Ids) -> NDArray[np.float64]:
        rows = self.vectors[ids].astype(np.float64)
        rows[ids == -1] = self.centroid
        return rows

    def pair_distances(self, a_ids: Ids, b_ids: Ids) -> NDArray[np.float64]:
        """Return the distance between matching entries of two lists of ids, (m,) float64."""
        a_ids, b_ids = self.checked_ids(a_ids), self.checked_ids(b_ids)
        if a_ids.shape != b_ids.shape:
            raise InvalidValueError(
                f"expected as many ids on both sides, got {len(a_ids)} and {len(b_ids)}"
            )
        squared = np.empty(len(a_ids))
        step = max(1, metrics.CHUNK_NUMBERS // self.vectors.shape[1])
        for chunk in metrics.blocks(0, len(a_ids), step):
            squared[chunk] = metrics.pair_squared(
                self._points(a_ids[chunk]), self._points(b_ids[chunk])
            )
        self._finish(squared, a_ids, b_ids)
        return squared

    def pair_bounds(
        self, a_ids: NDArray[np.int64], b_ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of `pair_distances`, (m,) each, several times faster.

        Where single precision serves they are about a part of 1e-5 apart, and elsewhere equal.

        Args:
            a_ids: (m,) rows or −1.
            b_ids: (m,) rows.
        """
        if self.metric != "euclidean" or self.vectors.dtype != np.float32:
            exact = self.pair_distances(a_ids, b_ids)
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
            lower[rest] = upper[rest] = self.pair_distances(a_ids[rest], b_ids[rest])
        return lower, upper

    def distances(self, ids: Ids, block: slice = slice(None)) -> NDArray[np.float64]:
        """Return the distance from each id to each row of a block, (m, rows of the block) float64.

        Products of BLAS, corrected where they cancel: an entry is 0 exactly if the two vectors
        are equal, and otherwise right to about 1e-9 of its value.
        """
        _runtime.limit_in_worker()
        ids = self.checked_ids(ids)
        first, last, step = block.indices(len(self.vectors))
        if step != 1:
            raise InvalidValueError(f"expected a block of consecutive rows, got step={step}")
        queries, norms = self._points(ids) - self.centroid, self.squared_norms
        result = np.empty((len(ids), max(0, last - first)))
        step = max(1, metrics.CHUNK_NUMBERS // self.vectors.shape[1])
        for part in metrics.blocks(first, last, PRODUCT_ROWS):
            out = result[:, part.start - first : part.stop - first]
            candidates = self.vectors[part] - self.centroid
            spoilt = metrics.cross_squared(queries, candidates, norms[ids], norms[part], out)
            for chunk in metrics.blocks(0, len(spoilt[0]), step):
                row, column = spoilt[0][chunk], spoilt[1][chunk]
                out[row, column] = metrics.pair_squared(
                    self._points(ids[row]), self.vectors[part.start + column]
                )
            self._finish(out, ids[:, None], np.arange(part.start, part.stop))
        return result

    def checked_ids(self, ids: Ids) -> NDArray[np.int64]:
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

    def _finish(
        self, squared: NDArray[np.float64], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> None:
        if self.metric == "poincare":
            metrics.distance_from_squared(squared, self.gaps[a], self.gaps[b], out=squared)
        else:
            np.sqrt(squared, out=squared)
        if self.scale != 1.0:
            squared *= self.scale


def sample_rows(size: int) -> NDArray[np.int64]:
    """Return at most `SAMPLE` evenly spaced rows of a vocabulary of a size."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).round().astype(np.int64))

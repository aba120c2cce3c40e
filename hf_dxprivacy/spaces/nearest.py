"""Nearest words by distance, over the whole vocabulary in blocks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces import euclidean
from hf_dxprivacy.spaces.distances import PRODUCT_ROWS, Distances

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
    for block in euclidean.blocks(0, size, PRODUCT_ROWS):
        best = np.concatenate([best, distances.rows(sample, block)], axis=1)
        if best.shape[1] > keep:
            best = np.partition(best, keep - 1, axis=1)[:, :keep]
    # Each sampled row is among its own nearest, at 0, so that column k is its k-th neighbour.
    best.sort(axis=1)
    return {k: best[:, rank].copy() for k, rank in ranks.items()}

"""The exact privacy level of exponential mechanisms, and the largest slope that meets an ε.

With weights exp(−s·d_γ(w, y)) and Z_s(w) their sum over y, for every output y
|ln Pr[M(w)=y] − ln Pr[M(w')=y]| ≤ s·d_γ(w, w') + |ln Z_s(w) − ln Z_s(w')|, with equality at y = w
or y = w'. The exact level is therefore
ε*(s) = s + max over pairs of |ln Z_s(w) − ln Z_s(w')|/d_γ(w, w').
The centroid, which stands for words out of vocabulary, takes part as an input. It is no output, so
that for its pairs the bound need not be attained; they are compared output by output instead.

Slopes lie on a fixed geometric grid and the largest feasible one is taken: no interpolation, and no
monotonicity is assumed. ε*(s) ≤ 2s always holds, because d_γ is a metric.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy import _threads
from hf_dxprivacy.mechanisms import certificate_store
from hf_dxprivacy.mechanisms.certificate_store import STEPS_PER_OCTAVE, grid_rate
from hf_dxprivacy.spaces import EmbeddingSpace

TILE = 384
# Distances of words to all others that are held at once, away from the tiles.
BLOCK_ENTRIES = 1 << 21

# Upper bounds of what rounding can do: to a difference of two ln Z, and to a level as a whole
# (distances are good to about 1e-9). A reported level is never below the true one.
DIFFERENCE_ERROR = 2e-11
LEVEL_MARGIN = 1e-6

Tile = tuple[slice, slice]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Calibration:
    """A slope and the exact privacy level that it was certified at."""

    rate: float
    level: float


def truncation_weight(size: int, beta: float) -> float:
    """Return exp(−s·γ) = β/((1−β)(V−1)), the weight of far words; the same for every slope s."""
    return min(1.0, beta / ((1.0 - beta) * max(size - 1, 1)))


def certify(
    space: EmbeddingSpace,
    lowest: float,
    highest: float,
    beta: float = 0.001,
    progress: bool = True,
) -> dict[int, float]:
    """Work out, and remember, the levels of all slopes that an ε of a range may need.

    Args:
        space: Where the words lie.
        lowest: Least ε.
        highest: Largest ε.
        beta: β in (0, 1).
        progress: Show a bar while levels that nobody remembered are worked out.

    Returns:
        ε*(s) by grid index; see `certificate_store.grid_rate`.
    """
    known = certificate_store.load(space, beta)
    rates = {k: grid_rate(k) for k in _wanted(lowest, highest) if k not in known}
    if rates:
        floor = truncation_weight(len(space), beta)
        levels = privacy_levels(space, list(rates.values()), floor, progress=progress)
        known |= {k: levels[rate] for k, rate in rates.items()}
    certificate_store.attach(space, beta, known)
    if rates:
        certificate_store.save(space, beta)
    return known


def is_certified(space: EmbeddingSpace, epsilon: float, beta: float = 0.001) -> bool:
    """Tell whether all levels that an ε needs are remembered, so that it starts without delay.

    Raises:
        ArtifactError: If what is remembered is damaged, impossible, or of another space.
    """
    known = certificate_store.load(space, beta)
    return all(k in known for k in _wanted(epsilon, epsilon))


def calibrated_rate(
    space: EmbeddingSpace, epsilon: float, beta: float, progress: bool = True
) -> Calibration:
    """Return the largest slope on the grid whose exact level is at most ε.

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        beta: β in (0, 1).
        progress: Show a bar while levels that nobody remembered are worked out.

    Returns:
        The slope s and its level ε*(s) ≤ ε.
    """
    known = certify(space, epsilon, epsilon, beta, progress)
    best = max(k for k, level in known.items() if level <= epsilon)
    return Calibration(grid_rate(best), known[best])


def _wanted(lowest: float, highest: float) -> range:
    """Return the grid indices of the slopes that an ε of a range may need."""
    # One step below ε/2 is feasible for certain, whatever the margin for rounding.
    return range(_grid_index(lowest) - STEPS_PER_OCTAVE - 1, _grid_index(highest) + 1)


def _grid_index(slope: float) -> int:
    """Return the index of the largest grid slope that is at most this (ε*(s) ≥ s)."""
    return math.floor(STEPS_PER_OCTAVE * math.log2(slope) + 1e-9)


def privacy_levels(
    space: EmbeddingSpace, rates: Sequence[float], floor: float, progress: bool = False
) -> dict[float, float]:
    """Return the exact level ε*(s) for several slopes, in two passes over all distances.

    Args:
        space: Where the words lie; V words.
        rates: Slopes s > 0.
        floor: exp(−s·γ), the least weight, common to all slopes.
        progress: Show a progress bar.

    Returns:
        ε*(s) by slope, bounded upward for rounding. Time O(V²·(n + len(rates))).
    """
    if floor >= 1.0 or len(space) == 1:
        # γ = 0: every input has the same law. s is still an upper bound of the level.
        return {rate: rate for rate in rates}
    slopes = np.asarray(rates, dtype=np.float64)
    tiles = list(_tiles(len(space)))
    with tqdm(total=2 * len(tiles), desc="Calibrating", disable=not progress or None) as bar:
        log_sums, centroid_log_sums, to_centroid = _log_sums(space, slopes, floor, tiles, bar)
        ratios = _largest_ratios(space, log_sums, tiles, bar)
    gammas = -math.log(floor) / slopes
    # Pairs farther apart than γ are at d_γ = γ.
    beyond = (log_sums.max(axis=1) - log_sums.min(axis=1) + DIFFERENCE_ERROR) / gammas
    ratios = np.maximum(ratios, beyond)
    differences = log_sums - centroid_log_sums[:, None]
    _raise_by_centroid(ratios, space, slopes, gammas, differences, to_centroid)
    levels = (slopes + ratios) * (1.0 + LEVEL_MARGIN)
    # Where words nearly coincide, or γ is nearly 0, rounding says nothing and the theorem more.
    return dict(zip(rates, np.minimum(levels, 2.0 * slopes).tolist(), strict=True))


def _tiles(size: int) -> Iterator[Tile]:
    """Cover the pairs i ≤ j of a symmetric matrix."""
    starts = range(0, size, TILE)
    for row in starts:
        for column in starts[row // TILE :]:
            yield slice(row, min(row + TILE, size)), slice(column, min(column + TILE, size))


def _log_sums(
    space: EmbeddingSpace,
    slopes: NDArray[np.float64],
    floor: float,
    tiles: Sequence[Tile],
    bar: "tqdm[NoReturn]",
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return ln Z of the words (R, V), ln Z of the centroid (R,), distances to it (V,)."""

    def weigh(mine: Sequence[Tile]) -> NDArray[np.float64]:
        sums = np.zeros((len(slopes), len(space)))
        for rows, columns in mine:
            distances = _distances(space, rows, columns)
            weights = np.empty_like(distances)
            for index, slope in enumerate(slopes):
                np.multiply(distances, -slope, out=weights)
                np.exp(weights, out=weights)
                np.maximum(weights, floor, out=weights)
                sums[index, rows] += weights.sum(axis=1)
                if rows != columns:
                    sums[index, columns] += weights.sum(axis=0)
            bar.update()
        return sums

    to_centroid = space.distances(np.array([-1]))[0]
    at_centroid = np.maximum(np.exp(-slopes[:, None] * to_centroid), floor).sum(axis=1)
    sums = np.sum(_in_threads(weigh, tiles), axis=0)
    return np.log(sums), np.log(at_centroid), to_centroid


def _largest_ratios(
    space: EmbeddingSpace,
    log_sums: NDArray[np.float64],
    tiles: Sequence[Tile],
    bar: "tqdm[NoReturn]",
) -> NDArray[np.float64]:
    """Return max |Δ ln Z|/d over pairs of words by slope, (R,), bounded upward for rounding."""

    def compare(mine: Sequence[Tile]) -> NDArray[np.float64]:
        best = np.zeros(len(log_sums))
        for rows, columns in mine:
            inverse = _distances(space, rows, columns)
            # Words at distance 0 have the same law; they take no part.
            np.divide(1.0, inverse, out=inverse, where=inverse > 0)
            _raise_ratios(best, log_sums[:, rows], log_sums[:, columns], inverse)
            bar.update()
        return best

    ratios: NDArray[np.float64] = np.max(_in_threads(compare, tiles), axis=0)
    return ratios


def _raise_ratios(
    best: NDArray[np.float64],
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    inverse: NDArray[np.float64],
) -> None:
    """Raise best[r] to the largest |Δ ln Z|·inverse of one tile, or a little above it."""
    nearest = inverse.max()
    error = DIFFERENCE_ERROR * nearest
    widest = np.maximum(
        rows.max(axis=1) - columns.min(axis=1), columns.max(axis=1) - rows.min(axis=1)
    )
    scratch = np.empty_like(inverse)
    for index in np.flatnonzero(widest * nearest + error > best):
        np.subtract(rows[index][:, None], columns[index], out=scratch)
        np.abs(scratch, out=scratch)
        scratch *= inverse
        best[index] = max(best[index], float(scratch.max()) + error)


def _raise_by_centroid(
    best: NDArray[np.float64],
    space: EmbeddingSpace,
    slopes: NDArray[np.float64],
    gammas: NDArray[np.float64],
    differences: NDArray[np.float64],
    to_centroid: NDArray[np.float64],
) -> None:
    """Raise best[r] to what the level of a word and the centroid has above s.

    With `differences` = ln Z(word) − ln Z(centroid), the bound is attained at the word where that
    is negative. Where it is positive it would be at the centroid, which is no output: the largest
    log-ratio over the real outputs is then less, and is looked up if it matters.
    """
    apart = np.flatnonzero(to_centroid > 0)
    differences, reach = differences[:, apart], np.minimum(to_centroid[apart], gammas[:, None])
    bounds = (np.abs(differences) + DIFFERENCE_ERROR) / reach
    at_word = np.where(differences <= 0, bounds, 0.0)
    np.maximum(best, at_word.max(axis=1, initial=0.0), out=best)
    order = np.argsort(-(bounds - best[:, None]).max(axis=0, initial=0.0))
    step = max(1, BLOCK_ENTRIES // len(space))
    for block in (order[start : start + step] for start in range(0, len(order), step)):
        if not (bounds[:, block] > best[:, None]).any():
            continue
        distances = space.distances(apart[block])
        # What an output gains, truncated or not, is at most this.
        most = (distances - to_centroid).max(axis=1)
        for r, (slope, gamma) in enumerate(zip(slopes, gammas, strict=True)):
            fixed = differences[r, block] + DIFFERENCE_ERROR
            ceiling = np.minimum(most, max(0.0, gamma - to_centroid.min()))
            hot = np.flatnonzero((fixed + slope * ceiling) / reach[r, block] - slope > best[r])
            gains = np.minimum(distances[hot], gamma) - np.minimum(to_centroid, gamma)
            raised = fixed[hot] + slope * gains.max(axis=1)
            best[r] = max(best[r], (raised / reach[r, block[hot]] - slope).max(initial=0.0))


def _distances(space: EmbeddingSpace, rows: slice, columns: slice) -> NDArray[np.float64]:
    return space.distances(np.arange(rows.start, rows.stop), block=columns)


def _in_threads(work: Callable[[Sequence[Tile]], Result], tiles: Sequence[Tile]) -> list[Result]:
    """Deal the tiles out to as many threads as this process may use, one BLAS thread each."""
    workers = 1 if _threads.in_worker() else os.cpu_count() or 1
    shares = [tiles[start::workers] for start in range(min(workers, len(tiles)))]
    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))

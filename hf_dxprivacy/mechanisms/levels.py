"""The exact privacy level of exponential mechanisms, over all pairs of inputs.

With weights exp(−s·d_γ(w, y)) and Z_s(w) their sum over y, for every output y
|ln Pr[M(w)=y] − ln Pr[M(w')=y]| ≤ s·d_γ(w, w') + |ln Z_s(w) − ln Z_s(w')|, with equality at y = w
or y = w'. The exact level is therefore
ε*(s) = s + max over pairs of |ln Z_s(w) − ln Z_s(w')|/d_γ(w, w').
The centroid, which stands for words out of vocabulary, takes part as an input. It is no output, so
that for its pairs the bound need not be attained; they are compared output by output instead.
ε*(s) ≤ 2s always holds, because d_γ is a metric.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy import _threads
from hf_dxprivacy.mechanisms.certificate_store import STEPS_PER_OCTAVE
from hf_dxprivacy.mechanisms.normalisers import Normalisers
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.distances import Distances

TILE = 384
# Distances of words to all others that are held at once, away from the tiles.
BLOCK_ENTRIES = 1 << 21

# Upper bounds of what rounding can do: to a difference of two ln Z, and to a level as a whole
# (distances are good to about 1e-9). A reported level is never below the true one.
DIFFERENCE_ERROR = 2e-11
LEVEL_MARGIN = 1e-6

Item = TypeVar("Item")
Result = TypeVar("Result")


def privacy_levels(
    space: EmbeddingSpace,
    steps: Sequence[int],
    floor: float,
    rate: float = 1.0,
    progress: bool = False,
) -> dict[int, float]:
    """Return the exact level ε*(s) for slopes s = rate·2^(k/32), in two passes over all distances.

    Args:
        space: Where the words lie; V words.
        steps: The steps k, at least one.
        floor: exp(−s·γ), the least weight, common to all slopes.
        rate: The slope of step 0, s > 0.
        progress: Show a progress bar.

    Returns:
        ε*(s) by step, bounded upward for rounding. Time O(V²·n), memory O(V·(n + len(steps))).
    """
    slopes = rate * 2.0 ** (np.asarray(steps) / STEPS_PER_OCTAVE)
    if floor >= 1.0 or len(space) == 1:
        # γ = 0: every input has the same law. s is still an upper bound of the level.
        return dict(zip(steps, slopes.tolist(), strict=True))
    blocks = _blocks(len(space))
    total = len(blocks) * (3 * len(blocks) + 1) // 2
    with tqdm(total=total, desc="Calibrating", disable=not progress or None) as bar:
        normalisers = Normalisers(_distances(space), floor, rate, steps)
        log_sums = _log_sums(space, normalisers, len(steps), bar)
        ratios = _largest_ratios(space, log_sums, bar)
    gammas = -math.log(floor) / slopes
    # Pairs farther apart than γ are at d_γ = γ.
    beyond = (log_sums.max(axis=1) - log_sums.min(axis=1) + DIFFERENCE_ERROR) / gammas
    ratios = np.maximum(ratios, beyond)
    to_centroid = space.distances(np.array([-1]))[0]
    at_centroid = np.maximum(np.exp(-slopes[:, None] * to_centroid), floor).sum(axis=1)
    differences = log_sums - np.log(at_centroid)[:, None]
    _raise_by_centroid(ratios, space, slopes, gammas, differences, to_centroid)
    levels = (slopes + ratios) * (1.0 + LEVEL_MARGIN)
    # Where words nearly coincide, or γ is nearly 0, rounding says nothing and the theorem more.
    return dict(zip(steps, np.minimum(levels, 2.0 * slopes).tolist(), strict=True))


def _blocks(size: int) -> list[slice]:
    return [slice(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def _distances(space: EmbeddingSpace, order: slice | NDArray[np.int64] = slice(None)) -> Distances:
    return Distances(space.vectors[order], space.metric, space.scale)


def _log_sums(
    space: EmbeddingSpace, normalisers: Normalisers, slopes: int, bar: "tqdm[NoReturn]"
) -> NDArray[np.float64]:
    """Return ln Z of the words by slope, (R, V)."""
    blocks = _blocks(len(space))
    log_sums = np.empty((slopes, len(space)))

    def fill(mine: Sequence[slice]) -> None:
        for block in mine:
            log_sums[:, block] = normalisers.log_sums(np.arange(block.start, block.stop)).T
            bar.update(len(blocks))

    _in_threads(fill, blocks)
    return log_sums


def _largest_ratios(
    space: EmbeddingSpace, log_sums: NDArray[np.float64], bar: "tqdm[NoReturn]"
) -> NDArray[np.float64]:
    """Return max |Δ ln Z|/d over pairs of words by slope, (R,), bounded upward for rounding."""
    # In the order of ln Z, differences within a tile are all alike: most tiles can be passed over.
    # The largest come first.
    order = np.argsort(log_sums[len(log_sums) // 2])
    log_sums, distances = log_sums[:, order], _distances(space, order)
    blocks = _blocks(len(space))
    tiles = [(rows, columns) for k, rows in enumerate(blocks) for columns in blocks[k:]]
    tiles.sort(key=lambda tile: tile[0].start - tile[1].start)

    def compare(mine: Sequence[tuple[slice, slice]]) -> NDArray[np.float64]:
        best = np.zeros(len(log_sums))
        for rows, columns in mine:
            inverse = distances.rows(np.arange(rows.start, rows.stop), columns)
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
    nearest = inverse.max(axis=1)
    error = DIFFERENCE_ERROR * nearest.max()
    least, most = columns.min(axis=1, keepdims=True), columns.max(axis=1, keepdims=True)
    ceilings = np.maximum(rows - least, most - rows) * nearest + error
    for index in np.flatnonzero((ceilings > best[:, None]).any(axis=1)):
        hot = np.flatnonzero(ceilings[index] > best[index])
        differences = np.abs(rows[index, hot][:, None] - columns[index])
        best[index] = max(best[index], float((differences * inverse[hot]).max()) + error)


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
    at_word = np.where(differences <= 0, (DIFFERENCE_ERROR - differences) / reach, 0.0)
    np.maximum(best, at_word.max(axis=1, initial=0.0), out=best)
    # No output is farther from the word than from the centroid by more than this.
    ceilings = np.minimum(reach, np.maximum(gammas - to_centroid.min(), 0.0)[:, None])
    fixed, steep = differences + DIFFERENCE_ERROR, slopes[:, None]
    bounds = np.where(differences > 0, (fixed + steep * ceilings) / reach - steep, 0.0)
    order = np.argsort(-(bounds - best[:, None]).max(axis=0, initial=0.0))
    step = max(1, BLOCK_ENTRIES // len(space))
    for block in (order[start : start + step] for start in range(0, len(order), step)):
        if not (bounds[:, block] > best[:, None]).any():
            continue
        distances = space.distances(apart[block])
        most = (distances - to_centroid).max(axis=1, initial=0.0)
        for r, (slope, gamma) in enumerate(zip(slopes, gammas, strict=True)):
            ceiling = np.minimum(most, ceilings[r, block])
            reachable = (fixed[r, block] + slope * ceiling) / reach[r, block] - slope
            hot = np.flatnonzero(reachable > best[r])
            gains = np.minimum(distances[hot], gamma) - np.minimum(to_centroid, gamma)
            raised = fixed[r, block[hot]] + slope * gains.max(axis=1)
            best[r] = max(best[r], (raised / reach[r, block[hot]] - slope).max(initial=0.0))


def _in_threads(work: Callable[[Sequence[Item]], Result], items: Sequence[Item]) -> list[Result]:
    """Deal items out in turn to as many threads as this process may use, one BLAS thread each."""
    workers = 1 if _threads.in_worker() else os.cpu_count() or 1
    shares = [items[start::workers] for start in range(min(workers, len(items)))]
    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))

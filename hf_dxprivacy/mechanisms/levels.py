"""Exact privacy levels ε*(s) of exponential mechanisms, over all pairs of inputs.

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
from tqdm import tqdm

from hf_dxprivacy import _runtime
from hf_dxprivacy.guarantee import agreed
from hf_dxprivacy.mechanisms.base import Ids, Reals
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.distances import Distances

# Inverse temperatures s are 2^(k/32), 2.2 % apart. A curve is stored as levels by grid index k.
STEPS_PER_OCTAVE = 32

# Words whose distances are computed, and then sorted into bins, together: the cache holds them.
COLUMNS = 2048
SORTED_ROWS = 32

# The interpolation is off by at most (0.011·s·d)^7/(7!·2^6) of a weight. Weights of s·d ≫ ln V do
# not matter beside Z ≥ 1, which leaves 1e-12 of Z for a million words.
DEGREE = 6

# exp(−x) is 1 for smaller x.
NEGLIGIBLE = 1e-17


def grid_value(index: int) -> float:
    """Return the inverse temperature of a grid index."""
    return float(2.0 ** (index / STEPS_PER_OCTAVE))


class LogPartition:
    """Log-partition functions ln Z of many inverse temperatures, in one pass over the distances.

    Z_s(w) is the sum of exp(−min(s·d(w, y), L)) over all words y, with L = s·γ the same for all s,
    and s = base·2^(k/32). Distances are sorted into bins that are as wide as the steps between
    these s, and of those in one bin only their moments are kept: over a bin, the weight is a
    polynomial of the place in it, up to 1e-13 of the sum. Every γ is an edge of a bin, so no bin is
    half truncated; and step k weighs bin b as step 0 weighs bin b+k, so that one row of
    coefficients serves all.

    Args:
        distances: The distances of V words.
        floor: exp(−L) < 1, the least weight.
        base: s of step 0.
        steps: The steps k, whole numbers.
    """

    def __init__(
        self, distances: Distances, floor: float, base: float, steps: Sequence[int]
    ) -> None:
        exponent = -math.log(floor)
        first, span = min(steps), max(steps) - min(steps)
        octaves = max(1, math.ceil(math.log2(exponent / NEGLIGIBLE)))
        self._distances = distances
        # Bins are counted up to the largest γ, that of the first step, with one more beyond it.
        self._inside = span + STEPS_PER_OCTAVE * octaves
        self._unit = base * 2.0 ** (first / STEPS_PER_OCTAVE) / exponent
        coefficients = _coefficients(exponent, self._inside)
        beyond = np.zeros((DEGREE + 1, span + 1))
        beyond[0] = floor
        windows = np.lib.stride_tricks.sliding_window_view(
            np.concatenate([coefficients, beyond], axis=1), self._inside + 1, axis=1
        )
        # (moments, bins, steps)
        self._table = windows[:, np.asarray(steps) - first].transpose(0, 2, 1).copy()

    def log_sums(self, ids: Ids) -> Reals:
        """Return ln Z, (m, steps), for m words."""
        moments = np.zeros((DEGREE + 1, len(ids), self._inside + 1))
        size = len(self._distances.vectors)
        for start in range(0, size, COLUMNS):
            block = self._distances.distances(ids, slice(start, min(start + COLUMNS, size)))
            for row in range(0, len(ids), SORTED_ROWS):
                part = slice(row, row + SORTED_ROWS)
                self._sort_in(moments[:, part], block[part])
        sums: Reals = np.matmul(moments, self._table).sum(axis=0)
        return np.log(sums)

    def _sort_in(self, moments: Reals, distances: Reals) -> None:
        """Add the distances of m words, (m, columns), to their moments, (DEGREE+1, m, bins)."""
        place = distances * self._unit
        np.maximum(place, 2.0 ** (-self._inside / STEPS_PER_OCTAVE), out=place)
        np.log2(place, out=place)
        place *= STEPS_PER_OCTAVE
        place += self._inside
        np.minimum(place, self._inside + 0.5, out=place)
        bins = place.astype(np.int64)
        # From here on the place within the bin, from −1 to 1.
        place -= bins
        place *= 2.0
        place -= 1.0
        lowest = bins.min()
        used = slice(lowest, bins.max() + 1)
        width = used.stop - used.start
        bins += np.arange(len(bins))[:, None] * width - lowest
        cells, powers, size = bins.ravel(), np.ones(bins.size), len(bins) * width
        for moment in moments[:, :, used]:
            moment += np.bincount(cells, powers, size).reshape(moment.shape)
            powers *= place.ravel()


def _coefficients(exponent: float, bins: int) -> Reals:
    """Return the polynomials of the weights in the bins below γ, (DEGREE+1, bins).

    In bin b, counted from γ downwards, s·d = exponent·2^(−(b − (1+u)/2)/32) with u from −1 to 1.
    """
    nodes = np.cos((np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1))
    middle = np.arange(-bins, 0) + 0.5
    values = np.exp(-exponent * 2.0 ** ((middle + nodes[:, None] / 2.0) / STEPS_PER_OCTAVE))
    return np.linalg.solve(np.vander(nodes, increasing=True), values)


TILE = 384
# Distances of words to all others that are held at once, away from the tiles.
BLOCK_ENTRIES = 1 << 21

# Upper bounds of what rounding can do: to a difference of two ln Z, and to a level as a whole
# (distances are good to about 1e-9). A reported level is never below the true one.
DIFFERENCE_ERROR = 2e-11
LEVEL_MARGIN = 1e-6

Item = TypeVar("Item")
Result = TypeVar("Result")


def privacy_curve(
    space: EmbeddingSpace,
    steps: Sequence[int],
    floor: float,
    base: float = 1.0,
    progress: bool = False,
) -> dict[int, float]:
    """Return the exact level ε*(s) for s = base·2^(k/32), in two passes over all distances.

    Args:
        space: Where the words lie; V words.
        steps: The steps k, at least one.
        floor: exp(−s·γ), the least weight, common to all s.
        base: s > 0 of step 0.
        progress: Show a progress bar.

    Returns:
        ε*(s) by step, bounded upward for rounding, in the digits of `agreed`. Time O(V²·n), memory
        O(V·(n + len(steps))).
    """
    inverses = base * 2.0 ** (np.asarray(steps) / STEPS_PER_OCTAVE)
    if floor >= 1.0 or len(space) == 1:
        # γ = 0: every input has the same law. s is still an upper bound of the level.
        return {step: base * grid_value(step) for step in steps}
    blocks = _blocks(len(space))
    total = len(blocks) * (3 * len(blocks) + 1) // 2
    with tqdm(total=total, desc="Calibrating", disable=not progress or None) as bar:
        distances = Distances(space.vectors, space.metric, space.scale)
        partition = LogPartition(distances, floor, base, steps)
        log_sums = np.empty((len(steps), len(space)))

        def fill(mine: Sequence[slice]) -> None:
            for block in mine:
                log_sums[:, block] = partition.log_sums(np.arange(block.start, block.stop)).T
                bar.update(len(blocks))

        _in_threads(fill, blocks)
        ratios = _largest_ratios(space, log_sums, bar)
    gammas = -math.log(floor) / inverses
    # Pairs farther apart than γ are at d_γ = γ.
    beyond = (log_sums.max(axis=1) - log_sums.min(axis=1) + DIFFERENCE_ERROR) / gammas
    ratios = np.maximum(ratios, beyond)
    _raise_by_centroid(ratios, space, inverses, floor, log_sums)
    levels = map(agreed, ((inverses + ratios) * (1.0 + LEVEL_MARGIN)).tolist())
    # Where words nearly coincide, or γ is nearly 0, rounding says nothing and the theorem more.
    # Powers of Python, not of NumPy, which are others where a processor has AVX-512.
    return {
        k: min(level, 2.0 * base * grid_value(k)) for k, level in zip(steps, levels, strict=True)
    }


def _blocks(size: int) -> list[slice]:
    return [slice(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def _largest_ratios(space: EmbeddingSpace, log_sums: Reals, bar: "tqdm[NoReturn]") -> Reals:
    """Return max |Δ ln Z|/d over pairs of words by step, (R,), bounded upward for rounding."""
    # In the order of ln Z, differences within a tile are all alike: most tiles can be passed over.
    # The largest come first.
    order = np.argsort(log_sums[len(log_sums) // 2])
    log_sums = log_sums[:, order]
    distances = Distances(space.vectors[order], space.metric, space.scale)
    blocks = _blocks(len(space))
    tiles = [(rows, columns) for k, rows in enumerate(blocks) for columns in blocks[k:]]
    tiles.sort(key=lambda tile: tile[0].start - tile[1].start)

    def compare(mine: Sequence[tuple[slice, slice]]) -> Reals:
        best = np.zeros(len(log_sums))
        for rows, columns in mine:
            inverse = distances.distances(np.arange(rows.start, rows.stop), columns)
            # Words at distance 0 have the same law; they take no part.
            np.divide(1.0, inverse, out=inverse, where=inverse > 0)
            _raise_ratios(best, log_sums[:, rows], log_sums[:, columns], inverse)
            bar.update()
        return best

    ratios: Reals = np.max(_in_threads(compare, tiles), axis=0)
    return ratios


def _raise_ratios(best: Reals, rows: Reals, columns: Reals, inverse: Reals) -> None:
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
    best: Reals, space: EmbeddingSpace, inverses: Reals, floor: float, log_sums: Reals
) -> None:
    """Raise best[r] to what the level of a word and the centroid has above s."""
    to_centroid = space.distances(np.array([-1]))[0]
    weights = np.maximum(np.exp(-inverses[:, None] * to_centroid), floor)
    gammas = -math.log(floor) / inverses
    # Where ln Z(word) − ln Z(centroid) is negative, the bound is attained at the word. Where it is
    # positive it would be at the centroid, which is no output: the largest log-ratio over the real
    # outputs is then less, and is looked up if it matters.
    differences = log_sums - np.log(weights.sum(axis=1))[:, None]
    apart = np.flatnonzero(to_centroid > 0)
    differences, reach = differences[:, apart], np.minimum(to_centroid[apart], gammas[:, None])
    at_word = np.where(differences <= 0, (DIFFERENCE_ERROR - differences) / reach, 0.0)
    np.maximum(best, at_word.max(axis=1, initial=0.0), out=best)
    # No output is farther from the word than from the centroid by more than this.
    ceilings = np.minimum(reach, np.maximum(gammas - to_centroid.min(), 0.0)[:, None])
    fixed, steep = differences + DIFFERENCE_ERROR, inverses[:, None]
    bounds = np.where(differences > 0, (fixed + steep * ceilings) / reach - steep, 0.0)
    order = np.argsort(-(bounds - best[:, None]).max(axis=0, initial=0.0))
    step = max(1, BLOCK_ENTRIES // len(space))
    for block in (order[start : start + step] for start in range(0, len(order), step)):
        if not (bounds[:, block] > best[:, None]).any():
            continue
        distances = space.distances(apart[block])
        most = (distances - to_centroid).max(axis=1, initial=0.0)
        for r, (inverse, gamma) in enumerate(zip(inverses, gammas, strict=True)):
            ceiling = np.minimum(most, ceilings[r, block])
            reachable = (fixed[r, block] + inverse * ceiling) / reach[r, block] - inverse
            hot = np.flatnonzero(reachable > best[r])
            gains = np.minimum(distances[hot], gamma) - np.minimum(to_centroid, gamma)
            raised = fixed[r, block[hot]] + inverse * gains.max(axis=1)
            best[r] = max(best[r], (raised / reach[r, block[hot]] - inverse).max(initial=0.0))


def _in_threads(work: Callable[[Sequence[Item]], Result], items: Sequence[Item]) -> list[Result]:
    """Deal items out in turn to as many threads as this process may use, one BLAS thread each."""
    workers = 1 if _runtime.in_worker() else os.cpu_count() or 1
    shares = [items[start::workers] for start in range(min(workers, len(items)))]
    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))

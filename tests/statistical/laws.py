"""Statistical tests with a stated false-alarm rate.

Every check takes the probability `alpha` with which it may reject a sampler that is right, derives
its threshold from it, and raises `RejectedError` naming n, the statistic, the threshold and alpha.
Each is sensitive to deviations on both sides; `test_laws.py` holds them to that.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

# A suite of a thousand checks then fails by chance for one choice of seeds in a thousand; with the
# seeds fixed, as they are, it fails always or never.
ALPHA = 1e-6

# Below this many expected counts a chi-square cell is far from normal, and is merged with others.
LEAST_EXPECTED = 20

Array = NDArray[np.floating[Any]]
Cdf = Callable[[Array], Array]


class RejectedError(AssertionError):
    """The data do not fit what they were checked against."""


def check_law(sample: Array, cdf: Cdf, alpha: float = ALPHA) -> None:
    """Kolmogorov-Smirnov: the largest gap, on either side, between sample and distribution.

    The threshold is the exact quantile of the two-sided statistic for n independent draws of a
    continuous law.
    """
    ordered = np.asarray(cdf(np.sort(sample)), dtype=np.float64)
    n = len(ordered)
    above = (np.arange(1, n + 1) / n - ordered).max()
    below = (ordered - np.arange(n) / n).max()
    _judge("Kolmogorov-Smirnov", n, max(above, below), _largest_gap(n, alpha), alpha)


@functools.cache
def _largest_gap(n: int, alpha: float) -> float:
    return float(stats.kstwo.isf(alpha, n))


def check_scale(sample: Array, cdf: Cdf, alpha: float = ALPHA) -> None:
    """Quartile counts: too many or too few draws below a quartile of the law.

    How many of n independent draws fall below a quantile is binomial, exactly, for every continuous
    law. Draws that are too small or too large change the counts in opposite directions, and the
    interval is two-sided.
    """
    positions = np.asarray(cdf(sample), dtype=np.float64)
    for quartile in (0.25, 0.5, 0.75):
        count = int((positions < quartile).sum())
        check_rate(count, len(positions), quartile, alpha / 3, name=f"scale at {quartile:.0%}")


def check_law_and_scale(sample: Array, cdf: Cdf, alpha: float = ALPHA) -> None:
    """Accept the sample, and require that two thirds and three halves of it are rejected.

    A check that would let a wrong scale pass proves nothing about the right one. Of large samples
    the first 1,500 have to do for that, which is the harder.
    """
    for check in (check_law, check_scale):
        check(sample, cdf, alpha)
        for factor in (2 / 3, 3 / 2):
            with pytest.raises(RejectedError, match=r"statistic=.*alpha="):
                check(factor * sample[:1500], cdf, alpha)


def check_frequencies(counts: ArrayLike, probabilities: ArrayLike, alpha: float = ALPHA) -> None:
    """Pearson's chi-square of observed counts against a discrete distribution.

    Cells are merged, rarest first, until each expects `LEAST_EXPECTED`. A count where the
    probability is 0 is rejected outright.
    """
    observed = np.asarray(counts, dtype=np.float64).ravel()
    share = np.asarray(probabilities, dtype=np.float64).ravel()
    if observed.shape != share.shape or not np.isclose(share.sum(), 1, atol=1e-9):
        raise ValueError(f"need one probability a count, summing to 1, got sum {share.sum()}")
    n = observed.sum()
    if observed[share == 0].sum() > 0:
        _judge("chi-square, impossible outcomes", int(n), float("inf"), 0.0, alpha)
    observed, expected = _merge(observed, share * n)
    if len(expected) < 2:
        raise ValueError(f"n={n:.0f} is too few: one merged cell is left")
    statistic = float(((observed - expected) ** 2 / expected).sum())
    cells = len(expected)
    critical = float(stats.chi2.isf(alpha, cells - 1))
    _judge(f"chi-square of {cells} cells", int(n), statistic, critical, alpha)


def check_uncorrelated(x: Array, y: Array, alpha: float = ALPHA) -> None:
    """Spearman's rank correlation, two-sided.

    Under independence it has mean 0 and variance 1/(n-1) whatever the laws, and is close to normal
    for the thousands of pairs used here.
    """
    n = len(x)
    correlation = np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]
    critical = float(stats.norm.isf(alpha / 2)) / np.sqrt(n - 1)
    _judge("rank correlation", n, abs(float(correlation)), critical, alpha)


def check_independent(x: Array, y: Array, alpha: float = ALPHA, bins: int = 8) -> None:
    """Rank correlation, and a chi-square on a grid of ranks for dependence that it can not see."""
    check_uncorrelated(x, y, alpha / 2)
    n = len(x)
    cells = np.zeros((bins, bins))
    np.add.at(cells, (_rank_bin(x, bins), _rank_bin(y, bins)), 1)
    expected = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0, keepdims=True) / n
    statistic = float(((cells - expected) ** 2 / expected).sum())
    critical = float(stats.chi2.isf(alpha / 2, (bins - 1) ** 2))
    _judge("chi-square of independence", n, statistic, critical, alpha)


def clopper_pearson(successes: Any, trials: int, alpha: float = ALPHA) -> tuple[Any, Any]:
    """Return the exact interval that misses a binomial rate with probability at most alpha.

    Of an array of successes, an array of lower ends and one of upper ends.
    """
    hits = np.asarray(successes, dtype=np.float64)
    # Quantiles of beta laws; the shapes that do not exist stand for the ends 0 and 1.
    low = special.betaincinv(np.maximum(hits, 0.5), trials - hits + 1, alpha / 2)
    high = special.betainccinv(hits + 1, np.maximum(trials - hits, 0.5), alpha / 2)
    return np.where(hits > 0, low, 0.0)[()], np.where(hits < trials, high, 1.0)[()]


def check_rate(
    successes: int, trials: int, expected: float, alpha: float = ALPHA, name: str = "rate"
) -> None:
    """Require the expected rate to lie in the Clopper-Pearson interval of what was observed."""
    low, high = clopper_pearson(successes, trials, alpha)
    if not low <= expected <= high:
        raise RejectedError(
            f"{name}: n={trials}, statistic={successes / trials:.6g} in [{low:.6g}, {high:.6g}] "
            f"does not reach {expected:.6g}, alpha={alpha:g}"
        )


def _judge(name: str, n: int, statistic: float, critical: float, alpha: float) -> None:
    # A NaN must be rejected too, hence not `statistic > critical`.
    if not statistic <= critical:
        raise RejectedError(
            f"{name}: n={n}, statistic={statistic:.6g} exceeds {critical:.6g}, alpha={alpha:g}"
        )


def _merge(observed: Array, expected: Array) -> tuple[Array, Array]:
    order = np.argsort(expected)
    observed, expected = observed[order], expected[order]
    # Cells are rarest first, so a block is closed as soon as its expectation is large enough.
    blocks = np.zeros(len(expected), dtype=np.int64)
    block, total = 0, 0.0
    for index, value in enumerate(expected):
        blocks[index] = block
        total += value
        if total >= LEAST_EXPECTED:
            block, total = block + 1, 0.0
    blocks = np.minimum(blocks, max(block - 1, 0))
    return np.bincount(blocks, observed), np.bincount(blocks, expected)


def _rank_bin(values: Array, bins: int) -> NDArray[np.int64]:
    ranks = stats.rankdata(values, method="ordinal") - 1
    return (ranks * bins // len(values)).astype(np.int64)

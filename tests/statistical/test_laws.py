"""The statistical helpers themselves: they accept what is right and reject both kinds of wrong."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from laws import (
    Array,
    RejectedError,
    check_frequencies,
    check_independent,
    check_law,
    check_law_and_scale,
    check_rate,
    check_scale,
    check_uncorrelated,
    clopper_pearson,
)

SCALE_CHECKS = [check_law, check_scale]
LAWS = [stats.gamma(3), stats.gamma(300), stats.expon(), stats.halfnorm()]


def draws(law: stats.rv_continuous, n: int = 20_000, seed: int = 0) -> Array:
    return np.asarray(law.rvs(n, random_state=np.random.default_rng(seed)))


@pytest.mark.parametrize("check", SCALE_CHECKS)
@pytest.mark.parametrize("law", LAWS, ids=["gamma3", "gamma300", "expon", "halfnorm"])
def test_right_scale_is_accepted(check: Callable[..., None], law: stats.rv_continuous) -> None:
    for seed in range(20):
        check(draws(law, seed=seed), law.cdf)


@pytest.mark.parametrize("check", SCALE_CHECKS)
@pytest.mark.parametrize("law", LAWS, ids=["gamma3", "gamma300", "expon", "halfnorm"])
@pytest.mark.parametrize("factor", [2 / 3, 3 / 2, 0.95, 1.05])
def test_wrong_scale_is_rejected_on_either_side(
    check: Callable[..., None], law: stats.rv_continuous, factor: float
) -> None:
    n = 20_000 if factor in (2 / 3, 3 / 2) else 200_000
    with pytest.raises(RejectedError, match=rf"n={n}, statistic=.*alpha=(1e-06|3.33333e-07)"):
        check(factor * draws(law, n), law.cdf)


@pytest.mark.parametrize("check", SCALE_CHECKS)
def test_false_alarm_rate_is_the_stated_one(check: Callable[..., None]) -> None:
    alpha, repetitions = 0.06, 2000
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(repetitions):
        try:
            check(rng.random(500), lambda x: x, alpha)
        except RejectedError:
            rejected += 1
    # The quartile counts share alpha among three correlated exact tests, and so stay below it.
    assert clopper_pearson(rejected, repetitions)[0] <= alpha
    if check is check_law:
        check_rate(rejected, repetitions, alpha)
    else:
        assert rejected > repetitions * alpha / 4


def test_nan_is_rejected() -> None:
    sample = draws(stats.expon())
    sample[7] = np.nan
    with pytest.raises(RejectedError, match="statistic=nan"):
        check_law(sample, stats.expon.cdf)


def test_scale_guard_fails_when_the_check_has_no_power() -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_law_and_scale(draws(stats.expon(), n=10), stats.expon.cdf)


def test_frequencies_accept_the_true_distribution_and_reject_neighbours() -> None:
    rng = np.random.default_rng(2)
    true = rng.dirichlet(np.full(200, 0.3))
    counts = rng.multinomial(200_000, true)
    check_frequencies(counts, true)
    flatter = true**0.95 / (true**0.95).sum()
    steeper = true**1.05 / (true**1.05).sum()
    for wrong in (flatter, steeper):
        with pytest.raises(RejectedError, match=r"chi-square of \d+ cells: n=200000"):
            check_frequencies(counts, wrong)


def test_frequencies_have_the_stated_false_alarm_rate() -> None:
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.ones(50))
    rejected = 0
    for counts in rng.multinomial(5000, true, size=4000):
        try:
            check_frequencies(counts, true, alpha=0.05)
        except RejectedError:
            rejected += 1
    check_rate(rejected, 4000, 0.05)


def test_frequencies_reject_an_impossible_outcome() -> None:
    with pytest.raises(RejectedError, match="impossible"):
        check_frequencies([500, 499, 1], [0.5, 0.5, 0.0])


def test_frequencies_refuse_what_can_not_be_tested() -> None:
    with pytest.raises(ValueError, match="summing to 1"):
        check_frequencies([500, 500], [0.5, 0.4])
    with pytest.raises(ValueError, match="too few"):
        check_frequencies([5, 5], [0.5, 0.5])


@pytest.mark.parametrize("sign", [-1, 1])
def test_correlation_is_found_on_either_side(sign: int) -> None:
    rng = np.random.default_rng(4)
    x, other = rng.standard_normal((2, 50_000))
    check_uncorrelated(x, other)
    check_independent(x, other)
    for check in (check_uncorrelated, check_independent):
        with pytest.raises(RejectedError, match="rank correlation: n=50000"):
            check(x, other + sign * 0.05 * x)


def test_dependence_without_correlation_is_found() -> None:
    rng = np.random.default_rng(5)
    x, other = rng.standard_normal((2, 50_000))
    dependent = other * (1 + 0.2 * np.abs(x))
    check_uncorrelated(x, dependent)
    with pytest.raises(RejectedError, match="chi-square of independence: n=50000"):
        check_independent(x, dependent)


@pytest.mark.parametrize(("successes", "trials"), [(0, 50), (1, 50), (25, 50), (50, 50)])
def test_clopper_pearson_agrees_with_scipy(successes: int, trials: int) -> None:
    interval = stats.binomtest(successes, trials).proportion_ci(0.99, method="exact")
    assert clopper_pearson(successes, trials, alpha=0.01) == pytest.approx(
        (interval.low, interval.high)
    )


@pytest.mark.parametrize("observed", [480, 520])
def test_rate_is_checked_on_either_side(observed: int) -> None:
    check_rate(observed, 1000, 0.5)
    with pytest.raises(RejectedError, match="rate: n=100000"):
        check_rate(100 * observed, 100_000, 0.5)

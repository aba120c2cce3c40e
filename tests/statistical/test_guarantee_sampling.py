"""The statistics of audits: they keep their false-alarm rate, and find what is barely wrong."""

import math

import numpy as np
import pytest

from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.verify import workers
from hf_dxprivacy.verify.inputs import AuditTarget
from hf_dxprivacy.verify.sampling import check_by_draws, least_log_ratio, most_telling
from laws import check_rate, clopper_pearson

WORDS = ("a", "b", "c", "d")


def randomized_response(true: float, claimed: float, rng: np.random.Generator) -> AuditTarget:
    """Four words, each e^true times as likely to come out as another one: exactly true·d."""
    keep = math.exp(true) / (math.exp(true) + len(WORDS) - 1)

    def draw(positions: np.ndarray) -> np.ndarray:
        other = (positions + rng.integers(1, len(WORDS), size=len(positions))) % len(WORDS)
        return np.where(rng.random(len(positions)) < keep, positions, other)

    allowed = claimed * (1.0 - np.eye(len(WORDS)))
    return AuditTarget(WORDS, allowed, draw, lambda output: WORDS[output])


def rejections(true: float, claimed: float, alpha: float, draws: int, repetitions: int) -> int:
    rng = keyed_generator(int(1000 * true), int(1000 * claimed))
    target = randomized_response(true, claimed, rng)
    return sum(not check_by_draws(target, draws, alpha, rng).passed for _ in range(repetitions))


def test_false_alarms_are_as_rare_as_stated() -> None:
    """The bound is reached exactly here, so that nothing but the statistics stands between."""
    alpha, repetitions = 0.3, 200
    rejected = rejections(1.0, 1.0, alpha, 4_000, repetitions)
    assert clopper_pearson(rejected, repetitions)[1] <= alpha
    print(f"{rejected} of {repetitions} rejected at alpha={alpha}")
    assert rejected > 0, "far more cautious than stated"


@pytest.mark.parametrize("excess", [1.1, 1.25])
def test_what_is_barely_too_much_is_found(excess: float) -> None:
    """A log-ratio of 1.1·ε·d and of 1.25·ε·d; and that of ε·d itself is not."""
    draws = round(4_000 / (excess - 1.0) ** 2)
    assert rejections(excess * 0.7, 0.7, 1e-3, draws, 20) == 20
    assert rejections(0.7, 0.7, 1e-3, draws // 10, 20) == 0


def test_lower_bound_is_seldom_above_the_truth() -> None:
    rng = keyed_generator(1)
    alpha, draws, p, q = 0.1, 500, 0.4, 0.1
    hits = rng.binomial(draws, (p, q), size=(3000, 2))
    above = sum(least_log_ratio(int(a), int(b), draws, alpha) > math.log(p / q) for a, b in hits)
    assert clopper_pearson(above, len(hits))[1] <= alpha
    # Each of both bounds has half of alpha; that both err far enough together is rarer.
    assert above > len(hits) * alpha / 10
    assert least_log_ratio(0, 0, draws, alpha) == -math.inf
    assert least_log_ratio(500, 0, draws, alpha) == pytest.approx(math.log(draws / 3.0), abs=0.2)


def test_the_most_telling_set_is_that_of_the_likelihood_ratio() -> None:
    rng = keyed_generator(2)
    p, q = np.array([[0.3, 0.2, 0.1, 0.2, 0.2], [0.1, 0.07, 0.43, 0.2, 0.2]])
    first, second = rng.choice(5, 40_000, p=p), rng.choice(5, 40_000, p=q)
    event, other = most_telling((7, 8), first, second, 0.5)
    assert (event.first, event.second) == (7, 8)
    assert event.outputs.tolist() == [0, 1]
    assert event.score > 20
    assert (other.first, other.second) == (8, 7)
    assert other.outputs.tolist() == [2]


def test_sets_are_not_scored_by_the_draws_they_were_made_of() -> None:
    """Of a hundred thousand outputs hardly one is drawn from both inputs, though by one law."""
    rng = keyed_generator(3)
    scores = [
        each.score
        for _ in range(10)
        for each in most_telling((0, 1), *rng.integers(100_000, size=(2, 2000)), 0.1)
    ]
    assert max(scores) < 4


def test_releases_that_are_independent_seldom_fail() -> None:
    rng = keyed_generator(4)
    alpha, repetitions = 0.2, 1000
    failed = 0
    for _ in range(repetitions):
        # Laws that differ from place to place, as the words of a text have them.
        codes = (rng.random((6, 40)) ** rng.uniform(1, 6, size=40) * 5).astype(np.int64)
        failed += not workers.compare_releases(codes, 2, alpha, rng).passed
    assert clopper_pearson(failed, repetitions)[0] <= alpha
    check_rate(failed, repetitions, 0.12, alpha=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_two_releases_with_a_little_noise_in_common_fail(share: float) -> None:
    rng = keyed_generator(5)
    codes = rng.integers(6, size=(12, 300))
    common = rng.random(300) < share
    codes[9, common] = codes[2, common]
    found = workers.compare_releases(codes, 2, 1e-3, rng)
    assert found.passed is (share == 0.0)
    assert found.shared == pytest.approx(max(0.22, 1 / 6 + share * 5 / 6), abs=0.05)

"""The compiled steps of Poincaré training against the formulas they stand for."""

import errno
import os
from typing import Any

import mpmath
import numpy as np
import pytest

from hf_dxprivacy.training import descent, kernels

# One node with two classes, and one node left to draw.
PAIRS = np.array([[0, 1], [0, 2]])
START = np.array([[0.3, 0.2], [-0.1, 0.4], [0.2, 0.1], [0.5, -0.3]])


def test_training_goes_on_where_nothing_can_be_cached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    double = kernels.compiled()(lambda value: 2 * value)
    assert (double(3), double(0.5)) == (6, 1.0)
    (said,) = caplog.messages
    assert f"{double.stats.cache_path} cannot be written (No space left on device)" in said


def _to_hyperboloid(points: np.ndarray) -> np.ndarray:
    return 2.0 * points / (1.0 - (points**2).sum(axis=1, keepdims=True))


def _loss(points: np.ndarray, sharpness: float, rank_weight: float = 0.0) -> float:
    """Eq. 6 of [N] for both relations, and how far the drawn node is nearer than either class."""
    gaps = (1.0 - points[0] @ points[0]) * (1.0 - (points[1:] ** 2).sum(axis=1))
    squared = ((points[1:] - points[0]) ** 2).sum(axis=1)
    weights = np.exp(-sharpness * np.arccosh(1.0 + 2.0 * squared / gaps))
    behind = np.log1p(weights[2] / weights[:2]).sum() / sharpness
    return float(-np.log(weights[:2] / (weights[:2] + weights[2])).sum() + rank_weight * behind)


def _gradient(points: np.ndarray, *settings: float) -> np.ndarray:
    gradient = np.zeros_like(points)
    for place in np.ndindex(*points.shape):
        step = np.zeros_like(points)
        step[place] = 1e-6
        change = _loss(points + step, *settings) - _loss(points - step, *settings)
        gradient[place] = change / 2e-6
    return gradient


@pytest.mark.parametrize("rank_weight", [0.0, 3.0])
@pytest.mark.parametrize("sharpness", [1.0, 2.5])
def test_a_step_follows_the_gradient_of_the_loss(sharpness: float, rank_weight: float) -> None:
    """It is, for a short step, the Riemannian gradient in the ball."""
    points = _to_hyperboloid(START)
    graph = descent.graph_of(PAIRS, 4)
    only_the_last = descent.alias_table(np.array([0.0, 0.0, 0.0, 1.0]))
    state = np.array([5], dtype=np.uint64)
    rate, node = 1e-6, np.array([0])
    settings = (sharpness, rate, rank_weight)
    loss = kernels.train(points, node, graph, only_the_last, 1, 0, *settings, state)
    moved = kernels.to_ball(points)
    assert loss == pytest.approx(_loss(START, sharpness))
    conformal = ((1.0 - (START**2).sum(axis=1, keepdims=True)) / 2.0) ** 2
    expected = -rate * conformal * _gradient(START, sharpness, rank_weight)
    np.testing.assert_allclose(moved - START, expected, rtol=1e-4, atol=1e-12)


def _around(radius: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a point of the hyperboloid at a radius, and another about 1 from it."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=5)
    direction /= np.linalg.norm(direction)
    here = np.sinh(radius) * direction
    return here, here * np.exp(0.7) + rng.normal(size=5) * 0.4


def _exact_excess(here: np.ndarray, there: np.ndarray) -> mpmath.mpf:
    with mpmath.workdps(60):
        u, v = [mpmath.mpf(x) for x in here], [mpmath.mpf(x) for x in there]
        times = mpmath.sqrt(1 + mpmath.fdot(u, u)) * mpmath.sqrt(1 + mpmath.fdot(v, v))
        return times - mpmath.fdot(u, v) - 1


@pytest.mark.parametrize(("radius", "tolerance"), [(0.5, 1e-14), (10.0, 1e-10), (20.0, 1e-6)])
def test_distances_on_the_hyperboloid_are_right_far_out(radius: float, tolerance: float) -> None:
    """At 20 the products of the Lorentz model themselves are of no use: 1e17, to be told from 1."""
    for seed in range(10):
        here, there = _around(radius, seed)
        terms = np.empty((4, 2))
        kernels.measure(here, np.column_stack([there, there]), terms, 1)
        assert terms[0, 0] == pytest.approx(float(_exact_excess(here, there)), rel=tolerance)


@pytest.mark.parametrize("radius", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("slope", [0.3, -0.3, -4.0])
def test_steps_on_the_hyperboloid_are_geodesics(radius: float, slope: float) -> None:
    """Both ends move along the line that joins them, each by arsinh of the slope."""
    here, there = _around(radius, seed=1)
    columns, terms = np.column_stack([there, np.zeros(5)]), np.empty((4, 2))
    kernels.measure(here, columns, terms, 1)
    before = float(terms[0, 0])
    terms[3, 0] = slope
    terms[1, 0] = slope / np.sqrt(before * (before + 2.0))
    kernels.descend(here, columns, terms, 1)
    moved_there, moved_here = there + columns[:, 0], here + columns[:, 1]
    nearer = 2.0 * np.arcsinh(slope)
    expected = abs(np.arccosh(1.0 + before) - nearer)
    after = np.arccosh(1.0 + float(_exact_excess(moved_here, moved_there)))
    assert after == pytest.approx(expected, rel=1e-4)


def test_steps_stay_within_the_largest_norm() -> None:
    points = np.zeros((4, 2))
    points[:, 0] = kernels.LARGEST_NORM * np.array([1.0, 0.9, 0.8, 0.99])
    graph, even = descent.graph_of(PAIRS, 4), descent.alias_table(np.ones(4))
    state = np.array([5], dtype=np.uint64)
    for _ in range(20):
        kernels.train(points, np.array([0]), graph, even, 20, 0, 1.0, 5.0, 0.0, state)
    assert np.isfinite(points).all()
    assert np.linalg.norm(points, axis=1).max() <= kernels.LARGEST_NORM * (1.0 + 1e-15)


def _drawn(near: int, table: kernels.Table, seed: int) -> np.ndarray:
    """Count the draws for node 4 of: 0 above all, 1 above 4 and 5, 2 above 6, 3 alone below 0."""
    pairs = np.array([[1, 0], [2, 0], [3, 0], [4, 0], [4, 1], [5, 0], [5, 1], [6, 0], [6, 2]])
    graph, state = descent.graph_of(pairs, 7), np.array([seed], dtype=np.uint64)
    counts, group = np.zeros(7), np.empty(1002, dtype=np.int64)
    for _ in range(60):
        even, end = kernels.fill_group(4, group, 1000, near, graph, table, state)
        assert group[:2].tolist() == [0, 1]
        assert even == (end if near else 2)
        counts += np.bincount(group[2:end], minlength=7)
    return counts


@pytest.mark.parametrize(
    ("near", "weights", "expected"),
    [
        # Draws of the node itself (4) and its classes (0, 1) are dropped.
        (0, np.ones(7), np.array([0, 0, 1, 1, 0, 1, 1]) / 7),
        (0, np.arange(7.0), np.array([0, 0, 2, 3, 0, 5, 6]) / 21),
        # By 0 any of its six members, by 1 one of its two.
        (1000, np.ones(7), np.array([0, 0, 1 / 12, 1 / 12, 0, 1 / 12 + 1 / 4, 1 / 12])),
    ],
)
def test_negatives_are_drawn_as_asked(near: int, weights: Any, expected: Any) -> None:
    counts = _drawn(near, descent.alias_table(weights), seed=9)
    # Six standard deviations of 60,000 draws.
    bound = 6.0 * np.sqrt(60_000 * expected * (1.0 - expected))
    assert (np.abs(counts - 60_000 * expected) <= bound).all()

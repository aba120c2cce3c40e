"""Formulas of both metrics against values that are known, and against exact arithmetic."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from hf_dxprivacy.spaces import metrics as euclidean
from hf_dxprivacy.spaces import metrics as poincare

EPS = float(np.finfo(np.float64).eps)


def exact_gap(point: np.ndarray) -> Fraction:
    return 1 - sum((Fraction(float(x)) ** 2 for x in point), Fraction(0))


def exact_distance(u: np.ndarray, v: np.ndarray) -> float:
    """arcosh(1 + 2‖u−v‖²/((1−‖u‖²)(1−‖v‖²))) to sixty digits."""
    getcontext().prec = 60
    squared = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(u, v, strict=True))
    ratio = Fraction(squared) / (exact_gap(u) * exact_gap(v))
    x = 2 * Decimal(ratio.numerator) / Decimal(ratio.denominator)
    return float((1 + x + (x * (x + 2)).sqrt()).ln())


def exact_sum(u: np.ndarray, v: np.ndarray) -> list[float]:
    """The textbook formula of u ⊕ v in rational numbers."""
    a, b = [Fraction(float(x)) for x in u], [Fraction(float(x)) for x in v]
    inner = sum(x * y for x, y in zip(a, b, strict=True))
    aa, bb = sum(x * x for x in a), sum(y * y for y in b)
    bottom = 1 + 2 * inner + aa * bb
    return [
        float(((1 + 2 * inner + bb) * x + (1 - aa) * y) / bottom) for x, y in zip(a, b, strict=True)
    ]


def ball(rng: np.random.Generator, size: int, dim: int) -> np.ndarray:
    """Points from 1e-12 of the origin to 1e-12 of the boundary."""
    directions = rng.normal(size=(size, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    near = 10.0 ** rng.uniform(-12, 0, (size, 1))
    inward = rng.random((size, 1)) < 0.5
    return directions * np.where(inward, near, 1.0 - near) * (1 - 4 * EPS)


@pytest.mark.parametrize("dim", [1, 2, 10, 100])
def test_the_gap_is_right_to_the_last_digits(dim: int) -> None:
    points = ball(np.random.default_rng(dim), 3000, dim)
    some = np.linspace(0, 2999, 60).astype(int)
    gaps = poincare.boundary_gap(points)[some]
    exact = [float(exact_gap(point)) for point in points[some]]
    np.testing.assert_allclose(gaps, exact, rtol=16 * EPS)
    # What the plain formula makes of the same points: the care is needed.
    plain = 1 - np.sum(points[some] ** 2, axis=1)
    assert np.max(np.abs(plain / exact - 1)) > 1e-10


def test_the_gap_tells_inside_from_outside_by_one_bit() -> None:
    edge = np.nextafter(1.0, 0.0)
    points = np.array([[edge, 0.0], [1.0, 0.0], [1.0, 1e-200], [1.0, 1e-8], [0.6, 0.8]])
    gaps = poincare.boundary_gap(points)
    assert gaps[0] == 2.0**-52 - 2.0**-106
    assert (gaps[1:4] <= 0).all()
    assert gaps[4] == pytest.approx(float(exact_gap(points[4])), rel=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_hyperbolic_distances_agree_with_exact_arithmetic(dim: int) -> None:
    rng = np.random.default_rng(10 + dim)
    u, v = ball(rng, 80, dim), ball(rng, 80, dim)
    v[:40] = u[:40] * (1 - 10.0 ** rng.uniform(-15, -3, (40, 1)))
    exact = [exact_distance(a, b) for a, b in zip(u, v, strict=True)]
    np.testing.assert_allclose(poincare.pair_distances(u, v), exact, rtol=64 * EPS)


def test_the_distance_from_the_origin_is_twice_artanh() -> None:
    rho = np.array([1e-12, 1e-3, 1.0, 5.0, 20.0])
    points = np.tanh(rho / 2)[:, None] * np.array([[0.6, -0.8]])
    found = poincare.pair_distances(points, np.zeros_like(points))
    # tanh rounds, which near the boundary moves the point: by 2e-16·e^ρ/4 at most.
    np.testing.assert_allclose(found, rho, rtol=1e-8)
    np.testing.assert_allclose(found, 2 * np.arctanh(np.linalg.norm(points, axis=1)), rtol=1e-7)


def test_lorentz_images_lie_on_the_hyperboloid_and_give_the_distance() -> None:
    rng = np.random.default_rng(3)
    u, v = (rng.normal(size=(50, 4)) / 6 for _ in range(2))
    x, y = poincare.lorentz_image(u), poincare.lorentz_image(v)
    signature = np.array([-1.0, 1, 1, 1, 1])
    np.testing.assert_allclose((x * x) @ signature, -1.0, rtol=1e-12)
    np.testing.assert_allclose(x[:, 1:] / (1 + x[:, :1]), u, rtol=1e-12)
    expected = np.arccosh(-(x * y) @ signature)
    np.testing.assert_allclose(poincare.pair_distances(u, v), expected, rtol=1e-10)


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_mobius_addition_agrees_with_exact_arithmetic(dim: int) -> None:
    rng = np.random.default_rng(20 + dim)
    u, v = ball(rng, 60, dim), ball(rng, 60, dim)
    v[:20] = -u[:20] * (1 - 10.0 ** rng.uniform(-10, -3, (20, 1)))
    found = poincare.mobius_add(u, v)
    for row in range(60):
        np.testing.assert_allclose(found[row], exact_sum(u[row], v[row]), atol=1e-15, rtol=1e-12)


def test_one_center_is_added_to_many_points() -> None:
    rng = np.random.default_rng(4)
    u, v = rng.normal(size=(1, 3)) / 5, rng.normal(size=(30, 3)) / 5
    repeated = np.repeat(u, 30, axis=0)
    expected = poincare.mobius_add(repeated, v)
    np.testing.assert_allclose(poincare.mobius_add(u, v), expected, rtol=1e-12, atol=1e-15)


def test_mobius_addition_is_finite_on_the_boundary() -> None:
    edge = np.nextafter(1.0, 0.0)
    axis = np.array([[1.0, 0.0]])
    slanted = np.array([[np.cos(1.0), np.sin(1.0)]])
    for u in (edge * axis, -edge * axis, 0.5 * axis, 0 * axis):
        for v in (
            axis,
            -axis,
            slanted,
            np.nextafter(slanted, 2.0),
            np.nextafter(axis, 2.0),
            -axis * (1 + 4 * EPS),
        ):
            result = poincare.mobius_add(u, v)
            assert np.isfinite(result).all()
            assert np.linalg.norm(result) <= 1 + 4 * EPS
            if abs(np.linalg.norm(v) - 1) < EPS and abs(u[0, 0]) < 0.6:
                assert np.linalg.norm(result) == pytest.approx(1.0, abs=4 * EPS)


def test_float32_points_are_handled_in_float64() -> None:
    points = (np.random.default_rng(5).normal(size=(20, 3)) / 4).astype(np.float32)
    other = points[::-1]
    for function in (poincare.pair_distances, poincare.mobius_add, euclidean.pair_squared):
        found = function(points, other)
        assert found.dtype == np.float64
        expected = function(points.astype(np.float64), other.astype(np.float64))
        np.testing.assert_array_equal(found, expected)


def test_blocks_cover_every_row_once() -> None:
    assert list(euclidean.blocks(3, 10, 4)) == [slice(3, 7), slice(7, 10)]
    assert list(euclidean.blocks(5, 5)) == []


def test_means_and_norms_of_many_blocks() -> None:
    vectors = np.random.default_rng(6).normal(size=(5000, 7)).astype(np.float32)
    exact = vectors.astype(np.float64)
    center = euclidean.mean(vectors)
    np.testing.assert_allclose(center, exact.mean(axis=0), rtol=1e-10)
    expected = ((exact - center) ** 2).sum(axis=1)
    np.testing.assert_allclose(euclidean.squared_norms(vectors, center), expected, rtol=1e-12)


def test_entries_spoilt_by_cancellation_are_told() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(40, 12))
    y = np.concatenate([x + 1e-5, rng.normal(size=(60, 12))])
    squared = np.empty((40, 100))
    norms = [np.einsum("ij,ij->i", rows, rows) for rows in (x, y)]
    rows, columns = euclidean.cross_squared(x, y, *norms, squared)
    exact = ((x[:, None] - y) ** 2).sum(axis=2)
    told = np.zeros_like(squared, dtype=bool)
    told[rows, columns] = True
    assert told.diagonal().all()
    np.testing.assert_allclose(squared[~told], exact[~told], rtol=1e-9)
    assert np.max(np.abs(squared[told] / exact[told] - 1)) > 1e-9

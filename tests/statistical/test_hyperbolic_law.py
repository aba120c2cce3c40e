"""Hyperbolic noise: the two laws of the radius, and points of the ball at these distances."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from hf_dxprivacy.noise import ball_points, lebesgue_radius, riemannian_laplace_radius
from hf_dxprivacy.noise.hyperbolic import lebesgue_proposals
from hf_dxprivacy.randomness import keyed_generator
from hyperbolic_reference import lebesgue, radial_cdf, riemannian
from laws import (
    Array,
    RejectedError,
    check_independent,
    check_law,
    check_law_and_scale,
    clopper_pearson,
)

SIZE = 40_000
Sampler = Callable[[np.random.Generator, int, int, float], Array]

RIEMANNIAN = [
    (1, 1e-3),
    (1, 1e6),
    (2, 1.001),
    (2, 3.0),
    (5, 7.0),
    (10, 12.0),
    (10, 1e6),
    (100, 101.0),
    (300, 299.001),
    (300, 400.0),
]
LEBESGUE = [
    (1, 1e-3),
    (1, 1e6),
    (2, 1.0),
    (3, 1.0),
    (10, 0.5),
    (10, 1e6),
    (100, 0.125),
    (100, 1.0),
    (100, 8.0),
    (300, 1e-3),
    (300, 300.0),
    (300, 5000.0),
]
BOTH: list[tuple[Sampler, int, float]] = [
    (riemannian_laplace_radius, 2, 3.0),
    (riemannian_laplace_radius, 10, 12.0),
    (lebesgue_radius, 3, 1.0),
    (lebesgue_radius, 100, 8.0),
]


def seeded(dim: int, epsilon: float) -> np.random.Generator:
    return keyed_generator(0, dim, str(epsilon))


@pytest.mark.parametrize(("dim", "epsilon"), RIEMANNIAN)
def test_riemannian_radius_follows_its_definition(dim: int, epsilon: float) -> None:
    radii = riemannian_laplace_radius(seeded(dim, epsilon), SIZE, dim, epsilon)
    check_law_and_scale(radii, radial_cdf(riemannian(dim, epsilon)))


@pytest.mark.parametrize(("dim", "epsilon"), [(5, 7.0), (10, 12.0), (100, 101.0)])
def test_riemannian_radius_is_minus_half_log_beta(dim: int, epsilon: float) -> None:
    radii = riemannian_laplace_radius(seeded(dim, epsilon), SIZE, dim, epsilon)
    check_law(np.exp(-2 * radii), stats.beta((epsilon - dim + 1) / 2, dim).cdf)


def test_riemannian_radius_is_exponential_on_a_line() -> None:
    radii = riemannian_laplace_radius(keyed_generator(0), SIZE, 1, 0.25)
    check_law_and_scale(radii, stats.expon(scale=4).cdf)


def test_riemannian_radius_just_above_the_floor_is_finite_and_right() -> None:
    # exp(-2ρ) underflows in nearly all of these draws; ρ itself is about E/δ.
    delta = 2.0**-40
    radii = riemannian_laplace_radius(keyed_generator(1), SIZE, 3, 2 + delta)
    assert np.isfinite(radii).all()
    check_law_and_scale(radii * delta, stats.expon.cdf)


@pytest.mark.parametrize(("dim", "epsilon"), LEBESGUE)
def test_lebesgue_radius_follows_its_definition(dim: int, epsilon: float) -> None:
    radii = lebesgue_radius(seeded(dim, epsilon), SIZE, dim, epsilon)
    check_law_and_scale(radii, radial_cdf(lebesgue(dim, epsilon)))


@pytest.mark.parametrize(("dim", "epsilon"), [(2, 1.0), (3, 1.0), (10, 0.5), (10, 20.0)])
def test_reference_agrees_with_adaptive_quadrature_of_the_density_in_s(
    dim: int, epsilon: float
) -> None:
    def density(s: float) -> float:
        return float(s**epsilon * (1 - s) ** (dim - 1) * (1 + s) ** (-dim - 1))

    whole = integrate.quad(density, 0, 1)[0]
    cdf = radial_cdf(lebesgue(dim, epsilon))
    for s in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9):
        farther = integrate.quad(density, 0, s)[0] / whole
        assert cdf(np.array([-np.log(s)]))[0] == pytest.approx(1 - farther, abs=1e-6)


@pytest.mark.parametrize(("sampler", "dim", "epsilon"), BOTH)
@pytest.mark.parametrize("change", [(0, 2 / 3), (0, 3 / 2), (1, 1), (-1, 1)])
def test_law_of_another_epsilon_or_dimension_is_rejected(
    sampler: Sampler, dim: int, epsilon: float, change: tuple[int, float]
) -> None:
    radii = sampler(seeded(dim, epsilon), 4 * SIZE, dim, epsilon)
    law = riemannian if sampler is riemannian_laplace_radius else lebesgue
    other_dim, other_epsilon = dim + change[0], epsilon * change[1]
    if law is riemannian and other_epsilon <= other_dim - 1:
        other_epsilon = (epsilon + dim - 1) / 2
    with pytest.raises(RejectedError, match=f"n={4 * SIZE}"):
        check_law(radii, radial_cdf(law(other_dim, other_epsilon)))


def test_the_two_laws_are_told_apart() -> None:
    radii = lebesgue_radius(keyed_generator(2), SIZE, 3, 5.0)
    with pytest.raises(RejectedError, match=f"n={SIZE}"):
        check_law(radii, radial_cdf(riemannian(3, 5.0)))


@pytest.mark.parametrize("dim", [1, 2, 10, 300, 1000])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0, 1e3, 1e6])
def test_lebesgue_proposals_are_mostly_kept(dim: int, epsilon: float) -> None:
    _, accepted = lebesgue_proposals(seeded(dim, epsilon), SIZE, dim, epsilon)
    assert clopper_pearson(int(accepted.sum()), SIZE)[1] >= 0.65


@pytest.mark.parametrize(("sampler", "dim", "epsilon"), BOTH)
def test_radii_are_independent_between_rows_and_batches(
    sampler: Sampler, dim: int, epsilon: float
) -> None:
    rng = keyed_generator(4)
    first, second = (sampler(rng, SIZE, dim, epsilon) for _ in range(2))
    check_independent(first[0::2], first[1::2])
    check_independent(first, second)


@pytest.mark.parametrize("dim", [2, 10])
def test_points_lie_at_their_distance_in_a_uniform_direction(dim: int) -> None:
    rng = keyed_generator(5)
    radii = riemannian_laplace_radius(rng, SIZE, dim, dim + 2.0)
    points = ball_points(rng, radii, dim)
    norms = np.linalg.norm(points, axis=1)
    near = radii < 12
    assert near.mean() > 0.9
    np.testing.assert_allclose(2 * np.arctanh(norms[near]), radii[near], rtol=1e-8)
    along = points[:, 0] / norms
    check_law_and_scale(along**2, stats.beta(0.5, (dim - 1) / 2).cdf)
    check_independent(radii, along)
    check_independent(radii, np.abs(along))

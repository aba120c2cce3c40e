"""What the hyperbolic noises certify, by closed-form densities and by released points.

Densities are with respect to the invariant volume of the Poincaré ball, which translations
preserve: the density at y of noise z carried to c is that of z = (-c) ⊕ y.
"""

from collections.abc import Callable

import numpy as np
import pytest

from hf_dxprivacy.noise import ball_points, lebesgue_radius, riemannian_laplace_radius
from hf_dxprivacy.randomness import keyed_generator
from laws import Array, clopper_pearson

# Centres at distance 2.045 in three dimensions: with ε = 1 the certificate of the density of
# Eq. 7 is (1+3)·2.045 = 8.182, where the paper claims 2.045.
HALF = np.tanh(2.0455 / 4)
PAIR = np.array([HALF, 0.0, 0.0]), np.array([-HALF, 0.0, 0.0])
DRAWS = 400_000


def mobius_add(u: Array, v: Array) -> Array:
    """Return u ⊕ v, which as a function of v is the isometry that carries 0 to u."""
    uv = (u * v).sum(axis=-1, keepdims=True)
    uu = (u * u).sum(axis=-1, keepdims=True)
    vv = (v * v).sum(axis=-1, keepdims=True)
    return ((1 + 2 * uv + vv) * u + (1 - uu) * v) / (1 + 2 * uv + uu * vv)


def distance(u: Array, v: Array) -> Array:
    gap = ((u - v) ** 2).sum(axis=-1)
    return np.arccosh(1 + 2 * gap / ((1 - (u**2).sum(axis=-1)) * (1 - (v**2).sum(axis=-1))))


def log_riemannian(z: Array, epsilon: float) -> Array:
    return -epsilon * 2 * np.arctanh(np.linalg.norm(z, axis=-1))


def log_lebesgue(z: Array, epsilon: float) -> Array:
    """Return ln of Eq. 7 over the volume element (2/(1-‖z‖²))^dim, up to a constant."""
    norm = np.linalg.norm(z, axis=-1)
    return epsilon * np.log((1 - norm) / (1 + norm)) + z.shape[-1] * np.log((1 - norm**2) / 2)


def largest_log_ratio(
    density: Callable[[Array, float], Array], epsilon: float, c: Array, other: Array
) -> float:
    """Search the ball for the output that tells c from the other centre best."""
    rng = np.random.default_rng(len(c))
    everywhere = ball_points(rng, rng.uniform(0, 12, 20_000), len(c))
    # The geodesic through both centres, beyond each of them, is where the ratio is largest.
    towards = mobius_add(-other, c)
    beyond = np.tanh(np.linspace(0, 16, 200) / 2)[:, None] * towards / np.linalg.norm(towards)
    points = np.concatenate([everywhere, mobius_add(other, beyond), mobius_add(other, -beyond)])
    ratios = density(mobius_add(-c, points), epsilon) - density(mobius_add(-other, points), epsilon)
    return float(ratios.max())


def centre_pairs(dim: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(dim)
    centres = ball_points(rng, rng.uniform(0, 4, 20), dim)
    return list(zip(centres[::2], centres[1::2], strict=True))


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_translation_preserves_distance_and_volume(dim: int) -> None:
    step = 1e-5
    for c, z in centre_pairs(dim):
        moved = mobius_add(c, z)
        assert distance(c, moved) == pytest.approx(distance(np.zeros(dim), z), rel=1e-7)
        columns = [
            (mobius_add(c, z + step * axis) - mobius_add(c, z - step * axis)) / (2 * step)
            for axis in np.eye(dim)
        ]
        stretch = ((1 - moved @ moved) / (1 - z @ z)) ** dim
        assert abs(np.linalg.det(np.array(columns))) == pytest.approx(stretch, rel=1e-4)


@pytest.mark.parametrize(("dim", "epsilon"), [(1, 0.1), (2, 1.5), (3, 3.0), (10, 10.0)])
def test_riemannian_laplace_reaches_but_never_exceeds_epsilon(dim: int, epsilon: float) -> None:
    for c, other in centre_pairs(dim):
        bound = epsilon * distance(c, other)
        found = largest_log_ratio(log_riemannian, epsilon, c, other)
        assert bound * (1 - 1e-6) <= found <= bound * (1 + 1e-6)


@pytest.mark.parametrize(("dim", "epsilon"), [(1, 0.1), (2, 1.5), (3, 1.0), (10, 10.0)])
def test_density_of_equation_7_certifies_epsilon_plus_dim_and_no_less(
    dim: int, epsilon: float
) -> None:
    for c, other in centre_pairs(dim):
        bound = (epsilon + dim) * distance(c, other)
        found = largest_log_ratio(log_lebesgue, epsilon, c, other)
        assert bound * 0.99 <= found <= bound * (1 + 1e-6)


def test_counter_example_to_the_claim_of_the_paper() -> None:
    claimed = float(distance(*PAIR))
    assert claimed == pytest.approx(2.0455)
    found = largest_log_ratio(log_lebesgue, 1.0, *PAIR)
    assert 8.163 <= found <= 4 * claimed == pytest.approx(8.182)


def event_counts(radii: Array, width: float) -> tuple[int, int]:
    """Count outputs of either centre that fall near the boundary point beyond the first one."""
    noise = ball_points(keyed_generator(1), radii, 3)
    pole = np.array([1.0, 0.0, 0.0])
    first, second = (
        int((np.linalg.norm(mobius_add(centre, half) - pole, axis=1) < width).sum())
        for centre, half in zip(PAIR, np.split(noise, 2), strict=True)
    )
    return first, second


def test_released_points_break_the_claim_of_the_paper() -> None:
    radii = lebesgue_radius(keyed_generator(2), 2 * DRAWS, 3, 1.0)
    first, second = event_counts(radii, width=0.2)
    least = np.log(clopper_pearson(first, DRAWS)[0] / clopper_pearson(second, DRAWS)[1])
    assert least > 2 * 2.0455
    assert np.log(first / second) < 4 * 2.0455


@pytest.mark.parametrize("width", [0.2, 0.5, 1.0])
def test_released_points_of_riemannian_laplace_keep_the_claim(width: float) -> None:
    radii = riemannian_laplace_radius(keyed_generator(3), 2 * DRAWS, 3, 3.0)
    first, second = event_counts(radii, width)
    bound = 3.0 * 2.0455
    assert np.log(clopper_pearson(first, DRAWS)[0] / clopper_pearson(second, DRAWS)[1]) <= bound
    assert np.log(first / second) > bound / 2


def test_euclidean_addition_has_no_bound_at_all() -> None:
    c, other = PAIR
    noise = ball_points(keyed_generator(4), lebesgue_radius(keyed_generator(5), DRAWS, 3, 1.0), 3)
    # Noise lives in the open unit ball, so from `other` every output is within 1 of it.
    assert (np.linalg.norm(noise, axis=1) < 1).all()
    impossible = np.linalg.norm(c + noise - other, axis=1) > 1
    assert clopper_pearson(int(impossible.sum()), DRAWS)[0] > 0.1

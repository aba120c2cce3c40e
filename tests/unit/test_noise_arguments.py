"""Samplers: shapes, dtypes, refusals and the edges of their arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.noise import (
    ball_points,
    lebesgue_radius,
    metropolis_hastings,
    multivariate_laplace,
    riemannian_laplace_radius,
    uniform_directions,
)
from hf_dxprivacy.randomness import keyed_generator

# Each as a function of size and dim, with ε = 400 where there is one.
SAMPLERS: dict[str, Callable[..., np.ndarray]] = {
    "sphere": lambda size, dim: uniform_directions(keyed_generator(0), size, dim),
    "laplace": lambda size, dim: multivariate_laplace(keyed_generator(0), size, dim, 400.0),
    "riemannian": lambda size, dim: riemannian_laplace_radius(keyed_generator(0), size, dim, 400.0),
    "lebesgue": lambda size, dim: lebesgue_radius(keyed_generator(0), size, dim, 400.0),
    "walk": lambda size, dim: metropolis_hastings(keyed_generator(0), size, dim, 400.0, burn_in=9),
}
RADII = ("riemannian", "lebesgue")
WITH_EPSILON: list[Callable[..., np.ndarray]] = [
    multivariate_laplace,
    riemannian_laplace_radius,
    lebesgue_radius,
    metropolis_hastings,
]


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("dim", [1, 2, 300])
@pytest.mark.parametrize("name", SAMPLERS)
def test_shape(name: str, size: int, dim: int) -> None:
    values = SAMPLERS[name](size, dim)
    assert values.shape == ((size,) if name in RADII else (size, dim))
    assert values.dtype == (np.float32 if name == "laplace" else np.float64)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("dtype", ["float32", np.float64, np.dtype("float32")])
def test_dtype_is_honoured(dtype: Any) -> None:
    rng = keyed_generator(0)
    assert uniform_directions(rng, 3, 2, dtype).dtype == np.dtype(dtype)
    assert multivariate_laplace(rng, 3, 2, 1.0, dtype).dtype == np.dtype(dtype)


def test_other_dtype_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="dtype to be one of 'float32', 'float64'"):
        uniform_directions(keyed_generator(0), 3, 2, np.float16)
    with pytest.raises(InvalidValueError, match="got dtype='int64'"):
        multivariate_laplace(keyed_generator(0), 3, 2, 1.0, np.int64)


@pytest.mark.parametrize("name", SAMPLERS)
def test_bad_size_and_dim_are_refused(name: str) -> None:
    with pytest.raises(InvalidValueError, match="size >= 0, got size=-1"):
        SAMPLERS[name](-1, 3)
    with pytest.raises(InvalidTypeError, match=r"size to be an integer, got size=1\.5"):
        SAMPLERS[name](1.5, 3)
    with pytest.raises(InvalidValueError, match="dim >= 1, got dim=0"):
        SAMPLERS[name](4, 0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("sampler", WITH_EPSILON)
def test_bad_epsilon_is_refused(sampler: Callable[..., np.ndarray], epsilon: float) -> None:
    with pytest.raises(InvalidValueError, match=f"epsilon.*got epsilon={epsilon}"):
        sampler(keyed_generator(0), 4, 1, epsilon)


@pytest.mark.parametrize("sampler", WITH_EPSILON)
def test_epsilon_of_another_type_is_refused(sampler: Callable[..., np.ndarray]) -> None:
    with pytest.raises(InvalidTypeError, match="epsilon to be a number, got epsilon='1'"):
        sampler(keyed_generator(0), 4, 1, "1")


@pytest.mark.parametrize("epsilon", [0.5, 8.99, 9.0])
def test_riemannian_floor_is_named_with_its_remedies(epsilon: float) -> None:
    with pytest.raises(InvalidValueError, match=rf"expected 9 < epsilon.*={epsilon}") as caught:
        riemannian_laplace_radius(keyed_generator(0), 4, 10, epsilon)
    message = str(caught.value)
    for remedy in ("dim-1 = 9", "larger epsilon", "lower dimension", "exponential mechanism"):
        assert remedy in message


def test_walk_refuses_a_bad_step_and_burn_in() -> None:
    with pytest.raises(InvalidValueError, match="step > 0 and finite, got step=0"):
        metropolis_hastings(keyed_generator(0), 4, 2, 1.0, step=0.0)
    with pytest.raises(InvalidValueError, match="burn_in >= 0, got burn_in=-1"):
        metropolis_hastings(keyed_generator(0), 4, 2, 1.0, burn_in=-1)


def test_a_zero_gaussian_vector_is_drawn_again() -> None:
    rng = np.random.default_rng(0)
    # In one dimension a float32 normal is exactly 0 about once in 2^23 draws.
    for _ in range(100):
        state = rng.bit_generator.state
        if (rng.standard_normal(1_000_000, dtype=np.float32) == 0).any():
            break
    else:
        pytest.fail("no zero came up: the test tests nothing")
    rng.bit_generator.state = state
    directions = uniform_directions(rng, 1_000_000, 1, np.float32)
    np.testing.assert_allclose(np.abs(directions), 1, rtol=3e-7)


@pytest.mark.parametrize("dim", [1, 2, 300])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
def test_extreme_epsilon_gives_finite_noise_of_the_right_size(dim: int, epsilon: float) -> None:
    rng = keyed_generator(1)
    norms = np.linalg.norm(multivariate_laplace(rng, 2000, dim, epsilon), axis=1)
    assert 0.8 * dim < epsilon * norms.mean() < 1.2 * dim
    for radii in (
        lebesgue_radius(rng, 2000, dim, epsilon),
        riemannian_laplace_radius(rng, 2000, dim, dim - 1 + epsilon),
    ):
        assert 0 < radii.min()
        assert radii.max() < np.inf


def test_points_far_out_stay_in_the_closed_ball() -> None:
    points = ball_points(keyed_generator(2), np.array([0.0, 1.0, 38.0, 1e5, 1e300]), 7)
    norms = np.linalg.norm(points, axis=1)
    assert norms[0] == 0
    assert norms[1] == pytest.approx(np.tanh(0.5), rel=1e-15)
    np.testing.assert_allclose(norms[2:], 1, rtol=4e-16)


def test_same_stream_gives_the_same_noise() -> None:
    for sampler in WITH_EPSILON:
        first, again = (sampler(keyed_generator(3), 50, 2, 7.0) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert (first != sampler(keyed_generator(4), 50, 2, 7.0)).all()

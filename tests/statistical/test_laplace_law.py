"""Multivariate Laplace: the radius, the direction, and their independence."""

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from laws import Array, Cdf, RejectedError, check_independent, check_law, check_law_and_scale

SIZE = 40_000
CASES = [(1, 0.1), (2, 1.0), (2, 1e-3), (10, 1e6), (50, 10.0), (300, 1e-3), (300, 40.0)]
DTYPES = ["float32", "float64"]


def noise(dim: int, epsilon: float, dtype: str = "float32") -> Array:
    rng = keyed_generator(0, dim, str(epsilon))
    return multivariate_laplace(rng, SIZE, dim, epsilon, dtype).astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("dim", "epsilon"), CASES)
def test_radius_is_gamma(dim: int, epsilon: float, dtype: str) -> None:
    radii = np.linalg.norm(noise(dim, epsilon, dtype), axis=1)
    check_law_and_scale(radii, stats.gamma(dim, scale=1 / epsilon).cdf)


@pytest.mark.parametrize("shape", [299, 301])
def test_radius_of_another_dimension_is_rejected(shape: int) -> None:
    radii = np.linalg.norm(noise(300, 40.0), axis=1)
    with pytest.raises(RejectedError, match=f"n={SIZE}"):
        check_law(radii, stats.gamma(shape, scale=1 / 40).cdf)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("dim", "epsilon"), [case for case in CASES if case[0] > 1])
def test_direction_is_uniform(dim: int, epsilon: float, dtype: str) -> None:
    vectors = noise(dim, epsilon, dtype)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    slanted = np.random.default_rng(99).standard_normal(dim)
    for axis in (np.eye(dim)[0], slanted / np.linalg.norm(slanted)):
        along = directions @ axis
        check_law_and_scale(along**2, stats.beta(0.5, (dim - 1) / 2).cdf)
        check_law(np.sign(along) * along**2 / 2 + 0.5, _signed_square(dim))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_dimension_is_the_laplace_law(dtype: str) -> None:
    values = noise(1, 0.1, dtype)[:, 0]
    check_law(values, stats.laplace(scale=10).cdf)


@pytest.mark.parametrize(("dim", "epsilon"), CASES)
def test_radius_and_direction_are_independent(dim: int, epsilon: float) -> None:
    vectors = noise(dim, epsilon)
    radii = np.linalg.norm(vectors, axis=1)
    along = vectors[:, 0] / radii
    check_independent(radii, along, bins=2 if dim == 1 else 8)
    if dim > 1:
        check_independent(radii, np.abs(along))


@pytest.mark.parametrize(("dim", "epsilon"), CASES)
def test_rows_are_independent(dim: int, epsilon: float) -> None:
    vectors = noise(dim, epsilon)
    for values in (np.linalg.norm(vectors, axis=1), vectors[:, 0]):
        check_independent(values[0::2], values[1::2])


def test_batches_are_independent() -> None:
    rng = keyed_generator(3)
    first, second = (multivariate_laplace(rng, SIZE, 5, 2.0) for _ in range(2))
    check_independent(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    check_independent(first[:, 0], second[:, 0])


def _signed_square(dim: int) -> Cdf:
    square = stats.beta(0.5, (dim - 1) / 2)

    def cdf(position: Array) -> Array:
        signed = 2 * position - 1
        return 0.5 + 0.5 * np.sign(signed) * square.cdf(np.abs(signed))

    return cdf

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
def test_radius_is_gamma_direction_uniform_and_rows_independent(
    dim: int, epsilon: float, dtype: str
) -> None:
    # All of one draw, which takes longer than what is made of it.
    vectors = noise(dim, epsilon, dtype)
    radii = np.linalg.norm(vectors, axis=1)
    check_law_and_scale(radii, stats.gamma(dim, scale=1 / epsilon).cdf)
    if dim == 300:
        for shape in (299, 301):
            with pytest.raises(RejectedError, match=f"n={SIZE}"):
                check_law(radii, stats.gamma(shape, scale=1 / epsilon).cdf)
    if dim == 1:
        check_law(vectors[:, 0], stats.laplace(scale=1 / epsilon).cdf)
    else:
        check_directions(vectors / radii[:, None])
    check_independent(radii, vectors[:, 0] / radii, bins=2 if dim == 1 else 8)
    if dim > 1:
        check_independent(radii, np.abs(vectors[:, 0] / radii))
    for values in (radii, vectors[:, 0]):
        check_independent(values[0::2], values[1::2])


def check_directions(directions: Array) -> None:
    dim = directions.shape[1]
    slanted = np.random.default_rng(99).standard_normal(dim)
    for axis in (np.eye(dim)[0], slanted / np.linalg.norm(slanted)):
        along = directions @ axis
        check_law_and_scale(along**2, stats.beta(0.5, (dim - 1) / 2).cdf)
        check_law(np.sign(along) * along**2 / 2 + 0.5, _signed_square(dim))


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

"""Directions: uniform on the sphere, independent of each other."""

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.noise import uniform_directions
from hf_dxprivacy.randomness import keyed_generator
from laws import (
    Array,
    RejectedError,
    check_independent,
    check_law,
    check_law_and_scale,
    check_rate,
    check_uncorrelated,
)

SIZE = 40_000
DIMS = [2, 3, 10, 300]
DTYPES = ["float32", "float64"]


def directions(dim: int, dtype: str = "float64", seed: int = 0) -> Array:
    return uniform_directions(keyed_generator(seed, dim), SIZE, dim, dtype)


def axes(dim: int) -> list[Array]:
    """Return unit vectors to look along: two of the basis, and a slanted one."""
    slanted = np.random.default_rng(99).standard_normal(dim)
    return [np.eye(dim)[0], np.eye(dim)[-1], slanted / np.linalg.norm(slanted)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, *DIMS])
def test_norm_is_one_squares_are_beta_and_signs_fair_coins(dim: int, dtype: str) -> None:
    vectors = directions(dim, dtype)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert np.abs(norms - 1).max() < 4 * np.finfo(dtype).eps
    for axis in axes(dim):
        along = vectors @ axis
        check_rate(int((along > 0).sum()), SIZE, 0.5)
        if dim > 1:
            check_law_and_scale(along**2, stats.beta(0.5, (dim - 1) / 2).cdf)
            check_uncorrelated(along, along**2)


def test_angle_in_the_plane_is_uniform() -> None:
    x, y = directions(2).T
    check_law(np.arctan2(y, x) / (2 * np.pi) + 0.5, stats.uniform.cdf)


@pytest.mark.parametrize("dim", [1, *DIMS])
def test_coordinates_are_uncorrelated_and_rows_independent(dim: int) -> None:
    vectors = directions(dim)
    if dim > 1:
        check_uncorrelated(vectors[:, 0], vectors[:, 1])
        check_uncorrelated(vectors[:, 0], vectors[:, -1])
    along = vectors @ axes(dim)[-1]
    check_independent(along[0::2], along[1::2], bins=2 if dim == 1 else 8)


def test_batches_are_independent() -> None:
    rng = keyed_generator(7)
    first, second = (uniform_directions(rng, SIZE, 3)[:, 0] for _ in range(2))
    check_independent(first, second)


def test_normalised_cube_is_rejected() -> None:
    cube = np.random.default_rng(8).uniform(-1, 1, (SIZE, 3))
    cube /= np.linalg.norm(cube, axis=1, keepdims=True)
    with pytest.raises(RejectedError, match=f"n={SIZE}"):
        check_law(cube[:, 0] ** 2, stats.beta(0.5, 1).cdf)

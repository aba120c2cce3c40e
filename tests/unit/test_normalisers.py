"""ln Z of many slopes at once, against sums of exponentials in extended precision."""

import math

import numpy as np
import pytest

from hf_dxprivacy.mechanisms.levels import (
    DIFFERENCE_ERROR,
    STEPS_PER_OCTAVE,
    LogPartition,
    _coefficients,
    grid_value,
)
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.distances import Distances

# A part of what a difference of two ln Z is raised by, which has to cover the rounding too.
TOLERANCE = DIFFERENCE_ERROR / 8


def naive(space: EmbeddingSpace, slope: float, exponent: float) -> np.ndarray:
    distances = space.distances(np.arange(len(space))).astype(np.longdouble)
    sums = np.exp(-np.minimum(slope * distances, exponent)).sum(axis=1)
    return np.log(sums).astype(float)


@pytest.mark.parametrize("metric", ["euclidean", "poincare"])
@pytest.mark.parametrize("exponent", [1e-9, 0.3, 13.1, 240.0])
@pytest.mark.parametrize("steps", [[0], [-33, 5, 6, 128]])
def test_sums_are_those_of_exponentials(
    euclidean_space: EmbeddingSpace,
    poincare_space: EmbeddingSpace,
    metric: str,
    exponent: float,
    steps: list[int],
) -> None:
    space = {"euclidean": euclidean_space, "poincare": poincare_space}[metric]
    distances = Distances(space.vectors, space.metric, space.scale)
    found = LogPartition(distances, math.exp(-exponent), 0.37, steps).log_sums(np.arange(500))
    assert found.shape == (500, len(steps))
    for column, step in enumerate(steps):
        expected = naive(space, 0.37 * grid_value(step), exponent)
        np.testing.assert_allclose(found[:, column], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("gap", [0.0, 1e-18, 1e-12, 1e-6])
def test_words_that_coincide_nearly_are_counted_fully(gap: float) -> None:
    vectors = np.zeros((40, 2))
    vectors[20:, 0] = gap
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(40)], vectors)
    found = LogPartition(Distances(vectors, "euclidean", 1.0), 1e-6, 1.0, [-64, 0, 64])
    for column, slope in enumerate((0.25, 1.0, 4.0)):
        np.testing.assert_allclose(
            found.log_sums(np.arange(40))[:, column], naive(space, slope, 13.8), rtol=0, atol=1e-14
        )


def test_truncation_is_exact_at_a_radius_that_many_distances_share() -> None:
    # On a line of equal steps, γ of the last slope is five steps: a distance of many pairs.
    vectors = np.arange(30.0)[:, None]
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(30)], vectors)
    exponent = 9.0
    found = LogPartition(
        Distances(vectors, "euclidean", 1.0), math.exp(-exponent), exponent / 5, [-32, -7, 0]
    )
    for column, step in enumerate((-32, -7, 0)):
        expected = naive(space, exponent / 5 * grid_value(step), exponent)
        np.testing.assert_allclose(
            found.log_sums(np.arange(30))[:, column], expected, rtol=0, atol=1e-14
        )


@pytest.mark.parametrize("size", [1_000, 33_860, 1_000_000])
@pytest.mark.parametrize("exponent", [5.0, 17.3, 240.0])
def test_interpolation_is_far_below_the_margin_in_the_worst_case(
    size: int, exponent: float
) -> None:
    # The worst case has all other words at one distance.
    bins = 40 * STEPS_PER_OCTAVE
    places = np.linspace(-1, 1, 41)
    powers = np.vander(places, _coefficients(exponent, 1).shape[0], increasing=True)
    fitted = powers @ _coefficients(exponent, bins)
    position = np.arange(-bins, 0) + (1 + places[:, None]) / 2
    weights = np.exp(-exponent * 2.0 ** (position / STEPS_PER_OCTAVE))
    error = size * np.abs(fitted - weights) / (1 + size * weights)
    print(f"V={size}, L={exponent}: ln Z off by {error.max():.2e} at most")
    assert error.max() < TOLERANCE

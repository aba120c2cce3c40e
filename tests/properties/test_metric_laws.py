"""The laws of a metric and of Möbius addition, for points of every magnitude up to the edge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hf_dxprivacy.spaces import EmbeddingSpace, metrics

Points = NDArray[np.float64]

# How near to the boundary, and to the origin, a point is at most.
EDGE, CORE = -15.0, -15.0


@st.composite
def balls(draw: st.DrawFn, count: int) -> Points:
    """Distinct directions and log-uniform gaps from the boundary, or norms, by turns."""
    dim = draw(st.sampled_from([1, 2, 3, 10, 50]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    directions = rng.normal(size=(count, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    exponents = draw(st.lists(st.floats(EDGE, 0.0), min_size=count, max_size=count))
    inward = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    tiny = 10.0 ** np.array(exponents)
    points = directions * np.where(inward, tiny, 1.0 - tiny)[:, None]
    # Rounding may have put a point on the boundary or beyond.
    outside = metrics.boundary_gap(points) <= 0
    points[outside] *= 1.0 - 2.0**-50
    return points


@st.composite
def spaces(draw: st.DrawFn) -> EmbeddingSpace:
    """A dozen words under either metric, some of them close to another or equal to it."""
    points = draw(balls(12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    points[8] = points[0]
    points[9:11] = points[1:3] * (1.0 - 10.0 ** rng.uniform(-12, -1, (2, 1)))
    metric = draw(st.sampled_from(["euclidean", "poincare"]))
    scale = 10.0 ** draw(st.floats(-3, 3))
    words = [f"w{row}" for row in range(12)]
    if metric == "poincare":
        return EmbeddingSpace.from_vectors(words, points, metric=metric, scale=scale)
    offset = draw(st.sampled_from([0.0, 1.0, 100.0]))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    return EmbeddingSpace.from_vectors(words, ((points + offset) * scale).astype(dtype))


@given(spaces())
@settings(max_examples=150, deadline=None)
def test_distances_are_symmetric_and_zero_only_between_equal_vectors(
    space: EmbeddingSpace,
) -> None:
    distances = space.distances(np.arange(len(space)))
    np.testing.assert_allclose(distances, distances.T, rtol=1e-9)
    equal = (space.vectors[:, None] == space.vectors).all(axis=2)
    np.testing.assert_array_equal(distances == 0, equal)
    assert (distances >= 0).all()
    assert np.isfinite(distances).all()


@given(spaces())
@settings(max_examples=150, deadline=None)
def test_distances_obey_the_triangle_inequality(space: EmbeddingSpace) -> None:
    distances = space.distances(np.arange(len(space)))
    detours = distances[:, :, None] + distances[None, :, :]
    assert (distances[:, None, :] <= detours * (1 + 1e-9)).all()


@given(spaces())
@settings(max_examples=150, deadline=None)
def test_matrix_products_agree_with_differences_pair_by_pair(space: EmbeddingSpace) -> None:
    ids = np.arange(-1, len(space))
    rows = space.distances(ids)
    pairs = [space.pair_distances(np.full(len(space), a), np.arange(len(space))) for a in ids]
    np.testing.assert_allclose(rows, np.array(pairs), rtol=1e-9)


@given(spaces())
@settings(max_examples=100, deadline=None)
def test_no_two_words_are_farther_apart_than_two_radii(space: EmbeddingSpace) -> None:
    distances = space.distances(np.arange(len(space)))
    assert distances.max() <= 2 * space.radius * (1 + 1e-9)
    to_center = space.pair_distances(np.arange(len(space)), np.full(len(space), -1))
    assert to_center.max() == space.radius


@given(spaces(), st.floats(-2, 2))
@settings(max_examples=100, deadline=None)
def test_rescaling_multiplies_distances(space: EmbeddingSpace, exponent: float) -> None:
    factor = 10.0**exponent
    ids = np.arange(len(space))
    largest = float(np.abs(space.vectors).max())
    rounding = 0.0 if space.metric == "poincare" else 2e-7 * largest * factor * space.dim
    np.testing.assert_allclose(
        space.rescale(factor).distances(ids),
        factor * space.distances(ids),
        rtol=1e-9,
        atol=rounding,
    )


def rounding_of_distance(*points: Points) -> Points:
    """What rounding the coordinates of each point by one unit changes a distance by.

    Near the boundary the metric is stretched by 2/(1−‖u‖²), so the last digit of a coordinate is
    a step of that length: no formula can do better with float64 coordinates.
    """
    return sum(
        (8e-16 / metrics.boundary_gap(p) for p in points), start=np.zeros(len(points[0]))
    )  # fmt: skip


@given(balls(12))
@settings(max_examples=200, deadline=None)
def test_mobius_addition_is_an_isometry(points: Points) -> None:
    center, u, v = points[:4], points[4:8], points[8:]
    moved_u, moved_v = metrics.mobius_add(center, u), metrics.mobius_add(center, v)
    inside = (metrics.boundary_gap(moved_u) > 1e-14) & (metrics.boundary_gap(moved_v) > 1e-14)
    moved_u, moved_v, u, v = moved_u[inside], moved_v[inside], u[inside], v[inside]
    difference = metrics.pair_distances(moved_u, moved_v) - metrics.pair_distances(u, v)
    bound = 20 * rounding_of_distance(moved_u, moved_v, u, v) + 1e-12
    assert (np.abs(difference) <= bound).all()


@given(balls(12), st.floats(0.01, 0.9))
@settings(max_examples=200, deadline=None)
def test_mobius_addition_is_an_isometry_to_tight_tolerance_away_from_the_edge(
    points: Points, radius: float
) -> None:
    points = points * radius
    center, u, v = points[:4], points[4:8], points[8:]
    moved = metrics.pair_distances(metrics.mobius_add(center, u), metrics.mobius_add(center, v))
    np.testing.assert_allclose(moved, metrics.pair_distances(u, v), rtol=1e-9, atol=1e-12)


@given(balls(8))
@settings(max_examples=200, deadline=None)
def test_mobius_addition_carries_the_origin_to_its_center_and_back(points: Points) -> None:
    center, u = points[:4], points[4:]
    zero = np.zeros_like(center)
    np.testing.assert_allclose(metrics.mobius_add(center, zero), center, rtol=1e-15)
    np.testing.assert_allclose(metrics.mobius_add(zero, u), u, rtol=1e-15)
    np.testing.assert_array_equal(metrics.mobius_add(center, -center), zero)
    moved = metrics.mobius_add(center, u)
    if (metrics.boundary_gap(moved) > 1e-14).all():
        back = metrics.mobius_add(-center, moved)
        gaps = metrics.boundary_gap(center) * metrics.boundary_gap(moved)
        assert (np.abs(back - u).max(axis=1) <= 1e-14 / gaps).all()


@given(balls(8))
@settings(max_examples=200, deadline=None)
def test_mobius_sums_stay_in_the_closed_ball(points: Points) -> None:
    norms = np.linalg.norm(points[4:], axis=1, keepdims=True)
    boundary = np.where(norms > 0, points[4:], 1.0)
    boundary /= np.linalg.norm(boundary, axis=1, keepdims=True)
    for v in (points[4:], boundary, -points[:4]):
        result = metrics.mobius_add(points[:4], v)
        assert np.isfinite(result).all()
        assert (np.linalg.norm(result, axis=1) <= 1 + 1e-15).all()


@given(balls(6))
@settings(max_examples=200, deadline=None)
def test_lorentz_images_satisfy_the_equation_of_the_hyperboloid(points: Points) -> None:
    image = metrics.lorentz_image(points)
    assert image.shape == (6, points.shape[1] + 1)
    time, place = image[:, 0], image[:, 1:]
    # −t² + ‖x‖² = −1, as a statement about (t−‖x‖)(t+‖x‖) relative to t².
    form = np.sum(place**2, axis=1) - time**2
    assert (np.abs(form + 1) <= 1e-14 * time**2).all()
    np.testing.assert_allclose(place / (1 + time)[:, None], points, rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_balls_reach_the_edge_and_the_core(dim: int) -> None:
    """The strategy above is as wide as its name says."""
    edge = np.zeros((1, dim))
    edge[0, 0] = 1.0 - 10.0**EDGE
    assert 0 < metrics.boundary_gap(edge)[0] < 1e-14
    assert metrics.pair_distances(edge, -edge)[0] > 60

"""Nearest vectors, against comparing all distances in extended precision."""

from collections.abc import Callable

import numpy as np
import pytest

from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import nearest_euclidean, nearest_poincare
from hf_dxprivacy.spaces.metrics import boundary_gap


def naive_euclidean(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    queries, vectors = (x.astype(np.float32).astype(np.longdouble) for x in (queries, vectors))
    return np.array([((vectors - query) ** 2).sum(axis=1).argmin() for query in queries])


def naive_poincare(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    queries, points = queries.astype(np.longdouble), points.astype(np.longdouble)
    gaps = 1 - (points**2).sum(axis=1)
    return np.array([(((points - q) ** 2).sum(axis=1) / gaps).argmin() for q in queries])


def poincare(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    return nearest_poincare(queries, points, boundary_gap(points))


def in_small_calls(queries: np.ndarray, vectors: np.ndarray, size: int) -> np.ndarray:
    """Search for a few queries at a time."""
    search = nearest_euclidean if vectors.dtype == np.float32 else poincare
    parts = [search(queries[k : k + size], vectors) for k in range(0, len(queries), size)]
    return np.concatenate(parts)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 64, 65, 700])
@pytest.mark.parametrize("dim", [1, 8, 300])
def test_nearest_euclidean(size: int, dim: int) -> None:
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(size, dim)).astype(np.float32)
    queries = rng.normal(size=(60, dim)) * rng.choice([0.1, 1, 10], size=(60, 1))
    found = nearest_euclidean(queries, vectors)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, naive_euclidean(queries, vectors))
    np.testing.assert_array_equal(nearest_euclidean(vectors, vectors), np.arange(size))


@pytest.mark.parametrize("offset", [1e2, 1e3, -1e4])
def test_common_offset_does_no_harm(offset: float) -> None:
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(500, 20)) + offset).astype(np.float32)
    queries = (rng.normal(size=(200, 20)) + offset).astype(np.float32)
    expected = naive_euclidean(queries, vectors)
    np.testing.assert_array_equal(nearest_euclidean(queries, vectors), expected)
    np.testing.assert_array_equal(in_small_calls(queries, vectors, 7), expected)


@pytest.mark.parametrize("length", [1e2, 1e4, 1e6])
def test_queries_far_outside(length: float) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(800, 20)).astype(np.float32)
    queries = (rng.normal(size=(200, 20)) * length).astype(np.float32)
    expected = naive_euclidean(queries, vectors)
    np.testing.assert_array_equal(nearest_euclidean(queries, vectors), expected)
    np.testing.assert_array_equal(in_small_calls(queries, vectors, 1), expected)


@pytest.mark.parametrize("length", [1e10, 1e20, 1e32])
@pytest.mark.parametrize("size", [3, 4, 60, 500])
def test_queries_beyond_single_precision_find_what_lies_in_their_direction(
    size: int, length: float
) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(size, 5)).astype(np.float32)
    directions = rng.normal(size=(200, 5)).astype(np.float32)
    queries = directions.astype(np.float64) * length
    expected = (queries.astype(np.float32).astype(np.float64) @ vectors.T).argmax(axis=1)
    np.testing.assert_array_equal(nearest_euclidean(queries, vectors), expected)


@pytest.mark.parametrize("copies", [2, 5, 70])
def test_first_of_equal_vectors_wins(copies: int) -> None:
    rng = np.random.default_rng(4)
    distinct = rng.normal(size=(30, 6)).astype(np.float32)
    vectors = np.tile(distinct, (copies, 1))
    queries = rng.normal(size=(300, 6))
    expected = naive_euclidean(queries, distinct)
    np.testing.assert_array_equal(nearest_euclidean(queries, vectors), expected)
    np.testing.assert_array_equal(in_small_calls(queries, vectors, 1), expected)
    ball = vectors.astype(np.float64) * 0.2
    inside = queries * 0.2
    expected = naive_poincare(inside, ball[:30])
    np.testing.assert_array_equal(poincare(inside, ball), expected)
    np.testing.assert_array_equal(in_small_calls(inside, ball, 1), expected)


def test_first_of_equally_near_vectors_wins() -> None:
    axis = np.arange(-4.0, 5.0, dtype=np.float32)
    lattice = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    lattice = lattice[np.random.default_rng(5).permutation(len(lattice))]
    # Eight corners are exactly as near to the middle of a cell.
    queries = lattice[:200] + np.float32(0.5)
    expected = naive_euclidean(queries, lattice)
    np.testing.assert_array_equal(nearest_euclidean(queries, lattice), expected)
    np.testing.assert_array_equal(in_small_calls(queries, lattice, 3), expected)


@pytest.mark.parametrize("search", [nearest_euclidean, poincare])
def test_no_queries_find_nothing(search: Callable[..., np.ndarray]) -> None:
    vectors = np.eye(3, dtype=np.float32 if search is nearest_euclidean else np.float64) * 0.5
    found = search(np.empty((0, 3)), vectors)
    assert found.shape == (0,)
    assert found.dtype == np.int64


@pytest.mark.parametrize("size", [1, 2, 500])
@pytest.mark.parametrize("dim", [1, 2, 10])
def test_nearest_poincare(size: int, dim: int) -> None:
    rng = keyed_generator(size, dim)
    directions = rng.normal(size=(size + 300, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    everywhere = directions * np.tanh(rng.uniform(0, 8, size=(size + 300, 1)) / 2)
    points, queries = everywhere[:size], everywhere[size:]
    expected = naive_poincare(queries, points)
    np.testing.assert_array_equal(poincare(queries, points), expected)
    np.testing.assert_array_equal(in_small_calls(queries, points, 7), expected)
    np.testing.assert_array_equal(poincare(points, points), np.arange(size))


def test_queries_on_the_boundary() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(400, 3))
    points *= (
        np.tanh(rng.uniform(0, 6, size=(400, 1)) / 2) / np.linalg.norm(points, axis=1)[:, None]
    )
    queries = rng.normal(size=(300, 3))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    queries[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    np.testing.assert_array_equal(poincare(queries, points), naive_poincare(queries, points))


@pytest.mark.parametrize("depth", [5.0, 15.0, 20.0, 25.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_close_together_near_the_boundary(depth: float, dtype: type) -> None:
    if dtype is np.float32 and depth > 12.0:
        # Single precision has no more room inside the ball.
        depth = 12.0
    rng = np.random.default_rng(7)
    rays = rng.normal(size=(20, 4))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    rays = np.tile(rays, (15, 1))
    points, queries = (
        rays * np.tanh((depth + rng.uniform(-2, 2, size=(300, 1))) / 2) for _ in range(2)
    )
    points = points.astype(dtype)
    found = poincare(queries, points)
    np.testing.assert_array_equal(found, naive_poincare(queries, points))
    # One point at the very edge makes the others no less certain.
    points[-1] = [1 - 2.0 ** (-24 if dtype is np.float32 else -53), 0, 0, 0]
    np.testing.assert_array_equal(poincare(queries, points), naive_poincare(queries, points))

"""The two least distances in blocks, and the bound that says when float32 decides rightly."""

from collections.abc import Iterator

import faiss
import numpy as np
import pytest

from hf_dxprivacy.search import knn, nearest_euclidean
from hf_dxprivacy.search.knn import rounding


@pytest.fixture(params=[1, 3])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cut everything into many blocks, for one thread and for three."""
    monkeypatch.setattr(knn, "QUERIES", 7)
    monkeypatch.setattr(knn, "VECTORS", 16)
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(request.param)
    yield
    assert faiss.omp_get_max_threads() == request.param
    faiss.omp_set_num_threads(before)


def squared_distances(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return ((queries[:, None].astype(np.float64) - vectors) ** 2).sum(axis=2)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [2, 16, 17, 48, 100])
@pytest.mark.parametrize("copies", [1, 2])
def test_the_nearest_and_how_near_the_next_one_is(size: int, copies: int) -> None:
    rng = np.random.default_rng(size)
    vectors = np.tile(rng.normal(size=(size, 5)).astype(np.float32), (copies, 1))
    queries = rng.normal(size=(40, 5)).astype(np.float32)
    found, margins = knn.ExactSearch(vectors)._shortlist(queries, 1)
    squared = squared_distances(queries, vectors)
    least = np.take_along_axis(squared, found, axis=1)[:, 0]
    squared.sort(axis=1)
    np.testing.assert_allclose(least, squared[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(margins, squared[:, 1] - squared[:, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_list_and_how_near_the_next_one_is(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(100, 5)).astype(np.float32)
    queries = rng.normal(size=(40, 5)).astype(np.float32)
    monkeypatch.setattr(knn, "BLOCK_BYTES", rows * 4 * len(vectors))
    found, margins = knn.ExactSearch(vectors)._shortlist(queries, 64)
    squared = squared_distances(queries, vectors)
    np.testing.assert_array_equal(np.sort(found), np.sort(squared.argsort(axis=1)[:, :64]))
    squared.sort(axis=1)
    np.testing.assert_allclose(margins, squared[:, 64] - squared[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("scale", [1e-25, 1e-19, 1.0, 1e18, 1e19, 1e22])
def test_squares_that_single_precision_does_not_hold(scale: float) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(90, 6)).astype(np.float32) * np.float32(scale)
    queries = np.concatenate([vectors, vectors + vectors[::-1] * np.float32(0.3)])
    expected = squared_distances(queries, vectors).argmin(axis=1)
    np.testing.assert_array_equal(nearest_euclidean(queries, vectors), expected)


def test_a_distance_that_overflows_is_not_taken_for_a_large_one() -> None:
    vectors = np.array([[1.9e19, 0.0], [1e18, 0.0], [1e10, 0.0]], dtype=np.float32)
    queries = np.array([[1.8e19, 0.0], [2e18, 0.0]])
    assert nearest_euclidean(queries, vectors).tolist() == [0, 1]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("copies", [1, 2, 90])
def test_equal_vectors_in_several_blocks(copies: int) -> None:
    rng = np.random.default_rng(3)
    distinct = rng.normal(size=(30, 6)).astype(np.float32)
    queries = rng.normal(size=(50, 6))
    found = nearest_euclidean(queries, np.tile(distinct, (copies, 1)))
    expected = squared_distances(queries.astype(np.float32), distinct).argmin(axis=1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dim", [1, 50, 300, 1500])
@pytest.mark.parametrize("kind", ["normal", "one large entry", "offset", "long query"])
def test_rounding_is_within_its_bound(dim: int, kind: str) -> None:
    rng = np.random.default_rng(dim)
    vectors = rng.normal(size=(60, dim)).astype(np.float32)
    if kind == "one large entry":
        # The sum is large from the start, and every further term is rounded to it.
        vectors[:, 0] += 3.0 * dim**0.5
    if kind == "offset":
        vectors += np.float32(10.0)
    queries = vectors[:40] + rng.normal(size=(40, dim)).astype(np.float32)
    if kind == "long query":
        queries *= np.float32(100.0)
    error = faiss.pairwise_distances(queries, vectors) - squared_distances(queries, vectors)
    # Up to what all vectors have in common: half of the spread is the least possible error.
    spread = np.ptp(error, axis=1) / 2.0
    norms = np.linalg.norm(queries.astype(np.float64), axis=1)
    bound = rounding(norms, float(np.linalg.norm(vectors, axis=1).max()), dim)
    assert (spread <= bound).all()


@pytest.mark.parametrize(("copies", "size"), [(1, 1000), (2, 40), (2, 1000), (70, 40)])
def test_few_comparisons_are_left_to_float64(
    copies: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, compare_all = [], knn.compare_all
    monkeypatch.setattr(
        knn, "compare_all", lambda q, v: (compared.append(len(q)), compare_all(q, v))[1]
    )
    rng = np.random.default_rng(4)
    vectors = np.tile(rng.normal(size=(3000, 50)).astype(np.float32), (copies, 1))
    nearest_euclidean(vectors[:size] + rng.normal(size=(size, 50)), vectors)
    # Lists decide for a few queries between a few vectors.
    assert compared == [size if copies == 70 or (copies, size) == (2, 1000) else 0]

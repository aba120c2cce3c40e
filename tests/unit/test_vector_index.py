"""Indexes of arrays: what they find, what they are made of, and what is refused."""

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.search import VectorIndex, build_index, compare_with_flat, nearest_euclidean

KINDS = ["flat", "ivf", "hnsw", "pq"]


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """5,000 vectors in clusters, 16 dimensions."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(100, 16)) * 3.0
    places = centers[rng.integers(100, size=5000)] + rng.normal(size=(5000, 16))
    return places.astype(np.float32)


@pytest.fixture(scope="module")
def queries(vectors: np.ndarray) -> np.ndarray:
    """Every fifth vector, under noise as long as the distance between neighbours and longer."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(1000, 16)) * rng.choice([0.1, 0.5, 1.5], size=(1000, 1))
    return vectors[::5] + noise


@pytest.fixture(scope="module", params=KINDS)
def index(request: pytest.FixtureRequest, vectors: np.ndarray) -> VectorIndex:
    return build_index(vectors, request.param)


@pytest.fixture(scope="module")
def squared(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return squared_distances(queries, vectors)


def squared_distances(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    queries, vectors = (x.astype(np.float32).astype(np.float64) for x in (queries, vectors))
    return np.array([((vectors - query) ** 2).sum(axis=1) for query in queries])


def test_the_nearest_vector_is_found_nearly_always(
    index: VectorIndex, vectors: np.ndarray, queries: np.ndarray, squared: np.ndarray
) -> None:
    found = index.search(queries)
    assert found.dtype == np.int64
    right = (found == squared.argmin(axis=1)).mean()
    assert right == 1.0 if index.kind == "flat" else right >= 0.99
    first = index.candidates(queries.astype(np.float32), 10)[:, 0]
    assert (first == nearest_euclidean(queries, vectors)).mean() >= 0.9


def test_an_index_looks_at_a_part_of_the_vectors_only(vectors: np.ndarray) -> None:
    cells: Any = faiss.deserialize_index(build_index(vectors, "ivf").content)
    assert cells.nprobe < cells.nlist / 4
    graph: Any = faiss.deserialize_index(build_index(vectors, "hnsw").content)
    assert graph.hnsw.efSearch < len(vectors) / 20


@pytest.mark.parametrize("kind", [*KINDS, "PCA8,IVF64,SQ8", "SQ4"])
def test_the_same_vectors_give_the_same_index(vectors: np.ndarray, kind: str) -> None:
    first, second = build_index(vectors, kind), build_index(vectors.copy(), kind)
    assert first.content.tobytes() == second.content.tobytes()
    assert first.sha256 == second.sha256
    assert first.sha256 != build_index(vectors[::-1].copy(), kind).sha256


@pytest.mark.parametrize("size", [1, 7, 333])
def test_the_answer_does_not_depend_on_the_size_of_a_call(
    index: VectorIndex, queries: np.ndarray, size: int
) -> None:
    parts = [index.search(queries[k : k + size]) for k in range(0, len(queries), size)]
    np.testing.assert_array_equal(np.concatenate(parts), index.search(queries))
    assert index.search(queries[:0]).shape == (0,)


def test_candidates_are_ranked_by_their_exact_distances(
    vectors: np.ndarray, queries: np.ndarray, squared: np.ndarray
) -> None:
    index = build_index(vectors, "PCA4,SQ4")
    candidates = index.candidates(queries.astype(np.float32), 10)
    distances = np.take_along_axis(squared, candidates, axis=1)
    expected = candidates[np.arange(len(queries)), distances.argmin(axis=1)]
    np.testing.assert_array_equal(index.search(queries), expected)
    assert (candidates[:, 0] != expected).mean() > 0.3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
def test_few_vectors_are_all_found(kind: str, size: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(size, 4)).astype(np.float32)
    index = build_index(vectors, kind)
    np.testing.assert_array_equal(index.search(vectors), np.arange(size))


@pytest.mark.parametrize("kind", KINDS)
def test_the_lowest_of_equal_vectors_is_found(kind: str) -> None:
    vectors = np.random.default_rng(2).normal(size=(200, 4)).astype(np.float32)
    vectors[[150, 80, 3]] = vectors[40]
    found = build_index(vectors, kind).search(vectors[[40, 80, 150]])
    np.testing.assert_array_equal(found, [3, 3, 3])


@pytest.mark.parametrize(("size", "dim"), [(64, 8), (65, 1), (200, 7), (900, 50), (900, 301)])
def test_codes_of_any_shape_of_vectors(
    size: int, dim: int, capfd: pytest.CaptureFixture[str]
) -> None:
    vectors = np.random.default_rng(dim).normal(size=(size, dim)).astype(np.float32)
    index = build_index(vectors, "pq")
    assert (index.search(vectors) == np.arange(size)).mean() > 0.99
    assert capfd.readouterr() == ("", "")
    assert ("x4fs" in index.factory) == (size > 64)


def test_codes_find_what_cells_of_random_vectors_do_not() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(20_000, 100)).astype(np.float32)
    queries = vectors[:500] + 2.0 * rng.normal(size=(500, 100))
    index = build_index(vectors, "pq")
    assert compare_with_flat(index, queries)["changed_outputs"] < 0.05
    assert compare_with_flat(build_index(vectors, "ivf"), queries)["changed_outputs"] > 0.3


@pytest.mark.parametrize("kind", ["ivf", "pq"])
def test_a_query_without_candidates_is_compared_with_all(
    vectors: np.ndarray, queries: np.ndarray, kind: str
) -> None:
    index = build_index(vectors, kind)
    far = (queries[:20] * 1e30).astype(np.float32)
    assert kind == "pq" or (index.candidates(far, 10) == -1).all()
    mixed = np.concatenate([queries[:20], far]).astype(np.float32)
    expected = nearest_euclidean(mixed, vectors)
    np.testing.assert_array_equal(index.search(mixed)[20:], expected[20:])
    np.testing.assert_array_equal(index.search(mixed)[:20], index.search(queries[:20]))


def test_nothing_is_printed_about_few_vectors(capfd: pytest.CaptureFixture[str]) -> None:
    build_index(np.random.default_rng(3).normal(size=(300, 4)).astype(np.float32), "ivf")
    assert capfd.readouterr() == ("", "")


def test_vectors_and_content_are_used_in_place(
    vectors: np.ndarray, queries: np.ndarray, tmp_path: Path
) -> None:
    built = build_index(vectors, "hnsw")
    assert built.vectors is vectors
    path = tmp_path / "index"
    built.content.tofile(path)
    mapped = np.memmap(path, np.uint8, "r")
    index = VectorIndex("hnsw", "HNSW32", mapped, vectors)
    np.testing.assert_array_equal(index.search(queries), built.search(queries))
    assert index.sha256 == built.sha256
    assert repr(index) == "VectorIndex('hnsw', 'HNSW32')"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nonsense", "the index 'nonsense' for 400 vectors of 6 .*: could not parse index string"),
        ("", "could not parse index string"),
        ("BFlat", "could not parse index string BFlat; 'ivf' and 'hnsw' suit any"),
        (
            "IVF500,Flat",
            r"points \(400\) should be at least as large as number of clusters \(500\)",
        ),
        ("IVF0,Flat", "the index 'IVF0,Flat' has no cells or links: 'IVF0'; take more"),
        ("PCA4,HNSW1", "'PCA4,HNSW1' has no cells or links: 'HNSW1'"),
        ("IVF8_HNSW0,Flat", "has no cells or links: 'HNSW0'"),
        ("PQ4", r"dimension of the vector \(d\) should be a multiple"),
        ("IDMap,Flat", "use add_with_ids"),
        ("LSH", "searches by bits, not by L2 distance"),
        ("PCA4,L2norm,Flat", "searches by angle, not by L2 distance; 'ivf' and 'hnsw' do"),
        ("ITQ,LSH", "searches by bits"),
    ],
)
def test_a_factory_that_will_not_do_is_refused(
    vectors: np.ndarray, kind: str, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message) as caught:
        build_index(np.ascontiguousarray(vectors[:400, :6]), kind)
    # The place in the source of faiss is no help.
    assert ".cpp" not in str(caught.value)


@pytest.mark.parametrize("kind", [None, 3, b"ivf", ["ivf"]])
def test_a_kind_is_a_string(vectors: np.ndarray, kind: Any) -> None:
    with pytest.raises(InvalidTypeError, match="the kind of index to be a string, got"):
        build_index(vectors, kind)


def test_truncated_content_is_refused(index: VectorIndex) -> None:
    for length in (0, 3, 40, 200, 5000, 30_000):
        with pytest.raises(ArtifactError, match=r"not an index that faiss can read: .*read error"):
            VectorIndex(index.kind, index.factory, index.content[:length], index.vectors)
    for cut in range(1, 10):
        with pytest.raises(ArtifactError, match=r"read error|got \d+; it is truncated"):
            VectorIndex(index.kind, index.factory, index.content[:-cut].copy(), index.vectors)


def test_other_content_is_refused(vectors: np.ndarray) -> None:
    index = build_index(vectors, "flat")
    with pytest.raises(ArtifactError, match=r"Index type 0x\w+ .* not recognized"):
        VectorIndex("flat", "Flat", np.zeros(1000, dtype=np.uint8), vectors)
    with pytest.raises(ArtifactError, match="of 4999 vectors of 16 dimensions, got 5000 of 16"):
        VectorIndex("flat", "Flat", index.content, vectors[1:])
    with pytest.raises(ArtifactError, match="of 5000 vectors of 8 dimensions, got 5000 of 16"):
        VectorIndex("flat", "Flat", index.content, vectors[:, :8].copy())
    other = faiss.IndexFlatIP(16)
    other.add(vectors)
    with pytest.raises(ArtifactError, match=r"expected an L2 index of .*, metric 0"):
        VectorIndex("flat", "Flat", faiss.serialize_index(other), vectors)


def test_exact_search_agrees_with_itself(vectors: np.ndarray, queries: np.ndarray) -> None:
    index = build_index(vectors, "flat")
    assert compare_with_flat(index, queries) == {
        "recall_at_1": 1.0,
        "recall_at_10": 1.0,
        "changed_outputs": 0.0,
    }


def test_what_an_index_misses_is_counted(
    vectors: np.ndarray, queries: np.ndarray, squared: np.ndarray
) -> None:
    index = build_index(vectors, "PCA4,SQ4")
    order = np.argsort(squared, axis=1)[:, :10]
    candidates = index.candidates(queries.astype(np.float32), 10)
    shared = [len(set(a) & set(b)) / 10 for a, b in zip(order, candidates, strict=True)]
    assert compare_with_flat(index, queries) == pytest.approx(
        {
            "recall_at_1": (candidates[:, 0] == order[:, 0]).mean(),
            "recall_at_10": np.mean(shared),
            "changed_outputs": (index.search(queries) != order[:, 0]).mean(),
        }
    )
    assert 0.05 < np.mean(shared) < 0.9


def test_quality_of_fewer_vectors_than_candidates() -> None:
    vectors = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)
    assert compare_with_flat(build_index(vectors, "hnsw"), vectors)["recall_at_10"] == 1.0

"""EmbeddingSpace: what it answers, what it refuses, and how it travels between processes."""

import copy
import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import cache_dir, download, update_config, write_artifact
from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.spaces import EmbeddingSpace, builtin_names, metrics, space_artifact
from machine import PATIENCE

METRICS = ["euclidean", "poincare"]


def make_space(metric: str, size: int = 60, dim: int = 5, dtype: str = "float32") -> EmbeddingSpace:
    """A space with two words at the same point, rows 3 and 7."""
    rng = np.random.default_rng(size + dim)
    vectors = rng.normal(size=(size, dim))
    if metric == "poincare":
        vectors *= np.tanh(rng.uniform(0.1, 6.0, (size, 1)))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) * 1.00001
    vectors[7] = vectors[3]
    words = [f"w{row}" for row in range(size)]
    scale = 0.25 if metric == "poincare" else 1.0
    return EmbeddingSpace.from_vectors(words, vectors.astype(dtype), metric=metric, scale=scale)


@pytest.fixture(params=METRICS)
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    return make_space(request.param)


def naive(space: EmbeddingSpace, a: int, b: int) -> float:
    u, v = (space.vectors[i].astype(np.float64) if i >= 0 else space.centroid for i in (a, b))
    squared = float(np.sum((u - v) ** 2))
    if space.metric == "euclidean":
        return float(np.sqrt(squared))
    gaps = (1 - float(np.sum(u**2))) * (1 - float(np.sum(v**2)))
    return space.scale * float(np.arccosh(1 + 2 * squared / gaps))


def test_attributes(space: EmbeddingSpace) -> None:
    assert (len(space), space.dim, space.vectors.shape) == (60, 5, (60, 5))
    assert space.words[2] == "w2"
    assert "w2" in space
    assert "W2" not in space
    assert 2 not in space
    assert repr(space) == f"EmbeddingSpace(60 words x 5 dimensions, {space.metric})"


def test_ids_are_rows_or_minus_one(space: EmbeddingSpace) -> None:
    ids = space.ids(["w5", "absent", "w0", ""])
    assert ids.dtype == np.int64
    assert ids.tolist() == [5, -1, 0, -1]
    assert space.ids([]).shape == (0,)
    with pytest.raises(InvalidTypeError, match="expected a sequence of words, got a single string"):
        space.ids("w5")


def test_points_are_vectors_and_the_centroid(space: EmbeddingSpace) -> None:
    points = space.points([4, -1, 4])
    assert points.dtype == np.float64
    np.testing.assert_array_equal(points[0], space.vectors[4])
    np.testing.assert_array_equal(points[1], space.centroid)


def test_the_centroid_is_the_mean_or_the_origin() -> None:
    euclidean, poincare = map(make_space, METRICS)
    mean = euclidean.vectors.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(euclidean.centroid, mean, rtol=1e-12)
    np.testing.assert_array_equal(poincare.centroid, np.zeros(5))


def test_distances_agree_with_the_naive_formula(space: EmbeddingSpace) -> None:
    ids = np.arange(-1, len(space))
    expected = np.array([[naive(space, a, b) for b in range(len(space))] for a in ids])
    np.testing.assert_allclose(space.distances(ids), expected, rtol=1e-9, atol=1e-12)
    for a in (-1, 3, 59):
        pairs = space.pair_distances(np.full(60, a), np.arange(60))
        np.testing.assert_allclose(pairs, expected[a + 1], rtol=1e-9, atol=1e-12)
    assert space.distance("w1", 2) == pytest.approx(naive(space, 1, 2), rel=1e-12)
    assert space.distance(-1, "w2") == pytest.approx(naive(space, -1, 2), rel=1e-12)


def test_equal_vectors_are_at_exactly_zero(space: EmbeddingSpace) -> None:
    distances = space.distances(np.arange(len(space)))
    zeros = set(zip(*map(list, np.nonzero(distances == 0)), strict=True))
    assert zeros == {(i, i) for i in range(len(space))} | {(3, 7), (7, 3)}
    assert space.distance("w3", "w7") == 0.0


def test_blocks_are_parts_of_the_whole(space: EmbeddingSpace) -> None:
    whole = space.distances([5, -1])
    for block in (slice(0, 60), slice(10, 30), slice(59, None), slice(None, 1), slice(40, 99)):
        np.testing.assert_allclose(space.distances([5, -1], block), whole[:, block], rtol=1e-12)
    assert space.distances([5, -1], slice(30, 30)).shape == (2, 0)
    assert space.distances([], slice(3, 9)).shape == (0, 6)


def test_spaces_larger_than_a_block_agree_with_the_naive_formula() -> None:
    for metric in METRICS:
        space = make_space(metric, size=20_000, dim=3)
        ids = np.array([0, 19_999, -1])
        distances = space.distances(ids)
        for column in (0, 1, 2047, 2048, 8191, 8192, 16_384, 19_999):
            expected = [naive(space, int(row), column) for row in ids]
            np.testing.assert_allclose(distances[:, column], expected, rtol=1e-9, atol=1e-12)


def test_near_points_far_from_the_origin_keep_their_digits() -> None:
    base = np.full(300, 1e4)
    steps = np.array([0.0, 1e-6, 1e-3, 1.0, 1e3])
    vectors = base + steps[:, None] * np.eye(300)[:5]
    space = EmbeddingSpace.from_vectors(list("abcde"), vectors)
    exact = np.array([[np.hypot(a, b) if i != j else 0 for j, b in enumerate(steps)]
                      for i, a in enumerate(steps)])  # fmt: skip
    # What float64 leaves of a step of 1e-6 beside 1e4.
    np.testing.assert_allclose(space.distances(np.arange(5)), exact, rtol=2e-6)
    differences = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    np.testing.assert_allclose(space.distances(np.arange(5)), differences, rtol=1e-9)


def test_the_radius_is_the_farthest_word(space: EmbeddingSpace) -> None:
    assert space.radius == pytest.approx(max(naive(space, -1, row) for row in range(60)), rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 59, 500])
def test_neighbours_are_the_nearest_other_words(space: EmbeddingSpace, k: int) -> None:
    found = space.neighbours("w3", k)
    others = sorted((naive(space, 3, row), row) for row in range(60) if row != 3)[:k]
    assert [word for word, _ in found] == [f"w{row}" for _, row in others]
    assert [distance for _, distance in found] == pytest.approx([d for d, _ in others], rel=1e-9)
    assert found[0] == ("w7", 0.0)
    assert space.neighbours(3, k) == found


def test_the_centroid_has_neighbours_too(space: EmbeddingSpace) -> None:
    assert space.neighbours(-1, 100)[-1][1] == pytest.approx(space.radius)
    assert len(space.neighbours(-1, 100)) == 60


def test_neighbour_distances_are_medians_over_the_words(space: EmbeddingSpace) -> None:
    every = np.sort([[naive(space, a, b) for b in range(60)] for a in range(60)], axis=1)
    expected = {k: float(np.median(every[:, min(k, 59)])) for k in (1, 10, 100, 4)}
    found = space.neighbour_distances()
    assert list(found) == [1, 10, 100]
    found |= space.neighbour_distances((4, 1))
    # To seven digits, and upward.
    assert found == pytest.approx(expected, rel=1.1e-6)
    assert all(expected[k] * (1 - 1e-9) <= found[k] == float(f"{found[k]:.7g}") for k in found)


def test_neighbour_distances_of_a_large_space_use_an_even_sample() -> None:
    space = make_space("euclidean", size=20_000, dim=2)
    sample = np.linspace(0, 19_999, 1000).round().astype(int)
    tenth = np.partition(space.distances(sample), 10, axis=1)[:, 10]
    assert space.neighbour_distances((10,)) == {10: pytest.approx(np.median(tenth), rel=1.1e-6)}


def test_medians_are_of_the_sampled_distances(space: EmbeddingSpace) -> None:
    sampled = space.sampled_neighbour_distances((1, 10))
    assert [d.shape for d in sampled.values()] == [(60,), (60,)]
    for k, found in sampled.items():
        expected = [space.neighbours(row, k)[-1][1] for row in range(60)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert space.neighbour_distances((k,))[k] == pytest.approx(np.median(found), rel=1.1e-6)


def test_a_space_of_one_word() -> None:
    space = EmbeddingSpace.from_vectors(["only"], [[1.0, 2.0]])
    assert space.distances([0, -1]).tolist() == [[0.0], [0.0]]
    assert space.radius == 0.0
    assert space.neighbours("only", 3) == []
    assert space.neighbour_distances() == {1: 0.0, 10: 0.0, 100: 0.0}


@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_rescaling_multiplies_every_distance(space: EmbeddingSpace, factor: float) -> None:
    rescaled = space.rescale(factor)
    ids = np.arange(-1, 60)
    np.testing.assert_allclose(
        rescaled.distances(ids), factor * space.distances(ids), rtol=1e-5, atol=1e-7
    )
    assert rescaled.radius == pytest.approx(factor * space.radius, rel=1e-5)
    assert rescaled.digest != space.digest
    assert rescaled.metric == space.metric
    assert rescaled.rescale(2.0).provenance == {"rescaled_by": 2 * factor}
    assert (rescaled.scale == space.scale) == (space.metric == "euclidean")


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_rescaling_needs_a_positive_factor(space: EmbeddingSpace, factor: float) -> None:
    with pytest.raises(InvalidValueError, match="expected factor > 0 and finite"):
        space.rescale(factor)


@pytest.mark.parametrize(
    ("stored", "kind"), [("2", InvalidTypeError), (None, InvalidTypeError), (-1, InvalidValueError)]
)
def test_rescaling_needs_a_number_as_the_factor_so_far(
    stored: object, kind: type[Exception]
) -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"], np.eye(2, dtype=np.float32))
    space = replace(space, provenance={"rescaled_by": stored})
    with pytest.raises(kind, match=r"provenance\['rescaled_by'\]"):
        space.rescale(2.0)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "float64"),
     (">f4", "float32"), ("uint8", "float64"), ("longdouble", "float64")],
)  # fmt: skip
def test_numbers_become_float32_or_float64(given: str, stored: str) -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"], np.array([[1, 2], [3, 4]], dtype=given))
    assert space.vectors.dtype == np.dtype(stored)
    assert space.vectors.tolist() == [[1, 2], [3, 4]]


def test_the_given_array_is_copied_and_the_kept_one_is_read_only() -> None:
    vectors = np.ones((2, 3))
    space = EmbeddingSpace.from_vectors(np.array(["a", "b"]), vectors)
    vectors[0, 0] = 5.0
    assert space.vectors[0, 0] == 1.0
    assert [type(word) for word in space.words] == [str, str]
    for array in (space.vectors, space.centroid):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(AttributeError, match="cannot assign to field"):
        space.metric = "poincare"  # type: ignore[misc]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a", "b"], [[1, 2], [3, NAN]], r"the vector of 'b' \(row 1\) .* NaN"),
        (["a", "b"], [[-INF, 2], [3, 4]], r"the vector of 'a' \(row 0\) .* infinite"),
        (["a", "b"], [[1e200, 2], [3, 4]], r"the vector of 'a' \(row 0\) .* beyond 1e\+75"),
        (["a", "b", "a"], np.ones((3, 2)), "the word 'a' occurs twice, at rows 0 and 2"),
        ([], np.ones((0, 2)), "expected at least one word, got an empty vocabulary"),
        (["a", ""], np.ones((2, 2)), "row 1: the word is empty"),
        (["a", "b\nc"], np.ones((2, 2)), r"row 1: the word 'b\\nc' contains a line break"),
        (["a\r"], np.ones((1, 2)), r"row 0: the word 'a\\r' contains a line break"),
        (["a", "\ud800"], np.ones((2, 2)), r"row 1: the word '\\ud800' contains a lone surrogate"),
        (["a", "b"], np.ones(2), r"expected vectors of shape .* got shape \(2,\)"),
        (["a", "b"], np.ones((2, 2, 2)), r"expected vectors of shape .* got shape \(2, 2, 2\)"),
        (["a", "b"], np.ones((2, 0)), r"expected vectors of shape .* got shape \(2, 0\)"),
        (["a", "b"], [[1, 2], [3]], "expected vectors of one length, got ragged rows"),
        (["a"], np.ones((2, 2)), "expected one vector per word, got 1 words and 2 vectors"),
    ],
)
def test_words_and_vectors_that_make_no_space_are_refused(
    words: list[str], vectors: np.ndarray, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        EmbeddingSpace.from_vectors(words, vectors)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], [["x", "y"]], "expected vectors of real numbers, got dtype <U1"),
        (["a"], np.array([[1, None]]), "expected vectors of real numbers, got dtype object"),
        (["a"], [[1j, 2]], "expected vectors of real numbers, got dtype complex128"),
        (["a"], [[True, False]], "expected vectors of real numbers, got dtype bool"),
        ("ab", np.ones((2, 2)), "expected a sequence of words, got a single string"),
        (["a", 3], np.ones((2, 2)), "expected words to be strings, got 3 at row 1"),
        (["a", b"b"], np.ones((2, 2)), "expected words to be strings, got b'b' at row 1"),
    ],
)
def test_values_of_the_wrong_type_are_refused(
    words: list[str], vectors: np.ndarray, message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        EmbeddingSpace.from_vectors(words, vectors)


def test_words_that_differ_in_normalisation_are_kept() -> None:
    assert EmbeddingSpace.from_vectors(["é", "e\u0301"], np.eye(2)).words == ("é", "e\u0301")


@pytest.mark.parametrize("norm", [1.0, 1 + 2**-52, 1.5, 3.0, 1e40])
def test_points_outside_the_ball_are_refused(norm: float) -> None:
    message = r"expected every norm < 1 in the Poincaré ball, got norm [\d.e+]+ for 'b' \(row 1\)"
    with pytest.raises(InvalidValueError, match=message):
        EmbeddingSpace.from_vectors(["a", "b"], [[0.0, 0.0], [0.0, norm]], metric="poincare")


def test_the_last_points_inside_the_ball_are_accepted() -> None:
    edge = np.nextafter(1.0, 0.0)
    space = EmbeddingSpace.from_vectors(["a", "b"], [[edge, 0], [-edge, 0]], metric="poincare")
    # ρ = 2 artanh(1−2⁻⁵³) = ln(2⁵⁴−1), twice.
    assert space.distance("a", "b") == pytest.approx(2 * 54 * np.log(2.0), rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "scale", "message"),
    [
        (
            "cosine",
            1.0,
            "expected metric to be one of 'euclidean', 'poincare'; got metric='cosine'",
        ),
        ("euclidean", 2.0, "expected scale=1.0 for the Euclidean metric, got scale=2.0; scale the"),
        ("poincare", 0.0, "expected scale > 0 and finite, got scale=0.0"),
        ("poincare", -1.0, "expected scale > 0 and finite, got scale=-1.0"),
        ("poincare", NAN, "expected scale > 0 and finite, got scale=nan"),
    ],
)
def test_metric_and_scale_are_checked(metric: str, scale: float, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        EmbeddingSpace.from_vectors(["a"], [[0.5]], metric=metric, scale=scale)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([-2], InvalidValueError, "expected ids from -1 to 59, got -2 to -2"),
        ([0, 60], InvalidValueError, "expected ids from -1 to 59, got 0 to 60"),
        ([[1]], InvalidValueError, "expected a one-dimensional array of ids, got 2 axes"),
        ([1.0], InvalidTypeError, "expected integer ids, got dtype float64"),
        ([True], InvalidTypeError, "expected integer ids, got dtype bool"),
    ],
)
def test_ids_are_checked(
    space: EmbeddingSpace, ids: list[int], error: type[Exception], message: str
) -> None:
    for ask in (space.points, space.distances, lambda ids: space.pair_distances(ids, ids)):
        with pytest.raises(error, match=message):
            ask(ids)


def test_other_arguments_are_checked(space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="expected as many ids on both sides, got 2 and 1"):
        space.pair_distances([1, 2], [1])
    with pytest.raises(InvalidValueError, match="expected a block of consecutive rows, got step=2"):
        space.distances([1], slice(0, 10, 2))
    with pytest.raises(InvalidValueError, match="expected k >= 1, got k=0"):
        space.neighbours("w1", 0)
    with pytest.raises(InvalidValueError, match="expected k >= 1, got k=0"):
        space.neighbour_distances((0,))


def test_a_word_that_is_not_there_is_not_repeated_in_the_message(space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="not in the vocabulary") as caught:
        space.distance("secret", "w1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_saved_space_comes_back(tmp_path: Path, metric: str, dtype: str) -> None:
    space = make_space(metric, dtype=dtype)
    space.provenance["source"] = "test"
    space.cache.certificates["tem"] = {"0.5": 1.25}
    space.neighbour_distances((3,))
    space.save_pretrained(tmp_path / "space")
    loaded = EmbeddingSpace.from_pretrained(tmp_path / "space")
    assert loaded.words == space.words
    assert loaded.vectors.dtype == space.vectors.dtype
    np.testing.assert_array_equal(loaded.vectors, space.vectors)
    for name in ("metric", "scale", "provenance", "certificates", "digest"):
        assert getattr(loaded, name) == getattr(space, name)
    assert loaded.location == str(tmp_path / "space")
    np.testing.assert_allclose(loaded.distances([1]), space.distances([1]), rtol=1e-9)
    loaded.save_pretrained(tmp_path / "again")
    for file in (tmp_path / "space").glob("[!R]*.*[!g]"):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("ulp", [-4, 0, 4])
def test_a_processor_that_adds_otherwise_writes_the_same(
    space: EmbeddingSpace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ulp: int
) -> None:
    # At a distance of 1, one more in the last digit would be one more in the seventh.
    space = space.rescale(1.0 / float(np.median(space.sampled_neighbour_distances((1,))[1])))
    space.save_pretrained(tmp_path / "here")
    computed = EmbeddingSpace.sampled_neighbour_distances

    def elsewhere(*arguments: Any) -> dict[int, Any]:
        return {k: d * (1 + ulp * 2.0**-52) for k, d in computed(*arguments).items()}

    monkeypatch.setattr(EmbeddingSpace, "sampled_neighbour_distances", elsewhere)
    fresh = EmbeddingSpace.from_vectors(
        space.words, space.vectors, space.metric, space.scale, space.provenance
    )
    fresh.save_pretrained(tmp_path / "elsewhere")
    here, there = (tmp_path / name / "config.json" for name in ("here", "elsewhere"))
    assert here.read_bytes() == there.read_bytes()
    unit = fresh.neighbour_distances()[1]
    nearest = fresh.rescale(1.0 / unit)
    assert nearest.digest == space.rescale(1.0 / space.neighbour_distances()[1]).digest


def test_the_config_tells_what_the_space_is(tmp_path: Path, space: EmbeddingSpace) -> None:
    space.neighbour_distances((3,))
    space.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert set(config) == {
        "format_version", "library_name", "size", "dim", "dtype", "vectors_sha256",
        "vocabulary_sha256", "metric", "scale", "provenance", "neighbour_distances", "certificates",
        "figures", "config_sha256",
    }  # fmt: skip
    stored = {int(k): value for k, value in config["neighbour_distances"].items()}
    assert stored == pytest.approx(dict(space.neighbour_distances((1, 10, 100, 3))))


def test_stored_neighbour_distances_are_not_computed_again(tmp_path: Path) -> None:
    make_space("euclidean").save_pretrained(tmp_path)
    update_config(tmp_path, {"neighbour_distances": {"1": 123.0}})
    assert EmbeddingSpace.from_pretrained(tmp_path).neighbour_distances((1,)) == {1: 123.0}


def test_float16_artifacts_load_as_float32_and_keep_their_digest(tmp_path: Path) -> None:
    space = make_space("euclidean", dtype="float16")
    write_artifact(
        tmp_path / "half",
        vectors=space.vectors.astype(np.float16),
        words=space.words,
        config={"metric": "euclidean", "scale": 1.0},
    )
    loaded = EmbeddingSpace.from_pretrained(tmp_path / "half")
    assert loaded.vectors.dtype == np.float32
    assert loaded.digest == space.digest
    loaded.save_pretrained(tmp_path / "single")
    assert EmbeddingSpace.from_pretrained(tmp_path / "single").digest == space.digest


def test_the_digest_binds_words_vectors_metric_and_scale() -> None:
    def digest(words: str = "ab", last: float = 0.5, **options: object) -> str:
        vectors = np.array([[0.0, 0.25], [0.0, last]])
        return EmbeddingSpace.from_vectors(list(words), vectors, **options).digest  # type: ignore[arg-type]

    variants = [
        digest(),
        digest("ba"),
        digest(last=0.5000000001),
        digest(metric="poincare"),
        digest(metric="poincare", scale=2.0),
    ]
    assert len(set(variants)) == len(variants)
    assert digest() == digest(provenance={"source": "elsewhere"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "cosine"}, "expected metric to be one of"),
        ({"metric": ["euclidean"]}, "expected metric to be one of"),
        ({"scale": -1.0}, "expected scale > 0"),
        ({"scale": "1"}, "expected scale to be a number"),
        ({"scale": 10**400}, "expected scale in the range of float64"),
        ({"neighbour_distances": {"1": 10**400}}, "in the range of float64"),
        ({"scale": True}, "expected scale to be a number"),
        ({"scale": 2.0}, "expected scale=1.0 for the Euclidean metric"),
        ({"metric": "poincare"}, "expected every norm < 1 in the Poincaré ball"),
        ({"provenance": [1]}, "expected provenance to be an object"),
        ({"certificates": None}, "expected certificates to be an object"),
        ({"neighbour_distances": [1.0]}, "expected neighbour_distances to map ranks to distances"),
        ({"neighbour_distances": {"x": 1.0}}, "expected neighbour_distances to map ranks"),
        ({"neighbour_distances": {"1": -1.0}}, r"neighbour_distances\[1\]"),
        ({"neighbour_distances": {"1": "1"}}, r"neighbour_distances\[1\] to be a number"),
    ],
)
def test_an_artifact_that_describes_no_space_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    make_space("euclidean").save_pretrained(tmp_path)
    update_config(tmp_path, changes)
    with pytest.raises(ArtifactError, match=rf"config\.json: .*{message}"):
        EmbeddingSpace.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["metric", "scale"])
def test_an_artifact_without_metric_or_scale_is_refused(tmp_path: Path, name: str) -> None:
    config = {"metric": "euclidean", "scale": 1.0}
    del config[name]
    write_artifact(tmp_path, vectors=np.eye(2), words=["a", "b"], config=config)
    with pytest.raises(ArtifactError, match=rf"config\.json: missing '{name}'"):
        EmbeddingSpace.from_pretrained(tmp_path)


def test_an_artifact_with_nan_is_refused_although_its_digest_is_right(tmp_path: Path) -> None:
    write_artifact(
        tmp_path,
        vectors=np.array([[1.0, NAN]]),
        words=["a"],
        config={"metric": "euclidean", "scale": 1.0},
    )
    with pytest.raises(ArtifactError, match="the vector of 'a'"):
        EmbeddingSpace.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown", r"expected the name of a built-in space \(.*\), a local folder .* 'unknown'"),
        ("wordnet_gloss", "'wordnet_gloss', which is none of them; did you mean 'wordnet-gloss'"),
        ("", "got '', which is none of them"),
        (Path("nowhere"), "got 'nowhere', which is none of them"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(name: str | Path, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message) as caught:
        EmbeddingSpace.from_pretrained(name)
    for known in builtin_names():
        assert repr(known) in str(caught.value)


def test_a_folder_without_an_artifact_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"config\.json: .* expected the folder of an artifact"):
        EmbeddingSpace.from_pretrained(str(tmp_path))


def test_a_relative_folder_is_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: EmbeddingSpace
) -> None:
    space.save_pretrained(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    loaded = EmbeddingSpace.from_pretrained("mine")
    assert loaded.digest == space.digest
    monkeypatch.chdir("/")
    space_artifact._known.pop(space.digest)
    assert pickle.loads(pickle.dumps(loaded)).digest == space.digest


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the one of the built-in spaces."""
    shelf = tmp_path / "package"
    make_space("poincare").save_pretrained(shelf / "some-space")
    (shelf / "no-space").mkdir()
    monkeypatch.setattr(download, "BUILTIN", shelf)
    return shelf


def test_a_built_in_space_is_known_by_its_name_wherever_it_is_installed(shelf: Path) -> None:
    assert builtin_names() == ("some-space",)
    loaded = EmbeddingSpace.from_pretrained("some-space")
    assert loaded.location == "some-space"
    pickled = pickle.dumps(loaded)
    assert str(shelf).encode() not in pickled
    assert unpickled_afresh(pickled).digest == loaded.digest
    with pytest.raises(InvalidValueError, match=r"built-in space \('some-space'\), a local folder"):
        EmbeddingSpace.from_pretrained("no-space")


def test_a_path_is_never_taken_for_a_built_in_space(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_space("euclidean").save_pretrained(tmp_path / "some-space")
    monkeypatch.chdir(tmp_path)
    assert EmbeddingSpace.from_pretrained("some-space").metric == "poincare"
    for local in ("./some-space", Path("some-space")):
        assert EmbeddingSpace.from_pretrained(local).metric == "euclidean"


def test_a_space_pickles_to_a_path_and_a_digest(space: EmbeddingSpace) -> None:
    large = make_space(space.metric, size=20_000, dim=50)
    pickled = pickle.dumps(large)
    assert len(pickled) < 500
    assert pickle.loads(pickled) is large
    assert pickle.dumps(large) == pickled
    assert (cache_dir() / "spaces" / large.digest / "config.json").is_file()
    assert not list((cache_dir() / "spaces").glob(".*"))


def test_copies_are_the_space_itself(space: EmbeddingSpace) -> None:
    assert copy.copy(space) is space
    assert copy.deepcopy({"space": space})["space"] is space


def unpickled_afresh(pickled: bytes) -> EmbeddingSpace:
    """Unpickle as a process would that has never seen the space."""
    space_artifact._known.clear()
    space_artifact._recent.clear()
    loaded = pickle.loads(pickled)
    assert isinstance(loaded, EmbeddingSpace)
    return loaded


def test_unpickling_loads_once_from_the_cache(space: EmbeddingSpace) -> None:
    pickled = pickle.dumps(space)
    loaded = unpickled_afresh(pickled)
    assert loaded is not space
    assert loaded.digest == space.digest
    assert pickle.loads(pickled) is loaded
    assert pickle.dumps(loaded) == pickled


def test_a_loaded_space_pickles_to_its_folder(tmp_path: Path, space: EmbeddingSpace) -> None:
    space.save_pretrained(tmp_path / "mine")
    pickled = pickle.dumps(EmbeddingSpace.from_pretrained(tmp_path / "mine"))
    assert str(tmp_path / "mine").encode() in pickled
    assert unpickled_afresh(pickled).location == str(tmp_path / "mine")


def test_a_folder_that_changed_after_pickling_is_refused(tmp_path: Path) -> None:
    make_space("euclidean").save_pretrained(tmp_path)
    pickled = pickle.dumps(EmbeddingSpace.from_pretrained(tmp_path))
    make_space("poincare").save_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match="the folder was changed after the space was pickled"):
        unpickled_afresh(pickled)


def test_a_folder_that_is_gone_is_named(tmp_path: Path, space: EmbeddingSpace) -> None:
    space.save_pretrained(tmp_path / "mine")
    pickled = pickle.dumps(EmbeddingSpace.from_pretrained(tmp_path / "mine"))
    shutil.rmtree(tmp_path / "mine")
    with pytest.raises(InvalidValueError, match=f"got '{tmp_path / 'mine'}', which is none"):
        unpickled_afresh(pickled)


def test_a_damaged_cache_entry_is_replaced_or_refused() -> None:
    space = make_space("euclidean", size=33)
    pickled = pickle.dumps(space)
    entry = cache_dir() / "spaces" / space.digest
    (entry / "config.json").unlink()
    assert pickle.dumps(space) == pickled
    assert unpickled_afresh(pickled).digest == space.digest
    (entry / "vocabulary.txt").write_text("altered\n")
    with pytest.raises(ArtifactError, match=r"vocabulary\.txt: SHA-256"):
        unpickled_afresh(pickled)


def report(space: EmbeddingSpace, queue: "multiprocessing.Queue[tuple[str, float]]") -> None:
    queue.put((space.digest, space.distance(0, 1)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_receive_the_same_space(space: EmbeddingSpace, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=report, args=(space, queue))
    process.start()
    assert queue.get(timeout=PATIENCE) == (space.digest, space.distance(0, 1))
    process.join()


def test_importing_is_light() -> None:
    code = (
        "import sys; from hf_dxprivacy.spaces import EmbeddingSpace; "
        "print([m for m in ('datasets', 'huggingface_hub', 'torch') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_contracted_ball_keeps_directions_and_shrinks_every_distance() -> None:
    ball = EmbeddingSpace.from_pretrained("wordnet-poincare")
    half, rows = ball.contract(0.5), np.arange(0, len(ball), 500)
    center = np.zeros((len(rows), ball.dim))
    before, after = (s.vectors[rows].astype(np.float64) for s in (ball, half))
    np.testing.assert_allclose(
        metrics.pair_distances(after, center),
        0.5 * metrics.pair_distances(before, center),
        rtol=1e-9,
    )
    cosines = np.einsum("ij,ij->i", before, after)
    cosines /= np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    np.testing.assert_allclose(cosines, 1.0, rtol=1e-12)
    # The bound by which the guarantee carries over; for most pairs far less is left.
    assert (half.distances(rows) <= 0.5 * (1.0 + 1e-9) * ball.distances(rows) + 1e-12).all()
    assert half.contract(0.5).provenance["contracted_by"] == 0.25
    assert half.contract(0.5).metric_name == "hyperbolic distance in the ball contracted by 0.25"
    # An ε in it is another one, which statements have to show.
    statements = {TruncatedExponential(each, 5.0).guarantee.statement for each in (ball, half)}
    assert len({each.partition(" truncated")[0] for each in statements}) == 2
    assert half.hierarchy is ball.hierarchy
    assert half.digest != ball.digest


@pytest.mark.parametrize("factor", [0.0, 1.0, -1.0, float("nan")])
def test_contraction_needs_a_ball_and_a_factor_below_one(factor: float) -> None:
    ball = EmbeddingSpace.from_vectors(["a", "b"], [[0.1, 0.0], [0.0, 0.9]], "poincare")
    with pytest.raises(InvalidValueError, match=r"expected 0\.0 < factor < 1\.0"):
        ball.contract(factor)
    with pytest.raises(InvalidValueError, match="only a Poincaré ball can be contracted"):
        EmbeddingSpace.from_vectors(["a"], [[1.0]]).contract(0.5)


def test_a_space_without_some_words_never_draws_them(space: EmbeddingSpace) -> None:
    whole = space.build_hierarchy(progress=False)
    part = whole.without(["W3", "w59", "not a word"])
    assert part.words == tuple(word for word in space.words if word not in {"w3", "w59"})
    assert part.ids(["w3", "w59", "w4"]).tolist() == [-1, -1, 3]
    assert part.distance("w4", "w58") == pytest.approx(space.distance("w4", "w58"))
    assert (part.metric, part.scale) == (space.metric, space.scale)
    assert part.provenance["excluded"] == 2
    assert part.digest != whole.digest
    assert part.hierarchy is not None
    assert len(part.hierarchy) == 58
    assert part.without(["w0"]).provenance["excluded"] == 3
    for name in ("tem", "hierarchical"):
        privatizer = DxPrivatizer(part, name, 0.5, seed=2**90 + 1)
        drawn = privatizer.privatize("w2 w3 zork " * 200).split()
        assert len(drawn) == 600
        assert set(drawn) == set(part.words)
        dropping = DxPrivatizer(part, name, 0.5, seed=2**90 + 1, oov="drop")
        assert len(dropping.privatize("w2 w3 zork").split()) == 1


def test_a_space_without_shapes_or_without_change() -> None:
    space = EmbeddingSpace.from_vectors(["one", "two", "three"], np.eye(3)).with_shapes(
        {"numbers": ["one", "two"]}
    )
    assert space.without(["zork"]) is space
    assert space.without([]) is space
    part = space.without(["<number:3>", "three"])
    assert part.shapes == tuple(shape for shape in space.shapes if shape != "<number:3>")
    assert "three" not in part


def test_words_to_leave_out_that_are_refused() -> None:
    space = EmbeddingSpace.from_vectors(["One", "two"], np.eye(2))
    with pytest.raises(InvalidValueError, match="none of 2 words is left; exclude fewer"):
        space.without(["one", "TWO"])
    with pytest.raises(InvalidTypeError, match="got a single string; pass a list"):
        space.without("one")

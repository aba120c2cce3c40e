"""Bounds of distances are below (and above) the distances, and near them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.spaces import EmbeddingSpace, shortlists

WORDS = 700
KINDS = ("single", "double", "off-center", "outlier", "tiny", "huge", "equal", "hyperbolic")

Vectors = NDArray[np.floating[Any]]


def vectors_of(kind: str) -> Vectors:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(WORDS, 20))
    if kind == "off-center":
        vectors += 50.0
    if kind == "outlier":
        vectors[3] *= 1e4
    if kind == "equal":
        vectors[::2] = vectors[0]
    if kind == "hyperbolic":
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors *= (1.0 - 10.0 ** rng.uniform(-7, -1, size=(WORDS, 1))) / norms
    factor = {"tiny": 1e-25, "huge": 1e25}.get(kind, 1.0)
    return (vectors * factor).astype(np.float32 if kind not in ("double", "hyperbolic") else float)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def space(kind: str) -> EmbeddingSpace:
    metric, scale = ("poincare", 0.7) if kind == "hyperbolic" else ("euclidean", 1.0)
    names = [f"w{row}" for row in range(WORDS)]
    return EmbeddingSpace.from_vectors(names, vectors_of(kind), metric=metric, scale=scale)


def exact_rows(space: EmbeddingSpace, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    pairs = [space.pair_distances(np.full(WORDS, row), np.arange(WORDS)) for row in ids]
    return np.array(pairs)


@pytest.mark.parametrize("k", [1, 5, 40, 300, 699, 700, 900])
def test_lists_bound_every_distance(
    space: EmbeddingSpace, kind: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several products, of which the last ones are smaller.
    monkeypatch.setattr(shortlists, "ROWS", 32)
    monkeypatch.setattr(shortlists, "COLUMNS", 256)
    ids = np.concatenate([[-1, 0, 3, 5, 100, 400, 401, 402, 699], np.arange(40, 80)])
    lists = space.shortlists(ids, k)
    assert lists.words.shape == lists.lower.shape == (len(ids), min(k, WORDS))
    for row, words, lower, beyond in zip(
        exact_rows(space, ids), lists.words, lists.lower, lists.beyond, strict=True
    ):
        listed = words[np.isfinite(lower)]
        assert len(np.unique(listed)) == len(listed)
        bounds = np.full(WORDS, beyond)
        bounds[listed] = lower[np.isfinite(lower)]
        assert (bounds <= row).all()
        if kind in ("single", "double"):
            # The lists are of the nearest words, as many as were asked for, and bounds are close.
            assert len(listed) == min(k, WORDS)
            np.testing.assert_allclose(bounds[listed], row[listed], rtol=1e-3, atol=1e-3)
            others = np.setdiff1d(np.arange(WORDS), listed)
            assert (row[others] >= row[listed].max() * (1 - 1e-3)).all()


def test_pairs_are_bounded_on_both_sides(space: EmbeddingSpace, kind: str) -> None:
    rng = np.random.default_rng(6)
    first, second = rng.integers(-1, WORDS, size=3000), rng.integers(WORDS, size=3000)
    second[:10] = np.maximum(first[:10], 0)
    lower, upper = space.pair_bounds(first, second)
    exact = space.pair_distances(first, second)
    assert (lower <= exact).all()
    assert (exact <= upper).all()
    if kind == "single":
        served = upper < np.inf
        assert served.mean() > 0.99
        np.testing.assert_allclose(lower[served], upper[served], rtol=1e-5)


def test_large_lists_are_sampled_well() -> None:
    vectors = np.random.default_rng(7).normal(size=(6000, 10)).astype(np.float32)
    space = EmbeddingSpace.from_vectors([f"w{row}" for row in range(6000)], vectors)
    lists = space.shortlists(np.arange(600), 50)
    full = np.isfinite(lists.lower).sum(axis=1)
    assert (full == 50).mean() > 0.95
    assert full.min() > 5


def test_a_list_does_not_depend_on_the_others(euclidean_space: EmbeddingSpace) -> None:
    everything = euclidean_space.shortlists(np.arange(500), 30)
    rng = np.random.default_rng(8)
    for size in (1, 2, 31, 33, 77):
        ids = rng.permutation(500)[:size]
        found = euclidean_space.shortlists(ids, 30)
        np.testing.assert_array_equal(found.words, everything.words[ids])
        np.testing.assert_array_equal(found.lower, everything.lower[ids])
        np.testing.assert_array_equal(found.beyond, everything.beyond[ids])

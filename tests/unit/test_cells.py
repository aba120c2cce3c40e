"""Bounds of distances are below (and above) the distances, and near them."""

from typing import Any

import numpy as np
import pytest
import threadpoolctl
from numpy.typing import NDArray

from hf_dxprivacy.spaces import EmbeddingSpace, partition
from hf_dxprivacy.spaces.partition import LONGEST, IntegerLattice, Partition

WORDS = 700
KINDS = (
    "single", "double", "off-center", "outlier", "tiny", "huge", "extreme", "equal", "one place",
    "hyperbolic", "clusters", "dot", "subnormal",
)  # fmt: skip

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
    if kind == "clusters":
        # Far from the centroid, each much smaller than single precision resolves there.
        vectors *= 1e-3
        vectors += 70.0 * rng.normal(size=(10, 20))[np.arange(WORDS) % 10]
    if kind == "dot":
        # Squares of the distances in it underflow.
        vectors[:100] *= 1e-24
        vectors[100:] *= 1e-9
    if kind == "one place":
        vectors[:] = 0.25
    if kind == "hyperbolic":
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors *= (1.0 - 10.0 ** rng.uniform(-7, -1, size=(WORDS, 1))) / norms
    factors = {"tiny": 1e-25, "huge": 1e25, "extreme": 2.0**120, "subnormal": 2e-45}
    double = kind in ("double", "hyperbolic", "subnormal")
    return (vectors * factors.get(kind, 1.0)).astype(float if double else np.float32)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def space(kind: str) -> EmbeddingSpace:
    metric, scale = ("poincare", 0.7) if kind == "hyperbolic" else ("euclidean", 1.0)
    names = [f"w{row}" for row in range(WORDS)]
    return EmbeddingSpace.from_vectors(names, vectors_of(kind), metric=metric, scale=scale)


def exact_rows(space: EmbeddingSpace, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    size = len(space)
    return np.array([space.pair_distances(np.full(size, row), np.arange(size)) for row in ids])


@pytest.mark.parametrize("count", [1, 5, 40, 512, 699, 700])
def test_cells_bound_every_distance(
    space: EmbeddingSpace, kind: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several products, of which the last ones are smaller.
    monkeypatch.setattr(partition, "ROWS", 32)
    monkeypatch.setattr(partition, "COLUMNS", 256)
    ids = np.concatenate([[-1, 0, 3, 5, 100, 400, 401, 402, 699], np.arange(40, 80)])
    found = Partition(space, count)
    np.testing.assert_array_equal(np.sort(found.order), np.arange(WORDS))
    exact = exact_rows(space, ids)
    exact[ids >= 0, ids[ids >= 0]] = np.inf
    nearest = np.minimum.reduceat(exact[:, found.order], found.starts[:-1], axis=1)
    bounds = found.bounds(ids)
    assert bounds.shape == (len(ids), count)
    assert (bounds >= 0).all()
    assert (bounds <= nearest).all()
    if kind in ("single", "double", "off-center", "tiny", "huge"):
        far = np.isfinite(nearest)
        np.testing.assert_allclose(bounds[far], nearest[far], rtol=1e-2)


def test_points_of_the_grid_are_whole_and_short(space: EmbeddingSpace) -> None:
    grid = IntegerLattice(space)
    rounded = grid.rounded(np.arange(-1, WORDS))
    dtype, longest = LONGEST[space.metric]
    assert rounded.whole.dtype == dtype
    assert (rounded.whole == np.rint(rounded.whole)).all()
    norms = np.linalg.norm(rounded.whole.astype(np.float64), axis=1)
    assert norms.max() <= longest
    # What makes sums of products exact: no partial sum of two such vectors is larger.
    assert 2.0 * longest**2 <= 2.0 ** (np.finfo(dtype).nmant + 1)


def test_products_of_the_grid_are_exact(space: EmbeddingSpace) -> None:
    rounded = IntegerLattice(space).rounded(np.arange(WORDS))
    halves = rounded.as_words() @ rounded.as_queries().T
    whole = rounded.whole.astype(np.int64)
    squared = ((whole[:, None] - whole) ** 2).sum(axis=2)
    assert (2 * halves.astype(np.int64) <= squared).all()
    assert (2 * halves.astype(np.int64) >= squared - 2).all()


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


def test_bounds_do_not_depend_on_the_batch_or_the_threads(space: EmbeddingSpace) -> None:
    everything = Partition(space, 40).bounds(np.arange(WORDS))
    rng = np.random.default_rng(8)
    for size in (1, 2, 31, 33, 77):
        ids = rng.permutation(WORDS)[:size]
        with threadpoolctl.threadpool_limits(1):
            found = Partition(space, 40)
            np.testing.assert_array_equal(found.bounds(ids), everything[ids])


def test_factors_are_the_same_whether_kept_or_not(
    space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Partition(space, 40).bounds(np.arange(100))
    monkeypatch.setattr(partition, "KEPT_NUMBERS", 0)
    np.testing.assert_array_equal(Partition(space, 40).bounds(np.arange(100)), kept)


def test_words_of_a_cell_are_near(euclidean_space: EmbeddingSpace) -> None:
    found = Partition(euclidean_space, 50)
    distances = euclidean_space.distances(np.arange(500))[:, found.order]
    spread = np.maximum.reduceat(distances, found.starts[:-1], axis=1) - np.minimum.reduceat(
        distances, found.starts[:-1], axis=1
    )
    mixed = distances[:, np.random.default_rng(9).permutation(500)]
    unsorted = np.maximum.reduceat(mixed, found.starts[:-1], axis=1) - np.minimum.reduceat(
        mixed, found.starts[:-1], axis=1
    )
    assert spread.mean() < 0.7 * unsorted.mean()

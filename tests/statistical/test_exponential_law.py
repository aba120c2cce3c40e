"""The exponential mechanisms draw what `probabilities` says, however they draw it."""

import copy
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import CalibratedExponential, TruncatedExponential
from hf_dxprivacy.mechanisms import sampler as sampler_module
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.mechanisms.sampler import RejectionSampler, first_above
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import RejectedError, check_frequencies

DRAWS = 30_000
# The centroid, and two words.
INPUTS = (-1, 0, 123)

Ids = NDArray[np.int64]


@pytest.fixture(scope="module", params=["euclidean", "poincare"])
def space(request: pytest.FixtureRequest) -> EmbeddingSpace:
    return request.getfixturevalue(f"{request.param}_space")


@pytest.fixture(scope="module")
def large_space() -> EmbeddingSpace:
    """5000 words: more than there are cells."""
    vectors = np.random.default_rng(4).normal(size=(5000, 3)).astype(np.float32)
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(5000)], vectors)


def counts_by_input(ids: Ids, drawn: Ids, size: int) -> dict[int, Ids]:
    return {k: np.bincount(drawn[ids == k], minlength=size) for k in np.unique(ids).tolist()}


def sampled(mechanism: ExponentialMechanism, key: int, *inputs: int) -> dict[int, Ids]:
    """Count what `sample` draws for each of the inputs, shuffled together."""
    rng = keyed_generator(key)
    ids = rng.permutation(np.repeat(inputs, DRAWS))
    return counts_by_input(ids, mechanism.sample(ids, rng), len(mechanism.space))


def rejection_sampled(mechanism: ExponentialMechanism, key: int, *inputs: int) -> dict[int, Ids]:
    """Count what is drawn by the mechanism's weights, from the cells of its space."""
    sampler = RejectionSampler(mechanism.space, mechanism._weights)
    rng = keyed_generator(key)
    ids = rng.permutation(np.repeat(inputs, DRAWS))
    drawn = sampler.draw(ids, RowStreams.single(rng, len(ids)), np.arange(len(ids)))
    return counts_by_input(ids, drawn, len(mechanism.space))


def check_counts(mechanism: ExponentialMechanism, counts: dict[int, Ids]) -> None:
    for word, observed in counts.items():
        assert observed.sum() == DRAWS
        check_frequencies(observed, mechanism.probabilities([word])[0])


@pytest.mark.parametrize(("epsilon", "beta"), [(0.5, 0.001), (2.0, 0.001), (2.0, 0.5), (8.0, 0.2)])
@pytest.mark.parametrize("kind", [TruncatedExponential, CalibratedExponential])
def test_whole_rows(
    space: EmbeddingSpace, kind: type[ExponentialMechanism], epsilon: float, beta: float
) -> None:
    mechanism = kind(space, epsilon, beta)
    check_counts(mechanism, sampled(mechanism, 1, *INPUTS))


@pytest.mark.parametrize("gamma", [None, 1e-3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("cells", [1, 20, 120])
def test_few_cells(space: EmbeddingSpace, cells: int, gamma: float | None) -> None:
    # The least γ truncates every distance, so that all words are equally likely.
    listed = space.build_neighbours(cells, progress=False)
    mechanism = TruncatedExponential(listed, 1.5, gamma=gamma)
    check_counts(mechanism, rejection_sampled(mechanism, 2, *INPUTS))


@pytest.mark.parametrize("metric", ["euclidean", "poincare"])
@pytest.mark.parametrize("kind", [TruncatedExponential, CalibratedExponential])
def test_words_of_one_vector_and_the_centroid(
    kind: type[ExponentialMechanism], metric: Literal["euclidean", "poincare"]
) -> None:
    # The first nine words are one place, and the last one is where unknown words are.
    places = np.array([[0.1, 0.2]] * 9 + [[0.7, 0.1], [-0.6, 0.3], [-0.1, -0.4], [0.0, 0.0]])
    if metric == "euclidean":
        places[12] = places[:12].mean(axis=0)
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(13)], places, metric=metric)
    mechanism = kind(space, 1.5)
    check_counts(mechanism, sampled(mechanism, 4, 0, 8, -1, 12))


def test_few_cells_of_the_calibrated_law(space: EmbeddingSpace) -> None:
    mechanism = CalibratedExponential(space.build_neighbours(30, progress=False), 1.5)
    check_counts(mechanism, rejection_sampled(mechanism, 3, *INPUTS))


def test_cells_of_many_words(large_space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(large_space, 3.0)
    assert np.diff(large_space.partition().starts).min() > 5
    check_counts(mechanism, sampled(mechanism, 4, *INPUTS))


@pytest.mark.parametrize("factor", [2 / 3, 1.1, 3 / 2])
@pytest.mark.parametrize("cells", [20, 500])
def test_another_slope_would_be_noticed(space: EmbeddingSpace, cells: int, factor: float) -> None:
    space = space.build_neighbours(cells, progress=False)
    claimed = TruncatedExponential(space, 2.0)
    gamma = claimed.radius
    other = TruncatedExponential(space, 2.0 * factor, gamma=gamma)
    counts = sampled(other, 5, 123)
    check_counts(other, counts)
    with pytest.raises(RejectedError, match=r"chi-square .* n=30000, .* alpha=1e-06"):
        check_counts(claimed, counts)


def with_bounds_scaled(space: EmbeddingSpace, factor: float) -> EmbeddingSpace:
    """Return a space of few cells that claims bounds that many times as large."""
    listed = space.build_neighbours(20, progress=False)

    def block_bounds(ids: Ids, device: str) -> NDArray[np.float32]:
        return listed.block_bounds(ids, device) * np.float32(factor)

    claiming = copy.copy(vars(listed))
    other = object.__new__(EmbeddingSpace)
    vars(other).update(claiming, block_bounds=block_bounds)
    return other


@pytest.mark.parametrize("factor", [0.9, 0.7, 0.1])
def test_loose_bounds_do_not_change_the_law(space: EmbeddingSpace, factor: float) -> None:
    mechanism = TruncatedExponential(with_bounds_scaled(space, factor), 2.0)
    check_counts(mechanism, rejection_sampled(mechanism, 6, *INPUTS))


def test_envelopes_of_exact_distances_do_not_change_the_law(
    space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_module, "PATIENCE", 2)
    mechanism = TruncatedExponential(with_bounds_scaled(space, 0.1), 2.0)
    check_counts(mechanism, rejection_sampled(mechanism, 6, *INPUTS))


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-39, np.float32), (1e-39, np.float64), (1e-150, np.float64)]
)
def test_draws_end_where_distances_leave_single_precision(scale: float, dtype: type) -> None:
    vectors = (np.random.default_rng(0).normal(size=(90, 5)) * scale).astype(dtype)
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(90)], vectors)
    diameter = float(space.distances(np.arange(90)).max())
    mechanism = TruncatedExponential(space, 1000.0 / diameter)
    drawn = mechanism.sample(np.full(5000, -1), keyed_generator(8))
    check_frequencies(np.bincount(drawn, minlength=90), mechanism.probabilities([-1])[0])


def test_bounds_beyond_the_distances_would_be_noticed(space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(with_bounds_scaled(space, 1.5), 2.0)
    counts = rejection_sampled(mechanism, 6, 123)
    with pytest.raises(RejectedError, match="chi-square"):
        check_counts(mechanism, counts)


@pytest.mark.parametrize("cells", [20, 500])
def test_law_survives_a_full_cache(space: EmbeddingSpace, cells: int) -> None:
    mechanism = TruncatedExponential(space.build_neighbours(cells, progress=False), 1.5)
    sampler = RejectionSampler(mechanism.space, mechanism._weights, least_capacity=3, cache_bytes=1)
    rng, batches = keyed_generator(7), []
    groups = [(-1, 5, 123), *((word, word + 1, 123) for word in range(200, 230, 2))]
    for turn in range(48):
        ids = rng.permutation(np.resize(groups[turn % 16], 3000))
        drawn = sampler.draw(ids, RowStreams.single(rng, 3000), np.arange(3000))
        batches.append((ids, drawn))
        kept = sampler._envelopes
        known = np.flatnonzero(kept.rows >= 0)
        assert len(kept.cumulative) == 3 >= len(known)
        # A row belongs to one input, which knows it. The centroid is −1 and has the last place.
        np.testing.assert_array_equal(kept.owners[kept.rows[known]] % (len(space) + 1), known)
        assert set(known) >= set(np.unique(ids) % (len(space) + 1))
    assert (sampler._envelopes.rows >= 0).sum() <= 3
    ids, drawn = (np.concatenate(part) for part in zip(*batches, strict=True))
    for word, observed in counts_by_input(ids, drawn, len(space)).items():
        check_frequencies(observed, mechanism.probabilities([word])[0])


def test_words_that_are_used_often_stay_in_a_full_cache(space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(space, 1.5)
    sampler = RejectionSampler(space, mechanism._weights, least_capacity=4, cache_bytes=1)
    filled: list[int] = []
    fill = sampler._fill

    def noting(envelopes: Any, ids: Ids, bounds: Any) -> None:
        filled.extend(ids.tolist())
        fill(envelopes, ids, bounds)

    sampler._fill = noting  # type: ignore[method-assign]
    for rare in range(10, 30):
        ids = np.array([-1, 7, rare])
        sampler.draw(ids, RowStreams.single(keyed_generator(rare), 3), np.arange(3))
    assert sorted(filled) == [-1, 7, *range(10, 30)]


def grouped(mechanism: ExponentialMechanism, word: int) -> tuple[NDArray[np.float64], Ids]:
    """Cut the outputs of a word into about eight likely groups: their law, and group by output."""
    law = mechanism.probabilities([word])[0]
    order = np.argsort(-law)
    group = np.empty(len(law), dtype=np.int64)
    group[order] = np.floor(8 * np.minimum(np.cumsum(law[order]) - law[order], 0.999999))
    _, group = np.unique(group, return_inverse=True)
    return np.bincount(group, law), group


def check_pairs(mechanism: ExponentialMechanism, word: int, first: Ids, second: Ids) -> None:
    """Check that two outputs of a word are independent, by the joint law of their groups."""
    law, group = grouped(mechanism, word)
    joint = np.zeros((len(law), len(law)))
    np.add.at(joint, (group[first], group[second]), 1)
    check_frequencies(joint, np.outer(law, law))


@pytest.mark.parametrize("cells", [20, 500])
def test_draws_are_independent(space: EmbeddingSpace, cells: int) -> None:
    mechanism = TruncatedExponential(space.build_neighbours(cells, progress=False), 1.5)
    sampler = RejectionSampler(mechanism.space, mechanism._weights)
    rng = keyed_generator(8)

    def batch() -> Ids:
        return sampler.draw(np.full(DRAWS, 123), RowStreams.single(rng, DRAWS), np.arange(DRAWS))

    first, second = batch(), batch()
    check_pairs(mechanism, 123, first[0::2], first[1::2])
    check_pairs(mechanism, 123, first, second)
    with pytest.raises(RejectedError, match="chi-square"):
        check_pairs(mechanism, 123, first, first)


def test_rows_with_their_own_streams_are_independent(space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(space, 1.5)
    rows = 2000
    streams = RowStreams([keyed_generator(9, row) for row in range(rows)], np.full(rows, 8))
    drawn = mechanism.sample(np.full(rows * 8, 123), streams).reshape(rows, 8)
    # Neighbouring rows at the same place, and neighbouring places of the same row.
    check_pairs(mechanism, 123, drawn[0::2].ravel(), drawn[1::2].ravel())
    check_pairs(mechanism, 123, drawn[:, 0::2].ravel(), drawn[:, 1::2].ravel())


def test_the_curve_is_nowhere_below_the_weights(space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(space, 1.5)
    for cells in (1, 2, 31, 32, 33, 500):
        listed = space.build_neighbours(cells, progress=False)
        sampler = RejectionSampler(listed, mechanism._weights)
        sampler._prepare(np.array(INPUTS))
        for word in INPUTS:
            row = sampler._envelopes.rows[word]
            parts = sampler._envelopes.cumulative[row, :cells].astype(np.float64)
            masses = sampler._envelopes.scales[row] * np.diff(parts, prepend=0.0)
            curve = np.empty(500)
            curve[sampler._order] = np.repeat(masses / sampler._sizes, sampler._sizes)
            weights = mechanism._weights(space.pair_distances(np.full(500, word), range(500)))
            others = np.arange(500) != word
            assert (curve >= weights * (1 - 1e-12))[others].all()
            if cells == 500:
                # Nor far above it, where each cell is a word.
                assert curve[others].sum() <= 1.02 * weights[others].sum()


def test_search_in_cumulative_weights_is_the_usual_one() -> None:
    rng = np.random.default_rng(10)
    for width in (1, 2, 32, 512):
        cumulative = np.cumsum(rng.exponential(size=(4, width)), axis=1).astype(np.float32)
        rows = rng.integers(4, size=300)
        targets = rng.uniform(0, 1, size=300) * cumulative[rows, -1]
        targets[:4], rows[:4] = 0.0, np.arange(4)
        if width > 1:
            targets[4:8], rows[4:8] = cumulative[:, 0], np.arange(4)
        expected = [
            np.searchsorted(cumulative[row], target, side="right")
            for row, target in zip(rows, targets, strict=True)
        ]
        found = first_above(cumulative.ravel(), rows * width, width, targets) - rows * width
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_stored_lists_do_not_change_what_is_drawn(space: EmbeddingSpace, epsilon: float) -> None:
    listed = space.build_neighbours(progress=False)
    drawn = [
        TruncatedExponential(each, epsilon).sample(np.arange(-1, 500), keyed_generator(11))
        for each in (space, listed)
    ]
    np.testing.assert_array_equal(*drawn)

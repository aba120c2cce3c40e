"""The exponential mechanisms draw what `probabilities` says, however they draw it."""

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import CalibratedExponential, TruncatedExponential
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.mechanisms.rejection import RowSampler, _first_above
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.shortlists import Shortlists
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
    """5000 words: too many for the mechanism to keep whole rows."""
    vectors = np.random.default_rng(4).normal(size=(5000, 3)).astype(np.float32)
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(5000)], vectors)


def counts_by_input(ids: Ids, drawn: Ids, size: int) -> dict[int, Ids]:
    return {k: np.bincount(drawn[ids == k], minlength=size) for k in np.unique(ids).tolist()}


def sampled(mechanism: ExponentialMechanism, key: int, *inputs: int) -> dict[int, Ids]:
    """Count what `sample` draws for each of the inputs, shuffled together."""
    rng = keyed_generator(key)
    ids = rng.permutation(np.repeat(inputs, DRAWS))
    return counts_by_input(ids, mechanism.sample(ids, rng), len(mechanism.space))


def rejection_sampled(
    mechanism: ExponentialMechanism, key: int, head: int, *inputs: int, **options: Any
) -> dict[int, Ids]:
    """Count what is drawn with a head of a few words and a tail of all others."""
    sampler = RowSampler(mechanism.space, mechanism._weights, head=head, **options)
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
@pytest.mark.parametrize("head", [1, 20, 120])
def test_head_and_tail(space: EmbeddingSpace, head: int, gamma: float | None) -> None:
    # The least γ truncates every distance, so that all words are equally likely.
    mechanism = TruncatedExponential(space, 1.5, gamma=gamma)
    check_counts(mechanism, rejection_sampled(mechanism, 2, head, *INPUTS))


def test_head_and_tail_of_the_calibrated_law(space: EmbeddingSpace) -> None:
    mechanism = CalibratedExponential(space, 1.5)
    check_counts(mechanism, rejection_sampled(mechanism, 3, 30, *INPUTS))


def test_head_and_tail_as_the_mechanism_uses_them(large_space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(large_space, 3.0)
    assert mechanism._rows._head < len(large_space)
    check_counts(mechanism, sampled(mechanism, 4, *INPUTS))


@pytest.mark.parametrize("factor", [2 / 3, 1.1, 3 / 2])
@pytest.mark.parametrize("head", [None, 20])
def test_another_slope_would_be_noticed(
    space: EmbeddingSpace, head: int | None, factor: float
) -> None:
    claimed = TruncatedExponential(space, 2.0)
    gamma = claimed.radius
    other = TruncatedExponential(space, 2.0 * factor, gamma=gamma)
    if head is None:
        counts = sampled(other, 5, 123)
    else:
        counts = rejection_sampled(other, 5, head, 123)
    check_counts(other, counts)
    with pytest.raises(RejectedError, match=r"chi-square .* n=30000, .* alpha=1e-06"):
        check_counts(claimed, counts)


def with_bounds_scaled(space: EmbeddingSpace, lower: float, beyond: float) -> EmbeddingSpace:
    """Return a space whose lists claim bounds that many times as large."""

    def shortlists(ids: Ids, k: int, device: str) -> Shortlists:
        lists = space.shortlists(ids, k, device)
        scaled = (lists.lower * lower).astype(np.float32)
        return Shortlists(lists.words, scaled, lists.beyond * beyond)

    claiming = copy.copy(vars(space))
    other = object.__new__(EmbeddingSpace)
    vars(other).update(claiming, shortlists=shortlists)
    return other


@pytest.mark.parametrize(("lower", "beyond"), [(0.9, 1.0), (1.0, 0.8), (0.7, 0.5), (0.01, 0.01)])
def test_loose_bounds_do_not_change_the_law(
    space: EmbeddingSpace, lower: float, beyond: float
) -> None:
    mechanism = TruncatedExponential(with_bounds_scaled(space, lower, beyond), 2.0)
    check_counts(mechanism, rejection_sampled(mechanism, 6, 20, *INPUTS))


@pytest.mark.parametrize(("lower", "beyond"), [(1.5, 1.0), (1.0, 1.5)])
def test_bounds_beyond_the_distances_would_be_noticed(
    space: EmbeddingSpace, lower: float, beyond: float
) -> None:
    mechanism = TruncatedExponential(with_bounds_scaled(space, lower, beyond), 2.0)
    counts = rejection_sampled(mechanism, 6, 20, 123)
    with pytest.raises(RejectedError, match="chi-square"):
        check_counts(mechanism, counts)


@pytest.mark.parametrize("head", [20, 500])
def test_law_survives_a_full_cache(space: EmbeddingSpace, head: int) -> None:
    mechanism = TruncatedExponential(space, 1.5)
    sampler = RowSampler(space, mechanism._weights, head, least_capacity=3, cache_bytes=1)
    rng, batches = keyed_generator(7), []
    groups = [(-1, 5, 123), *((word, word + 1, 123) for word in range(200, 230, 2))]
    for turn in range(48):
        ids = rng.permutation(np.resize(groups[turn % 16], 3000))
        drawn = sampler.draw(ids, RowStreams.single(rng, 3000), np.arange(3000))
        batches.append((ids, drawn))
        assert sampler._next <= len(sampler._words)
        assert (sampler._last < sampler._next).all()
    assert (sampler._last >= 0).sum() < 20
    ids, drawn = (np.concatenate(part) for part in zip(*batches, strict=True))
    for word, observed in counts_by_input(ids, drawn, len(space)).items():
        check_frequencies(observed, mechanism.probabilities([word])[0])


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


@pytest.mark.parametrize("head", [20, 500])
def test_draws_are_independent(space: EmbeddingSpace, head: int) -> None:
    mechanism = TruncatedExponential(space, 1.5)
    sampler = RowSampler(space, mechanism._weights, head)
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
    for head in (1, 2, 31, 32, 33, 124, 500):
        sampler = RowSampler(space, mechanism._weights, head)
        sampler._prepare(np.array(INPUTS))
        for word in INPUTS:
            places = slice(sampler._first[word] + 1, sampler._last[word] + 1)
            above = np.diff(sampler._cumulative[sampler._first[word] : places.stop])
            near = sampler._words[places][above > 0]
            assert len(np.unique(near)) == len(near)
            curve = np.full(500, sampler._common[word])
            curve[near] += above[above > 0]
            weights = mechanism._weights(space.pair_distances(np.full(500, word), range(500)))
            assert (curve >= weights * (1 - 1e-12)).all()
            # Nor far above it, where words are listed.
            np.testing.assert_allclose(curve[near], weights[near], rtol=1e-3)


def test_search_in_cumulative_weights_is_the_usual_one() -> None:
    rng = np.random.default_rng(10)
    for size in (1, 2, 3, 31, 32, 33):
        cumulative = np.cumsum(rng.exponential(size=(4, size)), axis=1)
        rows = rng.integers(4, size=300)
        targets = rng.uniform(0, 1, size=300) * cumulative[rows, -1]
        targets[:4], rows[:4] = 0.0, np.arange(4)
        if size > 1:
            targets[4:8], rows[4:8] = cumulative[:, 0], np.arange(4)
        expected = [
            row * size + np.searchsorted(cumulative[row], target, side="right")
            for row, target in zip(rows, targets, strict=True)
        ]
        first = rows * size
        found = _first_above(cumulative.ravel(), first, first + size - 1, targets)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("k", [1, 8, 64])
def test_stored_lists_do_not_change_the_law(space: EmbeddingSpace, k: int, epsilon: float) -> None:
    mechanism = TruncatedExponential(space.build_neighbours(k, progress=False), epsilon)
    check_counts(mechanism, sampled(mechanism, 11, *INPUTS))
    assert mechanism._rows._last[123] - mechanism._rows._first[123] == k

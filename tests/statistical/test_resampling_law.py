"""Resampling among the neighbours of the word found: ranks, weights, and nothing else."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.mechanisms.additive import NeighbourRanks
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import Array, RejectedError, check_frequencies

DRAWS = 40_000
# Words on a line, in order; two share a place, and ties are ranked by row.
POSITIONS = np.array([-1.4, -0.2, 0.3, 0.3, 1.1, 2.2])


def line(metric: str = "euclidean") -> EmbeddingSpace:
    places = POSITIONS if metric == "euclidean" else np.tanh(POSITIONS / 2)
    return EmbeddingSpace.from_vectors(list("abcdef"), places[:, None], metric)


def nearest_law(word: int, epsilon: float) -> Array:
    """Return the mass that Laplace noise puts on each word's cell; the first of a place has it."""
    distinct = np.delete(POSITIONS, 3)
    borders = (distinct[1:] + distinct[:-1]) / 2
    cdf = stats.laplace(loc=POSITIONS[word], scale=1 / epsilon).cdf
    return np.insert(np.diff(np.concatenate([[0.0], cdf(borders), [1.0]])), 3, 0.0)


def kernel(decay: float, neighbours: int) -> Array:
    """Return the probability of each output, (found, released)."""
    result = np.zeros((6, 6))
    for found in range(6):
        others = [k for k in range(6) if k != found]
        others.sort(key=lambda k, found=found: (abs(POSITIONS[k] - POSITIONS[found]), k))
        for rank, word in enumerate([found, *others][: neighbours + 1]):
            result[found, word] = np.exp(-decay * rank)
    return result / result.sum(axis=1, keepdims=True)


def draw(mechanism: Mechanism, word: int) -> Array:
    drawn = mechanism.sample(np.full(DRAWS, word), keyed_generator(3, word))
    return np.bincount(drawn, minlength=6)


CASES = [
    ("laplace", "euclidean", {}),
    ("mahalanobis", "euclidean", {"lam": 0.0}),
    ("hyperbolic", "poincare", {}),
]


@pytest.mark.parametrize(("name", "metric", "options"), CASES)
@pytest.mark.parametrize("neighbours", [2, 5, 100])
def test_released_words_have_the_law_of_both_steps(
    name: str, metric: str, options: dict[str, Any], neighbours: int
) -> None:
    epsilon, c = 1.3, 0.4
    mechanism = create_mechanism(
        name, line(metric), epsilon, resample=c, resample_neighbours=neighbours, **options
    )
    for word in (0, 3):
        observed, found = draw(mechanism, word), nearest_law(word, epsilon)
        check_frequencies(observed, found @ kernel(c * epsilon, neighbours))
        wrong = [kernel(c, neighbours), kernel(c * epsilon, 1), np.eye(6)]
        for other in wrong:
            with pytest.raises(RejectedError, match="chi-square"):
                check_frequencies(observed, found @ other)


def test_repeated_draws_have_the_same_law() -> None:
    mechanism = create_mechanism("laplace", line(), 1.3, resample=0.4, resample_neighbours=3)
    drawn = mechanism.sample_repeatedly([0, 3], DRAWS, keyed_generator(4))
    for word, row in zip((0, 3), drawn, strict=True):
        expected = nearest_law(word, 1.3) @ kernel(0.4 * 1.3, 3)
        check_frequencies(np.bincount(row, minlength=6), expected)


def test_neighbours_are_ranked_once_and_whatever_the_batch(
    euclidean_space: EmbeddingSpace,
) -> None:
    words = keyed_generator(0).integers(0, 500, 3000)
    uniform = keyed_generator(1).random(3000)
    together = NeighbourRanks(euclidean_space, 0.05, 40).resample(words, uniform)
    alone = NeighbourRanks(euclidean_space, 0.05, 40)
    one_by_one = [alone.resample(words[[k]], uniform[[k]])[0] for k in range(200)]
    np.testing.assert_array_equal(together[:200], one_by_one)
    np.testing.assert_array_equal(alone.resample(words, uniform), together)
    for word, rank in ((7, 1), (7, 40), (480, 13)):
        cumulative = np.cumsum(np.exp(-0.05 * np.arange(41)))
        between = (cumulative[rank - 1] + cumulative[rank]) / 2 / cumulative[-1]
        expected, _ = euclidean_space.neighbours(word, rank)[-1]
        found = alone.resample(np.array([word]), np.array([between]))[0]
        assert euclidean_space.words[found] == expected


def test_steep_weights_leave_the_word_found(euclidean_space: EmbeddingSpace) -> None:
    plain = create_mechanism("laplace", euclidean_space, 3.0)
    steep = create_mechanism("laplace", euclidean_space, 3.0, resample=100.0)
    ids = np.arange(-1, 500)
    rows = [RowStreams.single(keyed_generator(5), len(ids)) for _ in range(2)]
    np.testing.assert_array_equal(plain.sample(ids, rows[0]), steep.sample(ids, rows[1]))


def test_seeds_are_bound_to_resampling_only_where_there_is_any(
    euclidean_space: EmbeddingSpace,
) -> None:
    plain = create_mechanism("laplace", euclidean_space, 3.0, resample_neighbours=7)
    assert plain.noise_parameters == {"mechanism": "laplace", "epsilon": 3.0}
    resampled = create_mechanism("laplace", euclidean_space, 3.0, resample=0.5)
    added = {"resample": 0.5, "resample_neighbours": 100}
    assert resampled.noise_parameters == plain.noise_parameters | added
    assert resampled.guarantee.ldp_epsilon == plain.guarantee.ldp_epsilon
    assert any("exp(-0.5·ε·i), i up to 100" in text for text in resampled.guarantee.assumptions)

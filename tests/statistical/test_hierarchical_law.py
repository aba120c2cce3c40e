"""The hierarchical mechanism and randomized response draw what `probabilities` says."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import ExactMechanism, Hierarchical, create_mechanism
from hf_dxprivacy.mechanisms.hierarchical import Calibration
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from laws import ALPHA, RejectedError, check_frequencies

DRAWS = 60_000
# The unknown word, and three words.
INPUTS = (-1, 0, 123, 499)

Ids = NDArray[np.int64]


def chain_tree(size: int) -> Hierarchy:
    merges = np.stack([np.append(0, size + np.arange(size - 2)), np.arange(1, size)], axis=1)
    return Hierarchy.from_merges(merges, size)


@pytest.fixture(scope="module", params=["average", "chain", "star", "levels"])
def space(request: pytest.FixtureRequest, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    if request.param == "average":
        return euclidean_space.build_hierarchy(progress=False)
    if request.param == "chain":
        return euclidean_space.with_hierarchy(chain_tree(500))
    groups = 500 + (np.arange(500) // 25 if request.param == "levels" else np.zeros(500, int))
    above = np.full(groups.max() - 499, -1)
    return euclidean_space.with_hierarchy(
        Hierarchy.from_parents(np.concatenate([groups, above]), 500)
    )


def counts(mechanism: ExactMechanism, key: int) -> dict[int, Ids]:
    """Count what is drawn for each of the inputs, shuffled together, in many rows."""
    rng = keyed_generator(key)
    ids = rng.permutation(np.repeat(INPUTS, DRAWS))
    streams = RowStreams([keyed_generator(key, row) for row in range(100)], [len(ids) // 100] * 100)
    drawn = mechanism.sample(ids, streams)
    return {word: np.bincount(drawn[ids == word], minlength=500) for word in INPUTS}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.5])
def test_draws_follow_the_law_of_the_tree(space: EmbeddingSpace, epsilon: float) -> None:
    mechanism = Hierarchical(space, epsilon)
    for word, observed in counts(mechanism, 1).items():
        check_frequencies(observed, mechanism.probabilities([word])[0], ALPHA / 4)


@pytest.mark.parametrize("epsilon", [0.5, 6.0, 12.0])
def test_draws_of_randomized_response_follow_its_law(
    euclidean_space: EmbeddingSpace, epsilon: float
) -> None:
    mechanism = create_mechanism("krr", euclidean_space, epsilon)
    assert isinstance(mechanism, ExactMechanism)
    for word, observed in counts(mechanism, 2).items():
        check_frequencies(observed, mechanism.probabilities([word])[0], ALPHA / 4)


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
def test_another_slope_is_noticed_on_either_side(
    euclidean_space: EmbeddingSpace, factor: float
) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    mechanism, other = Hierarchical(space, 1.5), Hierarchical(space, 1.5)
    slope = factor * mechanism.inverse_temperature
    vars(other)["_calibration"] = Calibration(slope, 1.5)
    observed = counts(other, 3)
    for word in INPUTS[1:]:
        check_frequencies(observed[word], other.probabilities([word])[0], ALPHA / 4)
        with pytest.raises(RejectedError, match="chi-square"):
            check_frequencies(observed[word], mechanism.probabilities([word])[0], ALPHA / 4)

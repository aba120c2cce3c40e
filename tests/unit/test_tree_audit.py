"""`verify_guarantee` over a tree and of randomized response, and what it must not let pass."""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import Hierarchical, RandomizedResponse
from hf_dxprivacy.mechanisms.hierarchical import Calibration
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import verify_guarantee


@pytest.fixture(scope="module")
def space(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_hierarchy(progress=False)


@pytest.fixture(scope="module")
def large() -> EmbeddingSpace:
    """So many words that two outputs stand for all."""
    vectors = np.random.default_rng(0).normal(size=(700, 4))
    words = [f"w{k}" for k in range(700)]
    return EmbeddingSpace.from_vectors(words, vectors).build_hierarchy(progress=False)


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
def test_hierarchical_passes_at_its_very_level(space: EmbeddingSpace, epsilon: float) -> None:
    found = verify_guarantee(Hierarchical(space, epsilon))
    print(found)
    assert found.passed
    assert found.method == "exact"
    assert found.slack < 1e-6
    assert found.inputs == 501


def test_two_outputs_stand_for_all_in_a_large_vocabulary(large: EmbeddingSpace) -> None:
    for mechanism in (Hierarchical(large, 1.5), RandomizedResponse(large, 5.0)):
        found = verify_guarantee(mechanism)
        assert found.passed
        assert "the outputs that decide" in found.scope
        assert found.slack < 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_randomized_response_passes_at_its_very_level(
    euclidean_space: EmbeddingSpace, epsilon: float
) -> None:
    found = verify_guarantee(RandomizedResponse(euclidean_space, epsilon))
    assert found.passed
    assert found.allowed == epsilon
    assert found.slack < 1e-6


@pytest.mark.parametrize("method", ["exact", "sampling"])
def test_draws_pass_too(space: EmbeddingSpace, method: str) -> None:
    for mechanism in (Hierarchical(space, 1.5), RandomizedResponse(space, 4.0)):
        found = verify_guarantee(mechanism, method=method, inputs=20, rng=keyed_generator(1))
        assert found.passed, str(found)


class SteepTree(Hierarchical):
    """A slope that is 1 % larger than the exact level allows."""

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)
        self._calibration = Calibration(1.01 * self._calibration.inverse_temperature, epsilon)


class FarApart(Hierarchical):
    """Distances that claim more than the tree has."""

    def pair_distances(self, ids_a: np.ndarray, ids_b: np.ndarray) -> np.ndarray:
        """Return it, falsely."""
        return 0.5 * super().pair_distances(ids_a, ids_b)


class LowLocal(Hierarchical):
    """A local level that is 2 % too small."""

    @property
    def local_epsilon(self) -> float:
        """Return it, falsely."""
        return 0.98 * super().local_epsilon


class LowLevel(Hierarchical):
    """An exact level that is stated too small."""

    def exact_epsilon(self, progress: bool = False) -> float:
        """Return it, falsely."""
        return 0.9 * super().exact_epsilon(progress)


class OwnUnknown(Hierarchical):
    """The unknown word becomes the first word of the vocabulary."""

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """Return it, falsely."""
        rows = super().probabilities(ids)
        unknown = np.asarray(ids) < 0
        rows[unknown] = 1e-9
        rows[unknown, 0] = 1.0 - 1e-9 * (rows.shape[1] - 1)
        return rows


class StaysMore(RandomizedResponse):
    """Stays with a slightly larger probability."""

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """Return it, falsely."""
        rows = super().probabilities(ids)
        known = np.flatnonzero(np.asarray(ids) >= 0)
        rows[known, np.asarray(ids)[known]] *= 1.02
        return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [SteepTree, FarApart, LowLocal, LowLevel, OwnUnknown, StaysMore])
def test_faults_are_found(space: EmbeddingSpace, kind: type[Hierarchical]) -> None:
    found = verify_guarantee(kind(space, 1.5))
    print(found)
    assert not found.passed

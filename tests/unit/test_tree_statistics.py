"""N_w, S_w, K_w and entropies over a tree, from the clusters around each word."""

from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.calibration import privacy_statistics, suggest_epsilon
from hf_dxprivacy.calibration.statistics import Terms, by_law, by_tree
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Hierarchical, RandomizedResponse
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.hierarchy import Hierarchy


@pytest.fixture(scope="module", params=["average", "star"])
def space(request: pytest.FixtureRequest, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    if request.param == "average":
        return euclidean_space.build_hierarchy(progress=False)
    star = Hierarchy.from_parents(np.append(np.full(500, 500), -1), 500)
    return euclidean_space.with_hierarchy(star)


@pytest.mark.parametrize("eta", [0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.3, 1.5, 4.0])
def test_statistics_are_those_of_the_law(space: EmbeddingSpace, epsilon: float, eta: float) -> None:
    mechanism = Hierarchical(space, epsilon)
    terms = Terms(runs=200, eta=eta, confidence=0.95, count_inputs=True)
    ids = np.arange(500)
    found, expected = by_tree(mechanism, ids, terms), by_law(mechanism, ids, terms)
    np.testing.assert_allclose(found["kept"], expected["kept"], rtol=1e-12)
    np.testing.assert_allclose(found["likeliest"], expected["likeliest"], rtol=1e-12)
    np.testing.assert_allclose(found["distinct"], expected["distinct"], rtol=1e-9)
    # Where a sum is just enough, rounding decides.
    assert abs(found["support"] - expected["support"]).max() <= 1
    same = found["support"] == expected["support"]
    assert same.mean() > 0.99
    np.testing.assert_array_equal(found["outputs"][same], expected["outputs"][same])


def test_statistics_of_both_are_exact(space: EmbeddingSpace) -> None:
    for mechanism in (Hierarchical(space, 1.5), RandomizedResponse(space, 6.0)):
        found = privacy_statistics(mechanism, count_inputs=True, progress=False)
        assert found.exact
        law = mechanism.probabilities(np.arange(500))
        np.testing.assert_allclose(found.kept, np.diag(law), rtol=1e-12)
        np.testing.assert_allclose(found.min_entropy, -np.log2(law.max(axis=1)), rtol=1e-9)
        assert found.inputs is not None
        assert found.inputs.min() >= 1


def test_a_checkpoint_is_that_of_a_tree(euclidean_space: EmbeddingSpace, tmp_path: Path) -> None:
    one, other = (
        Hierarchical(euclidean_space.build_hierarchy(method, progress=False), 1.5)
        for method in ("average", "ward")
    )
    privacy_statistics(one, checkpoint=tmp_path, progress=False)
    with pytest.raises(InvalidValueError, match="with other tree; name another folder"):
        privacy_statistics(other, checkpoint=tmp_path, progress=False)


@pytest.mark.parametrize("name", ["hierarchical", "krr"])
def test_an_epsilon_is_suggested(euclidean_space: EmbeddingSpace, name: str) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    found = suggest_epsilon(space, name, max_nw=0.5, progress=False)
    assert found.exact
    assert found.worst.kept <= 0.5
    assert found.next_epsilon is not None
    kind = {"hierarchical": Hierarchical, "krr": RandomizedResponse}[name]
    above = privacy_statistics(kind(space, found.next_epsilon), progress=False)
    assert above.kept.max() > 0.5

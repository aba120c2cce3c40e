"""The peers keep what they state, by their exact laws over all pairs of 300 words.

The laws are worked out anew, from the papers' definitions.
"""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import ExactMechanism, SanText, Vickrey
from hf_dxprivacy.spaces import EmbeddingSpace
from peer_laws import largest_log_ratios, vickrey_on_a_line, worst_share

WORDS = [f"w{k}" for k in range(300)]


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    """300 words in eight dimensions, in clusters of uneven density, with a tree."""
    rng = np.random.default_rng(5)
    centers, of = 2.0 * rng.normal(size=(15, 8)), rng.integers(15, size=300)
    spread = rng.uniform(0.1, 1.2, size=15)[of, None]
    made = EmbeddingSpace.from_vectors(WORDS, centers[of] + spread * rng.normal(size=(300, 8)))
    return made.build_hierarchy(progress=False)


def with_unknown(space: EmbeddingSpace) -> np.ndarray:
    """Return the vectors of all inputs, the last of which is the unknown word."""
    return np.concatenate([space.vectors, space.centroid[None]]).astype(np.float64)


def euclidean(places: np.ndarray) -> np.ndarray:
    return np.stack([np.linalg.norm(places - place, axis=1) for place in places])


def stated(mechanism: ExactMechanism | Vickrey) -> np.ndarray:
    """Return the bounds that a mechanism states for all pairs of inputs."""
    ids = np.append(np.arange(len(mechanism.space)), -1)
    a, b = np.meshgrid(ids, ids)
    bounds = mechanism.certified_epsilon * mechanism.pair_distances(a.ravel(), b.ravel())
    return bounds.reshape(a.shape)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 300.0])
def test_santext(space: EmbeddingSpace, epsilon: float) -> None:
    mechanism, distances = SanText(space, epsilon), euclidean(with_unknown(space))
    inputs = np.append(np.arange(300), -1)
    laws = np.exp(-epsilon / 2.0 * (distances - distances.min(axis=1, keepdims=True))[:, :300])
    laws /= laws.sum(axis=1, keepdims=True)
    found = mechanism.probabilities(inputs)
    np.testing.assert_allclose(found, laws, atol=1e-9)
    if epsilon < 100:
        # Nowhere truncated: the paper's law to the last digit.
        np.testing.assert_allclose(found, laws, rtol=1e-6)
        assert worst_share(largest_log_ratios(laws), epsilon * distances) <= 1
    ratios = largest_log_ratios(found)
    share = worst_share(ratios, stated(mechanism))
    print(f"santext ε={epsilon}: {share:.4f} of ε·d")
    assert 0.5 < share <= 1
    assert mechanism.exact_epsilon() <= epsilon
    assert worst_share(ratios, mechanism.exact_epsilon() * distances) <= 1
    assert ratios.max() <= mechanism.guarantee.ldp_epsilon
    # Without the half it is not.
    doubled = SanText(space, 2 * epsilon).probabilities(inputs)
    assert worst_share(largest_log_ratios(doubled), stated(mechanism)) > 1


@pytest.mark.parametrize("t", [0.0, 0.5, 0.9, 1.0])
def test_vickrey_on_a_line(t: float) -> None:
    places = np.random.default_rng(3).normal(size=300).cumsum()
    line, epsilon = EmbeddingSpace.from_vectors(WORDS, places[:, None]), 0.5
    mechanism, inputs = Vickrey(line, epsilon, t), with_unknown(line)[:, 0]
    laws = vickrey_on_a_line(places, inputs, epsilon, t)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-9)
    ratios = largest_log_ratios(laws)
    share = worst_share(ratios, stated(mechanism))
    print(f"vickrey t={t}: {share:.4f} of ε·d")
    assert 0.9 < share <= 1 + 1e-6
    assert ratios.max() <= mechanism.guarantee.ldp_epsilon
    louder = vickrey_on_a_line(places, inputs, 1.1 * epsilon, t)
    assert worst_share(largest_log_ratios(louder), stated(mechanism)) > 1.01

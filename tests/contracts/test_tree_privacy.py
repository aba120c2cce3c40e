"""The hierarchical mechanism and randomized response keep ε·d for every pair of inputs, exactly.

Nothing is sampled: the laws of all inputs, the unknown word among them, are compared output by
output. Common clusters, weights and normalisers are worked out anew, naively, from the parents.
"""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from hf_dxprivacy.mechanisms.hierarchical import Hierarchical, calibrate, level
from hf_dxprivacy.mechanisms.randomized_response import RandomizedResponse
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.hierarchy import Hierarchy

# Extended precision where the platform has it, so that the reference is the better number.
Real = np.longdouble
SHAPES = ("binary", "chain", "star", "two levels", "multiway", "balanced", "duplicates")


def parents_of(shape: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the parents of a tree of a shape; words first."""
    if shape == "star":
        return np.append(np.full(size, size), -1)
    if shape == "two levels":
        groups = rng.integers(size + 1, size + 1 + math.isqrt(size), size=size)
        return np.concatenate([groups, [-1], np.full(math.isqrt(size), size)])
    if shape == "multiway":
        clusters = max(1, size // 3)
        above = [-1, *(rng.integers(size, size + k) for k in range(1, clusters))]
        return np.concatenate([rng.integers(size, size + clusters, size=size), above])
    alive = list(range(size))
    if shape == "duplicates":
        # A fifth of the words lie in one place.
        alive = alive[size // 5 :]
    parents = np.full(3 * size, -1)
    node = size
    while len(alive) > 1:
        if shape == "chain":
            a, b = alive.pop(), alive.pop()
        elif shape == "balanced":
            a, b = alive.pop(0), alive.pop(0)
        else:
            a, b = (alive.pop(int(rng.integers(len(alive)))) for _ in range(2))
        parents[[a, b]] = node
        alive.append(node)
        node += 1
    if shape == "duplicates" and size >= 5:
        parents[: size // 5] = parents[size // 5] if size > 5 else size
    return np.append(parents[:node], -1)[: max(node, size + 1)]


def tree_of(shape: str, size: int, seed: int) -> Hierarchy:
    return Hierarchy.from_parents(parents_of(shape, size, np.random.default_rng(seed)), size)


def naive_sizes(tree: Hierarchy) -> np.ndarray:
    """Return |C(x, y)| for all inputs x, the unknown word last, and all words y."""
    size = len(tree)
    common = np.full((size + 1, size), size + 1)
    # From the root down, the smaller clusters over the larger ones.
    for cluster in range(len(tree.sizes)):
        members = tree.members(cluster)
        common[np.ix_(members, members)] = len(members)
    common[np.arange(size), np.arange(size)] = 1
    return common


def log_law(common: np.ndarray, rate: float) -> np.ndarray:
    scores = -Real(rate) * np.log(common.astype(Real))
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def largest_ratios(logs: np.ndarray) -> np.ndarray:
    """Return, for all pairs of inputs, the largest |ln P(y|x)/P(y|x')| over outputs y."""
    if len(logs) > 100:
        assert np.isfinite(logs).all()
        return squareform(pdist(logs.astype(np.float64), "chebyshev"))
    return np.abs(logs[:, None] - logs).max(axis=2)


def distances(common: np.ndarray) -> np.ndarray:
    """Return d_T between all inputs."""
    size = common.shape[1]
    return np.log(np.column_stack([common, np.append(np.full(size, size + 1), 1)]).astype(Real))


def worst_share(ratios: np.ndarray, allowed: np.ndarray) -> float:
    apart = ~np.eye(len(ratios), dtype=bool)
    return float((ratios[apart] / allowed[apart]).max())


def space_with(tree: Hierarchy) -> EmbeddingSpace:
    words = [f"w{k}" for k in range(len(tree))]
    vectors = np.random.default_rng(0).normal(size=(len(tree), 3))
    return EmbeddingSpace.from_vectors(words, vectors).with_hierarchy(tree)


@pytest.mark.parametrize("epsilon", [0.01, 1.5, 4.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_log_ratio_exceeds_the_level(shape: str, epsilon: float) -> None:
    tree = tree_of(shape, 500, 1)
    mechanism = Hierarchical(space_with(tree), epsilon)
    common = naive_sizes(tree)
    inputs = np.append(np.arange(500), -1)
    law = mechanism.probabilities(inputs)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    logs = np.log(law.astype(Real))
    np.testing.assert_allclose(
        logs.astype(float), log_law(common, mechanism.inverse_temperature).astype(float), atol=1e-11
    )
    allowed = distances(common)
    a, b = (grid.ravel() for grid in np.meshgrid(inputs, inputs))
    np.testing.assert_allclose(
        mechanism.pair_distances(a, b), allowed.T.ravel().astype(float), rtol=1e-14
    )
    ratios = largest_ratios(logs)
    worst = worst_share(ratios, mechanism.guarantee.epsilon * allowed)
    print(f"{shape} ε={epsilon}: largest log-ratio {worst:.9f} of ε·d_T")
    assert worst <= 1 + 1e-11
    local = mechanism.guarantee.ldp_epsilon
    assert float(ratios.max()) <= local <= epsilon * math.log(500)
    # The level is met exactly, so that a slope that is 1 % larger fails.
    assert worst > 1 - 1e-6
    steeper = largest_ratios(log_law(common, 1.01 * mechanism.inverse_temperature))
    assert worst_share(steeper, epsilon * allowed) > 1.001
    assert mechanism.exact_epsilon() <= epsilon


@pytest.mark.parametrize("shape", SHAPES)
def test_level_is_the_largest_ratio_over_all_pairs(shape: str) -> None:
    for seed in range(29):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 60))
        tree = tree_of(shape, size, seed)
        common = naive_sizes(tree)
        for rate in (0.3, float(rng.uniform(0.5, 2.0)), 5.0):
            brute = worst_share(largest_ratios(log_law(common, rate)), distances(common))
            assert brute <= level(tree, rate), seed
            assert level(tree, rate) == pytest.approx(brute, abs=1e-12), seed


@pytest.mark.parametrize("epsilon", [1e-30, 1e-9, 1e-3, 30.0, 1e6, 1e300])
def test_extreme_levels_are_met(epsilon: float) -> None:
    tree = tree_of("binary", 200, 0)
    found = calibrate(tree, epsilon)
    assert epsilon / 2 <= found.inverse_temperature <= found.level <= epsilon
    if 1e-6 < epsilon < 1e6:
        common = naive_sizes(tree)
        with np.errstate(under="ignore"):
            ratios = largest_ratios(log_law(common, found.inverse_temperature))
        assert worst_share(ratios, distances(common)) <= found.level * (1 + 1e-12)
    law = Hierarchical(space_with(tree), epsilon).probabilities([0, -1])
    if epsilon < 1e-6:
        np.testing.assert_allclose(law, 1 / 200, rtol=1e-6)
    np.testing.assert_allclose(law[1], 1 / 200, rtol=1e-14)


def test_the_unknown_word_never_decides() -> None:
    for shape in SHAPES:
        tree = tree_of(shape, 40, 3)
        logs, allowed = log_law(naive_sizes(tree), 1.3), distances(naive_sizes(tree))
        with_it = worst_share(largest_ratios(logs), allowed)
        without = worst_share(largest_ratios(logs[:-1]), allowed[:-1, :-1])
        assert with_it == without
        to_unknown = largest_ratios(logs)[-1, :-1] / allowed[-1, :-1]
        assert to_unknown.max() < 1.3


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3.0, 12.0])
@pytest.mark.parametrize("size", [2, 3, 500])
def test_randomized_response_is_exactly_local(size: int, epsilon: float) -> None:
    words = [f"w{k}" for k in range(size)]
    mechanism = RandomizedResponse(EmbeddingSpace.from_vectors(words, np.eye(size, 3)), epsilon)
    law = mechanism.probabilities(np.append(np.arange(size), -1)).astype(Real)
    np.testing.assert_allclose(law.sum(axis=1).astype(float), 1.0, rtol=1e-12)
    ratios = largest_ratios(np.log(law))
    assert float(ratios.max()) == pytest.approx(epsilon, rel=1e-5, abs=1e-14)
    assert ratios.max() <= epsilon + 1e-14
    assert ratios[-1].max() <= epsilon
    assert mechanism.guarantee.ldp_epsilon == epsilon
    stays = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    assert float(law[0, 0]) == pytest.approx(stays, rel=1e-12)

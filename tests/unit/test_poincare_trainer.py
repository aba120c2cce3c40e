"""Training in the Poincaré ball on hierarchies small enough to know the answer."""

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.evaluation import reconstruction
from hf_dxprivacy.training.poincare import (
    Epoch,
    PoincareRecipe,
    alias_table,
    train_poincare,
)
from hf_dxprivacy.training.relations import Relations

RECIPE = PoincareRecipe(epochs=60, learning_rate=0.3, negatives=15, seed=3)


def _tree(depth: int) -> Relations:
    """Return the closure of a binary tree; node 1 is the root, 2i and 2i + 1 are below i."""
    pairs = [
        (f"n{node}", f"n{node >> up}")
        for node in range(1, 2**depth)
        for up in range(1, node.bit_length())
    ]
    return Relations.from_names(pairs, nodes=[f"n{node}" for node in range(1, 2**depth)])


@pytest.fixture(scope="module")
def trained() -> tuple[EmbeddingSpace, list[Epoch]]:
    epochs: list[Epoch] = []
    space = train_poincare(_tree(6), 5, RECIPE, threads=1, progress=False, on_epoch=epochs.append)
    return space, epochs


def test_the_loss_falls(trained: tuple[EmbeddingSpace, list[Epoch]]) -> None:
    _, epochs = trained
    assert [epoch.number for epoch in epochs] == list(range(1, 61))
    assert epochs[-1].loss < 0.3 * epochs[0].loss
    assert all(epoch.relations_per_second > 0 for epoch in epochs)


def test_the_hierarchy_is_reconstructed(trained: tuple[EmbeddingSpace, list[Epoch]]) -> None:
    space, _ = trained
    result = reconstruction(space, _tree(6))
    assert result.mean_average_precision > 0.95
    assert result.mean_rank < 1.2
    assert result.nodes == 62


def test_the_root_is_central_and_leaves_are_not(
    trained: tuple[EmbeddingSpace, list[Epoch]],
) -> None:
    space, _ = trained
    norms = np.linalg.norm(space.vectors, axis=1)
    depth = [int(word[1:]).bit_length() for word in space.words]
    assert norms[0] == norms.min()
    assert stats.spearmanr(norms, depth).statistic > 0.7
    assert norms.max() < 1.0


def test_the_space_says_how_it_was_trained(trained: tuple[EmbeddingSpace, list[Epoch]]) -> None:
    space, _ = trained
    assert (space.metric, space.scale, space.vectors.dtype) == ("poincare", 1.0, np.float64)
    assert space.provenance["recipe"]["seed"] == 3
    assert space.provenance["recipe"]["dim"] == 5


def test_one_thread_and_a_seed_give_the_same_points(
    trained: tuple[EmbeddingSpace, list[Epoch]],
) -> None:
    again = train_poincare(_tree(6), 5, RECIPE, threads=1, progress=False)
    assert np.array_equal(again.vectors, trained[0].vectors)
    other = PoincareRecipe(epochs=1, seed=4)
    first = train_poincare(_tree(6), 5, other, threads=1, progress=False)
    assert not np.allclose(first.vectors, trained[0].vectors)


def test_several_threads_learn_as_well() -> None:
    space = train_poincare(_tree(6), 5, RECIPE, threads=3, progress=False)
    assert reconstruction(space, _tree(6)).mean_average_precision > 0.95


def test_sharpness_keeps_points_from_the_boundary() -> None:
    recipe = PoincareRecipe(epochs=60, learning_rate=0.1, negatives=15, seed=3, sharpness=3.0)
    space = train_poincare(_tree(6), 5, recipe, threads=1, progress=False)
    blunt = train_poincare(_tree(6), 5, RECIPE, threads=1, progress=False)
    assert space.radius < 0.8 * blunt.radius
    assert reconstruction(space, _tree(6)).mean_average_precision > 0.9


def test_a_step_follows_the_gradient_of_the_loss() -> None:
    """One pair, one possible negative: compare with finite differences of Eq. 6."""
    from hf_dxprivacy.training import sgd

    points = np.array([[0.3, 0.2], [-0.1, 0.4], [0.5, -0.3]])
    rate, before = 1e-6, points.copy()
    graph = (np.array([0, 1, 1, 1]), np.array([1]), np.array([0.0, 0.0, 1.0]), np.array([2, 2, 2]))
    state = np.array([5], dtype=np.uint64)
    loss = sgd.train(points, np.array([[0, 1]]), *graph, 1, 1.0, rate, state)
    assert loss == pytest.approx(_loss(before))
    conformal = ((1.0 - (before**2).sum(axis=1, keepdims=True)) / 2.0) ** 2
    expected = -rate * conformal * _numerical_gradient(before)
    # The negative's step is taken after it was measured, so all three start from `before`.
    np.testing.assert_allclose(points - before, expected, rtol=1e-4, atol=1e-12)


def _loss(points: np.ndarray) -> float:
    def distance(a: np.ndarray, b: np.ndarray) -> float:
        gaps = (1.0 - a @ a) * (1.0 - b @ b)
        return float(np.arccosh(1.0 + 2.0 * ((a - b) @ (a - b)) / gaps))

    weights = np.exp([-distance(points[0], points[1]), -distance(points[0], points[2])])
    return float(-np.log(weights[0] / weights.sum()))


def _numerical_gradient(points: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(points)
    for place in np.ndindex(*points.shape):
        step = np.zeros_like(points)
        step[place] = 1e-6
        gradient[place] = (_loss(points + step) - _loss(points - step)) / 2e-6
    return gradient


def test_learning_rate_burns_in_and_falls() -> None:
    recipe = PoincareRecipe(epochs=20, burn_in=10, learning_rate=1.0, final_rate=0.5)
    assert recipe.rate(0) == pytest.approx(0.1)
    assert recipe.rate(10) == pytest.approx(1.0)
    assert recipe.rate(19) == pytest.approx(0.55)


def test_alias_table_holds_the_distribution() -> None:
    weights = np.array([5.0, 0.0, 1.0, 2.5, 1.5])
    threshold, alias = alias_table(weights)
    shares = threshold.copy()
    np.add.at(shares, alias, 1.0 - threshold)
    np.testing.assert_allclose(shares / len(weights), weights / weights.sum(), atol=1e-15)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least one relation"):
        train_poincare(Relations.from_names([], nodes=["a", "b"]), progress=False)
    with pytest.raises(InvalidValueError, match="2 of 2 relations pair a node with itself"):
        train_poincare(Relations.from_names([("a", "a"), ("b", "b")]), progress=False)
    with pytest.raises(InvalidValueError, match=r"1 of 3 nodes have no relation.*among"):
        train_poincare(Relations.from_names([("a", "b")], nodes=["c"]), progress=False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs >= 1"),
        ({"negatives": 0}, "negatives >= 1"),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"sharpness": -1.0}, "sharpness > 0"),
        ({"final_rate": 1.5}, "final_rate <= 1"),
    ],
)
def test_settings_are_checked(setting: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        PoincareRecipe(**setting)


def test_reconstruction_of_a_known_ranking() -> None:
    """On a line, from a: b at 1, c at 2, d at 3; the classes of a are b and d."""
    space = EmbeddingSpace.from_vectors(list("abcd"), np.array([[0.0], [1.0], [2.0], [3.0]]))
    relations = Relations.from_names([("a", "b"), ("a", "d")], nodes="abcd")
    result = reconstruction(space, relations)
    assert result.mean_average_precision == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert result.mean_rank == pytest.approx((1 + 2) / 2)
    with pytest.raises(InvalidValueError, match="1 nodes that are not among its 4 words"):
        reconstruction(space, Relations.from_names([("a", "z")]))

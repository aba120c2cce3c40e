"""Training in the Poincaré ball on hierarchies small enough to know the answer."""

import importlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training import kernels
from hf_dxprivacy.training.descent import alias_table
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.poincare import Epoch, train_poincare
from hf_dxprivacy.training.ranking import reconstruction
from hf_dxprivacy.training.relations import Relations

CONFIG = PoincareConfig(epochs=60, learning_rate=0.2, negatives=15, seed=3)


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
    space = train_poincare(_tree(6), 5, CONFIG, threads=1, progress=False, on_epoch=epochs.append)
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
    config = PoincareConfig(**_settings(trained[0]))
    again = train_poincare(_tree(6), 5, config, threads=1, progress=False)
    assert np.array_equal(again.vectors, trained[0].vectors)
    other = PoincareConfig(epochs=1, seed=4)
    first = train_poincare(_tree(6), 5, other, threads=1, progress=False)
    assert not np.allclose(first.vectors, trained[0].vectors)


def _settings(space: EmbeddingSpace) -> dict[str, Any]:
    names = {field.name for field in fields(PoincareConfig)}
    return {name: value for name, value in space.provenance["recipe"].items() if name in names}


def test_several_threads_learn_as_well() -> None:
    space = train_poincare(_tree(6), 5, CONFIG, threads=3, progress=False)
    assert reconstruction(space, _tree(6)).mean_average_precision > 0.95


def test_sharpness_keeps_points_from_the_boundary() -> None:
    config = replace(CONFIG, sharpness=3.0, learning_rate=0.1)
    space = train_poincare(_tree(6), 5, config, threads=1, progress=False)
    blunt = train_poincare(_tree(6), 5, CONFIG, threads=1, progress=False)
    assert space.radius < 0.8 * blunt.radius
    assert reconstruction(space, _tree(6)).mean_average_precision > 0.9


def test_learning_rate_burns_in_and_falls() -> None:
    config = PoincareConfig(epochs=20, burn_in=10, learning_rate=1.0, final_rate=0.5)
    assert config.rate(0) == pytest.approx(0.1)
    assert config.rate(10) == pytest.approx(1.0)
    assert config.rate(19) == pytest.approx(0.55)


def test_settings_change_for_the_refinement() -> None:
    config = PoincareConfig(epochs=20, final_rate=0.5, refinement=4, refinement_rate=0.02)
    assert config.all_epochs == 24
    assert [config.rate(epoch) for epoch in (20, 22)] == pytest.approx([0.02, 0.015])
    assert [config.near(epoch) for epoch in (20, 23)] == [50, 50]
    assert [config.sharpness_at(epoch) for epoch in (19, 20)] == [1.0, 4.0]
    weighted = replace(config, refinement_rank_weight=3.0)
    assert [weighted.ranks(epoch) for epoch in (19, 20)] == [0.0, 3.0]
    # It comes after the epochs, whether they were enough for the burn-in or not.
    short = replace(config, epochs=2, burn_in=10)
    assert [short.rate(epoch) for epoch in (1, 2)] == pytest.approx([0.005, 0.02])


def test_small_graphs_get_more_epochs() -> None:
    sizes = (7, 6_542, 200_000, 743_241, 10**8)
    chosen = [PoincareConfig.for_size(size) for size in sizes]
    assert [config.epochs for config in chosen] == [600, 600, 370, 100, 100]
    assert [config.learning_rate for config in chosen] == [0.03, 0.03, 0.03, 0.05, 0.05]
    given = PoincareConfig.for_size(7, epochs=5, seed=2)
    assert (given.epochs, given.learning_rate, given.seed) == (5, 0.03, 2)
    with pytest.raises(InvalidValueError, match="epochs >= 1"):
        PoincareConfig.for_size(7, epochs=0)
    space = train_poincare(_tree(3), 2, progress=False)
    assert space.provenance["recipe"]["stopped"] == 600


def test_near_negatives_grow_after_the_burn_in() -> None:
    config = PoincareConfig(epochs=20, burn_in=10, near_negatives=0.5, negatives=200)
    assert [config.near(epoch) for epoch in (9, 10, 19)] == [0, 0, 81]


def test_training_stops_when_the_reconstruction_gets_no_better() -> None:
    """The best of the points that were looked at come back, not the last."""
    config = replace(CONFIG, epochs=1000, burn_in=10, check_every=10, patience=2)
    epochs: list[Epoch] = []
    space = train_poincare(_tree(5), 5, config, threads=1, progress=False, on_epoch=epochs.append)
    looks = [e.reconstruction.mean_average_precision for e in epochs if e.reconstruction]
    assert len(epochs) == space.provenance["recipe"]["stopped"] == 10 * len(looks) < 1000
    assert max(looks) == looks[-3] > 0.9
    assert max(looks[-2:]) <= looks[-3]
    np.testing.assert_array_equal(space.vectors, epochs[-21].points)


def test_alias_table_holds_the_distribution() -> None:
    weights = np.array([5.0, 0.0, 1.0, 2.5, 1.5])
    threshold, alias = alias_table(weights)
    shares = threshold.copy()
    np.add.at(shares, alias, 1.0 - threshold)
    np.testing.assert_allclose(shares / len(weights), weights / weights.sum(), atol=1e-15)
    assert len(alias_table(np.ones(3)).alias) == 0


def test_what_was_compiled_is_kept_where_there_is_a_folder_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def twice(x):\n    return 2 * x\n"
    (tmp_path / "doubling.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    kept = importlib.import_module("doubling")
    for run in range(2):
        twice: Any = kernels.compiled()(kept.twice)
        assert twice(3) == 6
        assert sum(twice.stats.cache_hits.values()) == run
    # What comes from no file has no folder either.
    nowhere: dict[str, Any] = {}
    exec(source, nowhere)
    assert kernels.compiled()(nowhere["twice"])(3) == 6


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"at least one relation.*lower min_frequency"):
        train_poincare(Relations.from_names([], nodes=["a", "b"]), progress=False)
    with pytest.raises(InvalidValueError, match="2 of 2 relations pair a node with itself"):
        train_poincare(Relations.from_names([("a", "a"), ("b", "b")]), progress=False)


@pytest.mark.parametrize("others", [[], [("c", "d")]])
def test_parts_that_nothing_joins_are_refused(others: list[tuple[str, str]]) -> None:
    relations = Relations.from_names([("a", "top"), ("b", "top"), *others], nodes=["c", "d"])
    message = rf"{2 if others else 3} parts .* largest of 3 nodes and the others of 2 together"
    with pytest.raises(InvalidValueError, match=message):
        train_poincare(relations, progress=False)
    with pytest.raises(InvalidValueError, match=r"largest_component\(\).*--largest-component"):
        train_poincare(relations, progress=False)
    config = replace(CONFIG, epochs=1)
    space = train_poincare(relations.largest_component(), 2, config, progress=False)
    assert space.words == ("a", "b", "top")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epochs": 0}, "epochs >= 1"),
        ({"negatives": 0}, "negatives >= 1"),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"sharpness": -1.0}, "sharpness > 0"),
        ({"final_rate": 1.5}, "final_rate <= 1"),
        ({"near_negatives": -0.1}, "0.0 <= near_negatives"),
        ({"patience": 0}, "patience >= 1"),
        ({"refinement": -1}, "refinement >= 0"),
        ({"refinement_rate": 0.0}, "refinement_rate > 0"),
        ({"refinement_sharpness": 0.0}, "refinement_sharpness > 0"),
        ({"refinement_rank_weight": -1.0}, "0.0 <= refinement_rank_weight <= 1000.0"),
    ],
)
def test_settings_are_checked(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        PoincareConfig(**setting)

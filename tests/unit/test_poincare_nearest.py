"""The nearest nodes that a node is compared with in the refinement of Poincaré training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hf_dxprivacy.spaces.metrics import pair_distances
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training import descent, kernels, torch_trainer
from hf_dxprivacy.training.descent import EPOCHS, nearest_others
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.poincare import Epoch, train_poincare
from hf_dxprivacy.training.ranking import reconstruction
from hf_dxprivacy.training.relations import Relations

# The closure of a binary tree; node 1 is the root.
TREE = Relations.from_names(
    (f"n{node}", f"n{node >> up}") for node in range(1, 512) for up in range(1, node.bit_length())
)
CONFIG = PoincareConfig(
    epochs=200, learning_rate=0.1, negatives=20, refinement=25, refinement_rate=0.05, seed=3
)


def _points(nodes: int) -> np.ndarray:
    points = np.random.default_rng(7).normal(size=(nodes, 3))
    return 0.999 * points / (1.0 + np.linalg.norm(points, axis=1, keepdims=True))


def _train(config: PoincareConfig = CONFIG, **options: Any) -> EmbeddingSpace:
    return train_poincare(TREE, 5, config, threads=1, progress=False, **options)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("listed", [1, 20, 300, 1000])
def test_lists_hold_the_nearest_nodes_that_are_no_classes(listed: int, threads: int) -> None:
    graph = descent.graph_of(TREE.pairs, 511)
    points = _points(511)
    lists = nearest_others(points, graph, threads, listed)
    assert lists.shape == (511, min(listed, 511 - 1 - 8))
    for node in range(511):
        distances = pair_distances(np.broadcast_to(points[node], points.shape), points)
        distances[[node, *TREE.pairs[TREE.pairs[:, 0] == node, 1]]] = np.inf
        nearest = np.sort(distances)[: lists.shape[1]]
        np.testing.assert_allclose(distances[lists[node]], nearest, rtol=1e-9)
        assert len(set(lists[node].tolist())) == lists.shape[1]


def test_there_may_be_no_others() -> None:
    chain = Relations.from_names([("c", "b"), ("c", "a"), ("b", "a")])
    graph = descent.graph_of(chain.pairs, 3)
    assert nearest_others(_points(3), graph, 1).shape == (3, 0)
    config = PoincareConfig(epochs=2, refinement=2)
    assert len(train_poincare(chain, 2, config, progress=False)) == 3


def test_the_compiled_loop_draws_from_the_lists() -> None:
    lists = np.tile(np.array([5, 9, 40], dtype=np.int32), (511, 1))
    graph = descent.graph_of(TREE.pairs, 511)._replace(nearest=lists)
    node = TREE.nodes.index("n300")
    group, state = np.empty(4000, dtype=np.int64), np.array([1], dtype=np.uint64)
    table = descent.alias_table(np.ones(511))
    even, count = kernels.fill_group(node, group, 3001, 3000, graph, table, state)
    drawn = group[8:even]
    assert (even, count) == (8 + 3000, 8 + 3001)
    bound = 6.0 * np.sqrt(3000 * 2 / 9)
    for row in (5, 9, 40):
        assert abs(np.count_nonzero(drawn == row) - 1000) < bound


def test_torch_draws_from_the_lists() -> None:
    trainer = torch_trainer.TorchDescent(TREE, replace(CONFIG, negatives=3000), "cpu")
    trainer.nearest = torch.tensor([[5, 9, 40]]).expand(511, 3)
    generator = torch.Generator().manual_seed(1)
    drawn = trainer._draw(torch.tensor([300, 301]), CONFIG.epochs, generator)
    others = drawn[(drawn != 5) & (drawn != 9) & (drawn != 40)]
    # Half of the draws, less the few of the even ones that are among the lists by chance.
    assert 0.0 <= 0.5 - len(others) / drawn.numel() < 0.01
    assert torch.isin(drawn[:, :1500], trainer.nearest[0]).all()


def test_refinement_improves_the_reconstruction() -> None:
    epochs: list[Epoch] = []
    refined = reconstruction(_train(on_epoch=epochs.append), TREE)
    as_long = replace(CONFIG, epochs=CONFIG.all_epochs, refinement=0)
    plain = reconstruction(_train(as_long), TREE)
    assert len(epochs) == 225
    assert refined.mean_rank - 1.0 < 0.8 * (plain.mean_rank - 1.0)


@pytest.mark.parametrize(
    ("negatives", "weight", "rate"), [(1, 0.0, 0.3), (2, 0.0, 1e-5), (2, 5.0, 1e-5)]
)
def test_a_step_with_torch_is_that_of_the_compiled_loop(
    negatives: int, weight: float, rate: float
) -> None:
    """All that can be drawn is the last node; torch sums its steps before it takes them."""
    four = Relations(("a", "b", "c", "d"), np.array([[0, 1], [0, 2], [3, 1]]))
    config = replace(
        CONFIG, negatives=negatives, refinement_rate=rate, refinement_rank_weight=weight
    )
    lists, weights = np.full((4, 1), 3, dtype=np.int32), np.array([0.0, 0.0, 0.0, 1.0])
    start = 2.0 * np.random.default_rng(1).normal(size=(4, 3))

    expected, seed = start.copy(), np.array([5], dtype=np.uint64)
    graph = descent.graph_of(four.pairs, 4)._replace(nearest=lists)
    table = descent.alias_table(weights)
    settings = (negatives, negatives // 2, 4.0, rate, weight)
    kernels.train(expected, np.array([0]), graph, table, *settings, seed)
    trainer = torch_trainer.TorchDescent(four, config, "cpu")
    trainer.weights, trainer.nearest = torch.from_numpy(weights), torch.from_numpy(lists)
    points = torch.from_numpy(start.copy())
    trainer._step(points, torch.tensor([0]), CONFIG.epochs, torch.Generator())
    assert not np.allclose(expected, start, rtol=rate / 10.0, atol=0.0)
    np.testing.assert_allclose(points.numpy(), expected, rtol=1e-7, atol=1e-9)


def test_refinement_with_torch_goes_through() -> None:
    config = replace(CONFIG, epochs=2, refinement=2)
    assert np.isfinite(_train(config, device="cpu").vectors).all()


@pytest.mark.parametrize("epochs", [CONFIG.epochs, CONFIG.epochs + EPOCHS // 2])
def test_an_interrupted_refinement_goes_on_to_the_same_points(
    tmp_path: Path, epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A checkpoint after every epoch, however long writing takes.
    monkeypatch.setattr("hf_dxprivacy.training.descent.SHARE", 1e9)

    def stop(epoch: Epoch) -> None:
        if epoch.number == epochs:
            raise KeyboardInterrupt

    path = tmp_path / "training.npz"
    first = replace(CONFIG, epochs=5)
    whole = _train(first)
    epochs -= CONFIG.epochs - first.epochs
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        _train(first, checkpoint=path, on_epoch=stop)
    np.testing.assert_array_equal(_train(first, checkpoint=path).vectors, whole.vectors)


def test_points_that_were_lost_do_not_stop_the_search() -> None:
    points = _points(511)
    points[::2] = np.nan
    assert nearest_others(points, descent.graph_of(TREE.pairs, 511), 1).shape == (511, 256)

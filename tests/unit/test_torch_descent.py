"""Poincaré training with torch, here on the processor, beside the compiled loop."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.training import (
    Epoch,
    PoincareConfig,
    Relations,
    descent,
    kernels,
    reconstruction,
    torch_trainer,
    train_poincare,
)

CONFIG = PoincareConfig(epochs=60, learning_rate=0.2, negatives=15, seed=3)
TREE = Relations.from_names(
    (f"n{node}", f"n{node >> up}") for node in range(1, 64) for up in range(1, node.bit_length())
)
# Node 0 with the classes 1 and 2, and node 3 left to draw.
FOUR = Relations(("a", "b", "c", "d"), np.array([[0, 1], [0, 2], [3, 1]]))


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    """Keep torch from spreading small sums over threads, where orders differ."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("radius", [0.3, 3.0, 9.0])
@pytest.mark.parametrize("sharpness", [1.0, 2.5])
def test_a_step_of_one_node_is_that_of_the_compiled_loop(radius: float, sharpness: float) -> None:
    rng = np.random.default_rng(1)
    start = np.sinh(radius) * rng.normal(size=(1, 3)) + rng.normal(size=(4, 3))
    config = replace(CONFIG, sharpness=sharpness, burn_in=0, learning_rate=0.3, negatives=1)
    only_the_last = np.array([0.0, 0.0, 0.0, 1.0])

    expected, seed = start.copy(), np.array([5], dtype=np.uint64)
    graph, table = descent.graph_of(FOUR.pairs, 4), descent.alias_table(only_the_last)
    loss = kernels.train(expected, np.array([0]), graph, table, 1, 0, sharpness, 0.3, 0.0, seed)
    trainer = torch_trainer.TorchDescent(FOUR, config, "cpu")
    trainer.weights = torch.from_numpy(only_the_last)
    points = torch.from_numpy(start.copy())
    assert float(trainer._step(points, torch.tensor([0]), 0, torch.Generator())) == (
        pytest.approx(loss, rel=1e-9)
    )
    assert not np.allclose(expected, start)
    np.testing.assert_allclose(points.numpy(), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("near", "exponent", "expected"),
    [
        (0.0, 0.0, np.array([0, 0, 1, 1, 0, 1, 1]) / 7),
        # Degrees are 4, 2, 2, 1, 2, 3 and 2.
        (0.0, 1.0, np.array([0, 0, 2, 1, 0, 3, 2]) / 16),
        # By 0 any of its four members, by 1 one of its two.
        (1.0, 0.0, np.array([0, 0, 1 / 8, 0, 0, 1 / 8 + 1 / 4, 1 / 8]) + 0.0),
    ],
)
def test_negatives_are_drawn_as_asked(near: float, exponent: float, expected: Any) -> None:
    pairs = np.array([[2, 0], [4, 0], [4, 1], [5, 0], [5, 1], [6, 0], [6, 3], [2, 5]])
    relations = Relations(tuple("abcdefg"), pairs)
    config = PoincareConfig(
        epochs=1, burn_in=0, negatives=20_000, negative_exponent=exponent, near_negatives=near
    )
    trainer = torch_trainer.TorchDescent(relations, config, "cpu")
    nodes = torch.tensor([2, 4])
    drawn = trainer._draw(nodes, 1, torch.Generator().manual_seed(1))
    counts = torch.bincount(drawn[~trainer._is_above(nodes, drawn) & (nodes == 4)[:, None]])
    bound = 6.0 * np.sqrt(20_000 * expected * (1.0 - expected))
    assert (np.abs(np.pad(counts, (0, 7 - len(counts))) - 20_000 * expected) <= bound).all()


def test_a_hierarchy_is_learned_as_well_as_by_the_compiled_loop() -> None:
    options: dict[str, Any] = {"threads": 1, "progress": False}
    space = train_poincare(TREE, 5, CONFIG, device="cpu", **options)
    compiled = train_poincare(TREE, 5, CONFIG, **options)
    found, beside = (reconstruction(each, TREE) for each in (space, compiled))
    assert found.mean_average_precision > max(0.95, beside.mean_average_precision - 0.02)
    assert found.mean_rank < beside.mean_rank + 0.1
    assert space.provenance["recipe"]["device"] == "cpu"
    assert "threads" not in space.provenance["recipe"]


def test_a_seed_gives_the_same_points() -> None:
    first, again, other = (
        train_poincare(
            TREE, 5, replace(CONFIG, epochs=3, seed=seed), device="cpu", progress=False
        ).vectors
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("devices", [(None, "cpu"), ("cpu", None)])
def test_what_one_way_has_begun_the_other_ends(
    tmp_path: Path, devices: tuple[str | None, str | None]
) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "training.npz", "progress": False}
    numbers: list[int] = []

    def stop(epoch: Epoch) -> None:
        numbers.append(epoch.number)
        if epoch.number == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train_poincare(TREE, 5, CONFIG, device=devices[0], on_epoch=stop, **options)
    space = train_poincare(
        TREE, 5, CONFIG, device=devices[1], on_epoch=lambda e: numbers.append(e.number), **options
    )
    assert numbers[20] > 1
    assert numbers[-1] == CONFIG.epochs
    assert reconstruction(space, TREE).mean_average_precision > 0.95


def test_points_stay_within_the_largest_norm() -> None:
    points = torch.tensor([[1e12, 0.0], [9e11, 1e6], [-8e11, 3.0], [0.0, 0.0]]).double()
    trainer = torch_trainer.TorchDescent(FOUR, replace(CONFIG, learning_rate=5.0), "cpu")
    for number in range(20):
        trainer._step(points, torch.tensor([0, 3]), number, torch.Generator())
    assert points.isfinite().all()
    assert points.norm(dim=1).max() <= kernels.LARGEST_NORM * (1.0 + 1e-15)


def test_what_torch_can_not_do_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"device that torch has .* got 'abacus'"):
        train_poincare(TREE, config=CONFIG, device="abacus", progress=False)

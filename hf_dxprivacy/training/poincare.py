"""Trains points of the Poincaré ball so that nodes come close to what they are a kind of.

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy import _validate
from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.relations import Relations

# Start of every coordinate in [N]: uniform between plus and minus this.
START = 1e-3


@dataclass(frozen=True)
class PoincareRecipe:
    """Settings of `train_poincare`.

    Attributes:
        epochs: Passes over the relations, burn-in included.
        learning_rate: Longest step, in hyperbolic distance over `sharpness`, after the burn-in;
            falls linearly to `final_rate` times that.
        final_rate: See `learning_rate`.
        burn_in: Epochs at the start with a tenth of the learning rate.
        negatives: Nodes drawn against each relation.
        negative_exponent: Negatives are drawn in proportion to degree to this power.
        sharpness: Factor on distances in the loss; [N] has 1. With larger ones less distance is
            enough to tell nodes apart, so that points stay away from the boundary.
        seed: Of the start, the order and the negatives.
    """

    epochs: int = 100
    learning_rate: float = 0.5
    final_rate: float = 0.1
    burn_in: int = 10
    negatives: int = 50
    negative_exponent: float = 0.75
    sharpness: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.at_least(1, epochs=self.epochs, negatives=self.negatives)
        _validate.at_least(0, burn_in=self.burn_in, seed=self.seed)
        _validate.positive(learning_rate=self.learning_rate, sharpness=self.sharpness)
        _validate.within(0.0, 1.0, final_rate=self.final_rate)
        _validate.within(0.0, 10.0, negative_exponent=self.negative_exponent)

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        if epoch < self.burn_in:
            return self.learning_rate / 10.0
        passed = (epoch - self.burn_in) / max(1, self.epochs - self.burn_in)
        return self.learning_rate * (1.0 + passed * (self.final_rate - 1.0))


@dataclass(frozen=True)
class Epoch:
    """What one pass over the relations did.

    Attributes:
        number: Counted from 1.
        loss: Mean loss of a relation.
        relations_per_second: Speed of the pass.
        points: (N, n) the points after it; they change with the next pass.
    """

    number: int
    loss: float
    relations_per_second: float
    points: NDArray[np.float64]


def train_poincare(
    relations: Relations,
    dim: int = 10,
    recipe: PoincareRecipe | None = None,
    *,
    threads: int | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> EmbeddingSpace:
    """Train a Poincaré space by Riemannian gradient descent on the loss of [N], Eq. 6.

    Args:
        relations: Pairs of a node and a class of it; the closure, to rebuild a whole hierarchy.
        dim: Number of dimensions n of the ball.
        recipe: Settings.
        threads: Threads that change the points without locks; by default all processors. One
            thread gives the same points whenever the seed is the same.
        progress: Show a progress bar with the loss and the speed.
        on_epoch: Called after every epoch.

    Returns:
        A space with the nodes as words, float64 vectors with norms below 1, and scale 1.

    Raises:
        InvalidValueError: If there is nothing to learn from: no relations, relations of nodes to
            themselves, or nodes without any relation.
        MissingExtraError: If numba is not installed.
    """
    recipe = recipe or PoincareRecipe()
    threads = threads if threads is not None else os.cpu_count() or 1
    _validate.at_least(1, dim=dim, threads=threads)
    _check(relations)
    require("numba", "train")
    rng = np.random.default_rng(recipe.seed)
    points = rng.uniform(-START, START, size=(len(relations.nodes), dim))
    run = _Run(relations, points, recipe, threads)
    with tqdm(total=recipe.epochs, desc="Poincaré", unit="epoch", disable=not progress) as bar:
        for number in range(recipe.epochs):
            epoch = run.epoch(number, rng)
            bar.set_postfix_str(f"loss {epoch.loss:.4f}, {epoch.relations_per_second:,.0f}/s")
            bar.update()
            if on_epoch is not None:
                on_epoch(epoch)
    provenance: dict[str, Any] = {"recipe": asdict(recipe) | {"dim": dim, "threads": threads}}
    return EmbeddingSpace(relations.nodes, points, "poincare", provenance=provenance)


class _Run:
    def __init__(
        self,
        relations: Relations,
        points: NDArray[np.float64],
        recipe: PoincareRecipe,
        threads: int,
    ) -> None:
        self.points = points
        self.recipe = recipe
        self.threads = threads
        self.pairs = relations.pairs
        order = np.lexsort((self.pairs[:, 1], self.pairs[:, 0]))
        self.classes = np.ascontiguousarray(self.pairs[order, 1])
        counts = np.bincount(self.pairs[:, 0], minlength=len(points))
        self.starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self.table = alias_table(relations.degrees().astype(np.float64) ** recipe.negative_exponent)

    def epoch(self, number: int, rng: np.random.Generator) -> Epoch:
        # Imported here because it compiles, which nobody should wait for who does not train.
        from hf_dxprivacy.training import sgd

        started = time.perf_counter()
        shares = np.array_split(self.pairs[rng.permutation(len(self.pairs))], self.threads)
        states = rng.integers(0, 2**64, size=(self.threads, 1), dtype=np.uint64)
        recipe, rate = self.recipe, self.recipe.rate(number)

        def work(share: NDArray[np.int64], state: NDArray[np.uint64]) -> float:
            graph = (self.starts, self.classes, *self.table)
            return float(
                sgd.train(
                    self.points, share, *graph, recipe.negatives, recipe.sharpness, rate, state
                )
            )

        with ThreadPoolExecutor(self.threads) as pool:
            loss = sum(pool.map(work, shares, states)) / len(self.pairs)
        speed = len(self.pairs) / (time.perf_counter() - started)
        return Epoch(number + 1, loss, speed, self.points)


def alias_table(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Prepare drawing in constant time from a discrete distribution (Walker 1977, Vose 1991).

    Args:
        weights: (N,) non-negative, not all zero.

    Returns:
        (N,) thresholds and (N,) aliases: a uniform slot i stands for i with probability
        threshold[i], else for alias[i].
    """
    share = weights * (len(weights) / weights.sum())
    threshold, alias = np.ones(len(weights)), np.arange(len(weights))
    small = [row for row, value in enumerate(share) if value < 1.0]
    large = [row for row, value in enumerate(share) if value >= 1.0]
    while small and large:
        row, donor = small.pop(), large[-1]
        threshold[row], alias[row] = share[row], donor
        share[donor] -= 1.0 - share[row]
        if share[donor] < 1.0:
            small.append(large.pop())
    return threshold, alias


def _check(relations: Relations) -> None:
    if not len(relations):
        raise InvalidValueError("expected at least one relation to train on, got none")
    loops = np.flatnonzero(relations.pairs[:, 0] == relations.pairs[:, 1])
    if loops.size:
        raise InvalidValueError(
            f"{loops.size} of {len(relations)} relations pair a node with itself, which teaches "
            "nothing; remove them first"
        )
    alone = np.flatnonzero(relations.degrees() == 0)
    if alone.size:
        raise InvalidValueError(
            f"{alone.size} of {len(relations.nodes)} nodes have no relation, so their place would "
            "be random; remove them first, for example with relations.among(...)"
        )

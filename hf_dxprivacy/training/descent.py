"""One pass over the relations after the other, with the compiled loop."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.training import ball, hyperboloid, negatives, sgd
from hf_dxprivacy.training.nearest import NearestLists
from hf_dxprivacy.training.recipe import PoincareRecipe
from hf_dxprivacy.training.relations import Relations

# Start of every coordinate in [N]: uniform between plus and minus this.
START = 1e-3

KERNELS = {"poincare": sgd.train_ball, "lorentz": sgd.train_hyperboloid}
TO_BALL = {"poincare": ball.to_ball, "lorentz": hyperboloid.to_ball}


@dataclass
class State:
    """What a training would lose if it was killed.

    Attributes:
        points: (N, n) coordinates in the parametrisation of the recipe.
        rng: Source of the order and of the seeds of the negatives.
        epoch: Epochs done.
        best: Points of the look with the best mean average precision, if there was one.
        best_precision: What it was.
        waited: Looks since then.
        listed: (N, n) points that the lists of the nearest nodes were last made from, if any were.
    """

    points: NDArray[np.float64]
    rng: np.random.Generator
    epoch: int = 0
    best: NDArray[np.float64] | None = None
    best_precision: float = 0.0
    waited: int = 0
    listed: NDArray[np.float64] | None = None

    @classmethod
    def start(cls, nodes: int, dim: int, seed: int) -> "State":
        """Return random points near the centre."""
        rng = np.random.default_rng(seed)
        return cls(rng.uniform(-START, START, size=(nodes, dim)), rng)


class Descent:
    """Relations in the layout of the compiled loop.

    Args:
        relations: What to learn.
        recipe: Settings.
        threads: Threads that change the points at the same time.
    """

    def __init__(self, relations: Relations, recipe: PoincareRecipe, threads: int) -> None:
        self.recipe = recipe
        self.threads = threads
        self.graph = negatives.graph_of(relations.pairs, len(relations.nodes))
        self.lists = NearestLists(self.graph, recipe, threads, self.in_ball)
        self.nodes = np.unique(relations.pairs[:, 0])
        degrees = relations.degrees().astype(np.float64)
        self.burn_in_table = negatives.alias_table(degrees**recipe.burn_in_exponent)
        self.table = negatives.alias_table(degrees**recipe.negative_exponent)

    def epoch(self, state: State) -> tuple[float, float]:
        """Pass over all relations once; return the mean loss of one and relations per second."""
        started = time.perf_counter()
        recipe, number = self.recipe, state.epoch
        table = self.burn_in_table if number < recipe.burn_in else self.table
        graph = self.graph._replace(nearest=self.lists.at(state))
        settings = (recipe.sharpness_at(number), recipe.rate(number))
        drawing = (table, recipe.negatives, recipe.near(number))
        shares = np.array_split(state.rng.permutation(self.nodes), self.threads)
        seeds = state.rng.integers(0, 2**64, size=(self.threads, 1), dtype=np.uint64)
        train = KERNELS[recipe.parametrisation]

        def work(share: NDArray[np.int64], seed: NDArray[np.uint64]) -> float:
            return train(state.points, share, graph, *drawing, *settings, seed)

        with ThreadPoolExecutor(self.threads) as pool:
            loss = sum(pool.map(work, shares, seeds)) / len(self.graph.classes)
        state.epoch += 1
        return loss, len(self.graph.classes) / (time.perf_counter() - started)

    def in_ball(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points of the ball for coordinates of the parametrisation, as a copy."""
        return TO_BALL[self.recipe.parametrisation](points)

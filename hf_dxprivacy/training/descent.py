"""Poincaré training on the processor: the compiled loop by epochs, and checkpoints of its state.

Import this module only when training: it needs the extra ``train``.
"""

import hashlib
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.artifact import UNREADABLE
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.spaces.metrics import lorentz_image
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.kernels import Floats, Graph, Rows, Table, pick, to_ball, train
from hf_dxprivacy.training.relations import Relations

# Start of every coordinate in [N]: uniform between plus and minus this.
START = 1e-3

# Epochs between two searches for the nearest nodes: as the points move, others come near.
EPOCHS = 10

# Writing checkpoints may take this share of the time.
SHARE = 0.05

# Near nodes that are listed for each node.
LISTED = 256

# Nodes at once: a row has a distance to every node. The same for any number of threads, since sums
# in other blocks may be rounded in another way.
BLOCK = 32


@dataclass
class State:
    """State of a training, all that a checkpoint holds.

    Attributes:
        points: (N, n) space-like coordinates on the hyperboloid.
        rng: Source of the order and of the seeds of the negatives.
        epoch: Epochs done.
        best: Points of the look with the best mean average precision, if there was one.
        best_precision: What it was.
        waited: Looks since then.
        listed: (N, n) points that the lists of the nearest nodes were last made from, if any were.
    """

    points: Floats
    rng: np.random.Generator
    epoch: int = 0
    best: Floats | None = None
    best_precision: float = 0.0
    waited: int = 0
    listed: Floats | None = None

    @classmethod
    def start(cls, nodes: int, dim: int, seed: int) -> "State":
        """Return random points near the centre."""
        rng = np.random.default_rng(seed)
        return cls(rng.uniform(-START, START, size=(nodes, dim)), rng)

    def look(self, precision: float) -> None:
        """Keep the points if they are the best so far."""
        self.waited += 1
        if precision > self.best_precision:
            self.best, self.best_precision, self.waited = self.points.copy(), precision, 0


class Descent:
    """Relations in the layout of the compiled loop, which threads run at the same time."""

    def __init__(self, relations: Relations, config: PoincareConfig, threads: int) -> None:
        self.config, self.threads = config, threads
        self.graph = graph_of(relations.pairs, len(relations.nodes))
        self.nodes = np.unique(relations.pairs[:, 0])
        degrees = relations.degrees().astype(np.float64)
        self.burn_in_table = alias_table(degrees**config.burn_in_exponent)
        self.table = alias_table(degrees**config.negative_exponent)
        self._listed: tuple[Floats | None, NDArray[np.int32]] = (None, self.graph.nearest)

    def run(self, state: State) -> float:
        """Pass over all relations once, and return the sum of their losses."""
        config, number = self.config, state.epoch
        table = self.burn_in_table if number < config.burn_in else self.table
        graph = self.graph._replace(nearest=self.near_lists(state))
        settings = (config.sharpness_at(number), config.rate(number), config.ranks(number))
        drawing = (table, config.negatives, config.near(number))
        shares = np.array_split(state.rng.permutation(self.nodes), self.threads)
        seeds = state.rng.integers(0, 2**64, size=(self.threads, 1), dtype=np.uint64)

        def work(share: Rows, seed: NDArray[np.uint64]) -> float:
            return train(state.points, share, graph, *drawing, *settings, seed)

        with ThreadPoolExecutor(self.threads) as pool:
            return sum(pool.map(work, shares, seeds))

    def near_lists(self, state: State) -> NDArray[np.int32]:
        """Return the nearest nodes for the next epoch, without columns before the refinement."""
        if not self.config.refines(state.epoch):
            return self.graph.nearest
        if (state.epoch - self.config.epochs) % EPOCHS == 0:
            state.listed = state.points.copy()
        # A training that goes on from a checkpoint makes the same lists as the one that wrote it.
        if state.listed is not None and self._listed[0] is not state.listed:
            lists = nearest_others(to_ball(state.listed), self.graph, self.threads)
            self._listed = state.listed, lists
        return self._listed[1]


def graph_of(pairs: Rows, nodes: int) -> Graph:
    """Sort the pairs of `nodes` nodes by either end."""
    up = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    down = pairs[np.argsort(pairs[:, 1], kind="stable")]
    bounds = np.arange(nodes + 1)
    return Graph(
        np.searchsorted(up[:, 0], bounds),
        np.ascontiguousarray(up[:, 1]),
        np.searchsorted(down[:, 1], bounds),
        np.ascontiguousarray(down[:, 0]),
        np.empty((nodes, 0), dtype=np.int32),
    )


def alias_table(weights: Floats) -> Table:
    """Prepare drawing in constant time by (N,) weights, not all zero (Walker 1977, Vose 1991).

    A uniform slot i stands for i with probability threshold[i], else for alias[i]. Both are empty
    if all weights are the same.
    """
    if (weights == weights[0]).all():
        return Table(np.empty(0), np.empty(0, dtype=np.int64))
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
    return Table(threshold, alias)


def nearest_others(
    points: Floats, graph: Graph, threads: int, listed: int = LISTED
) -> NDArray[np.int32]:
    """Return the nearest nodes that are neither a node itself nor classes of it, in order, (N, k).

    For points of the ball, (N, n). The lists are the same for any number of threads, and shorter
    than `listed` if a node has not that many others.
    """
    images = lorentz_image(points)
    others = len(points) - 1 - int((graph.starts[1:] - graph.starts[:-1]).max())
    lists = np.empty((len(points), min(listed, others)), dtype=np.int32)
    # cosh d = t·t' − x·x'. Far out it is rounded coarsely, which is good enough for drawing.
    mirrored = np.ascontiguousarray(np.concatenate([images[:, :1], -images[:, 1:]], axis=1).T)

    def work(start: int) -> None:
        block = slice(start, start + BLOCK)
        pick(images[block] @ mirrored, start, graph, lists)

    with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(0, len(points), BLOCK)))
    return lists


class Checkpoint:
    """State of a training after an epoch on disk, replaced when the next one is complete."""

    def __init__(
        self, path: str | Path, relations: Relations, dim: int, config: PoincareConfig
    ) -> None:
        self.path = Path(path)
        digest = hashlib.sha256(np.ascontiguousarray(relations.pairs).tobytes())
        digest.update("\n".join(relations.nodes).encode())
        self.belongs = {"relations": digest.hexdigest(), "dim": dim, "config": asdict(config)}
        self.due = 0.0

    def load(self) -> State | None:
        """Return the state in the file, or None if there is no file.

        Raises:
            ArtifactError: If it is damaged.
            InvalidValueError: If it belongs to another training.
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                arrays = {name: stored[name] for name in stored.files if name != "about"}
            belongs, fields = about["belongs"], about["state"]
            rng = np.random.default_rng()
            rng.bit_generator.state = about["rng"]
            state = State(rng=rng, **fields, **arrays)
        except UNREADABLE as error:
            raise ArtifactError(
                f"{self.path} is not a whole checkpoint; delete it to start again"
            ) from error
        differing = [name for name, value in self.belongs.items() if belongs.get(name) != value]
        if differing:
            raise InvalidValueError(
                f"{self.path} is the checkpoint of a training with other {' and '.join(differing)};"
                " name another file, or delete it to start again"
            )
        return state

    def save(self, state: State, now: bool) -> None:
        """Replace the file, `now` even if writing again so soon slows the training down."""
        if not now and time.monotonic() < self.due:
            return
        scalars = ("epoch", "best_precision", "waited")
        about = {
            "belongs": self.belongs,
            "state": {name: getattr(state, name) for name in scalars},
            "rng": state.rng.bit_generator.state,
        }
        named = {name: getattr(state, name) for name in ("points", "best", "listed")}
        arrays: dict[str, Any] = {name: a for name, a in named.items() if a is not None}
        started, content = time.monotonic(), io.BytesIO()
        np.savez(content, about=np.array(json.dumps(about)), **arrays)
        atomic_write(self.path, [content.getbuffer()])
        ended = time.monotonic()
        self.due = ended + (ended - started) / SHARE

"""Poincaré training on the processor: epochs of the compiled loop, and checkpoints of the state."""

import hashlib
import io
import json
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.training import kernels, negatives
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.negatives import Graph, nearest_others
from hf_dxprivacy.training.relations import Relations

# Start of every coordinate in [N]: uniform between plus and minus this.
START = 1e-3

# Epochs between two searches for the nearest nodes: as the points move, others come near.
EPOCHS = 10

# Writing checkpoints may take this share of the time.
SHARE = 0.05


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


class NearestLists:
    """Lists of the nearest nodes of each node, made anew every few epochs of the refinement.

    Args:
        graph: Relations.
        config: Settings.
        threads: Threads to make lists with.
    """

    def __init__(self, graph: Graph, config: PoincareConfig, threads: int) -> None:
        self._graph = graph
        self._config = config
        self._threads = threads
        self._points: NDArray[np.float64] | None = None
        self._lists = graph.nearest

    def at(self, state: State) -> NDArray[np.int32]:
        """Return the lists for the next epoch, without columns before the refinement."""
        if not self._config.refines(state.epoch):
            return self._graph.nearest
        if (state.epoch - self._config.epochs) % EPOCHS == 0:
            state.listed = state.points.copy()
        # A training that goes on from a checkpoint makes the same lists as the one that wrote it.
        if self._points is not state.listed and state.listed is not None:
            self._points = state.listed
            points = kernels.to_ball(state.listed)
            self._lists = nearest_others(points, self._graph, self._threads)
        return self._lists


class Descent:
    """Relations in the layout of the compiled loop.

    Args:
        relations: What to learn.
        config: Settings.
        threads: Threads that change the points at the same time.
    """

    def __init__(self, relations: Relations, config: PoincareConfig, threads: int) -> None:
        self.config = config
        self.threads = threads
        self.graph = negatives.graph_of(relations.pairs, len(relations.nodes))
        self.lists = NearestLists(self.graph, config, threads)
        self.nodes = np.unique(relations.pairs[:, 0])
        degrees = relations.degrees().astype(np.float64)
        self.burn_in_table = negatives.alias_table(degrees**config.burn_in_exponent)
        self.table = negatives.alias_table(degrees**config.negative_exponent)

    def epoch(self, state: State) -> tuple[float, float]:
        """Pass over all relations once; return the mean loss of one and relations per second."""
        started = time.perf_counter()
        config, number = self.config, state.epoch
        table = self.burn_in_table if number < config.burn_in else self.table
        graph = self.graph._replace(nearest=self.lists.at(state))
        settings = (config.sharpness_at(number), config.rate(number))
        drawing = (table, config.negatives, config.near(number))
        shares = np.array_split(state.rng.permutation(self.nodes), self.threads)
        seeds = state.rng.integers(0, 2**64, size=(self.threads, 1), dtype=np.uint64)

        def work(share: NDArray[np.int64], seed: NDArray[np.uint64]) -> float:
            return kernels.train(state.points, share, graph, *drawing, *settings, seed)

        with ThreadPoolExecutor(self.threads) as pool:
            loss = sum(pool.map(work, shares, seeds)) / len(self.graph.classes)
        state.epoch += 1
        return loss, len(self.graph.classes) / (time.perf_counter() - started)


class Checkpoint:
    """The state of a training on disk; always that after a whole epoch.

    Args:
        path: The file; a new one replaces it when it is complete.
        relations: What is learned.
        dim: Number of dimensions.
        config: Settings.
    """

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
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ArtifactError(
                f"{self.path} is not a whole checkpoint; delete it to start again"
            ) from error
        self._compare(belongs)
        return State(rng=rng, **fields, **arrays)

    def save(self, state: State, now: bool) -> None:
        """Replace the file.

        Args:
            state: What to keep.
            now: Whether to do so even if the last time was so lately that writing again would slow
                the training down.
        """
        if not now and time.monotonic() < self.due:
            return
        fields = {"epoch": state.epoch, "best_precision": state.best_precision}
        about = {
            "belongs": self.belongs,
            "state": fields | {"waited": state.waited},
            "rng": state.rng.bit_generator.state,
        }
        arrays: dict[str, Any] = {"points": state.points}
        if state.best is not None:
            arrays["best"] = state.best
        if state.listed is not None:
            arrays["listed"] = state.listed
        started, content = time.monotonic(), io.BytesIO()
        np.savez(content, about=np.array(json.dumps(about)), **arrays)
        atomic_write(self.path, [content.getbuffer()])
        ended = time.monotonic()
        self.due = ended + (ended - started) / SHARE

    def _compare(self, belongs: dict[str, Any]) -> None:
        differing = [name for name, value in self.belongs.items() if belongs.get(name) != value]
        if differing:
            raise InvalidValueError(
                f"{self.path} is the checkpoint of a training with other {' and '.join(differing)};"
                " name another file, or delete it to start again"
            )

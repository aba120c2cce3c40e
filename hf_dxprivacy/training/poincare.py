"""Training of Poincaré spaces from is-a relations, by Riemannian gradient descent.

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
[L]: the same, "Learning continuous hierarchies in the Lorentz model of hyperbolic geometry" (ICML
2018).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.ranking import Reconstruction, reconstruction
from hf_dxprivacy.training.relations import Relations

if TYPE_CHECKING:
    from hf_dxprivacy.training.descent import Descent
    from hf_dxprivacy.training.torch_trainer import TorchDescent


# Nodes whose reconstruction is measured for the provenance.
SAMPLE = 2000


@dataclass(frozen=True)
class Epoch:
    """Report of one pass over the relations.

    Attributes:
        number: Counted from 1.
        loss: Mean loss of a relation.
        relations_per_second: Speed of the pass.
        points: (N, n) the points of the ball after it.
        reconstruction: What was found if this was an epoch to look at it.
    """

    number: int
    loss: float
    relations_per_second: float
    points: NDArray[np.float64]
    reconstruction: Reconstruction | None


def train_poincare(
    relations: Relations,
    dim: int = 10,
    config: PoincareConfig | None = None,
    *,
    threads: int | None = None,
    device: str | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> EmbeddingSpace:
    """Train a Poincaré space by Riemannian gradient descent on the loss of [N], Eq. 6.

    A step is taken for a node and all its classes at once: they are compared with the same drawn
    nodes, which makes a pass several times faster than one step for each relation.

    Args:
        relations: Pairs of a node and a class of it; the closure, to rebuild a whole hierarchy.
        dim: Number of dimensions n of the ball.
        config: Settings; by default those of `PoincareConfig.for_size`.
        threads: Threads that change the points without locks; by default all processors. One
            thread gives the same points whenever the seed is the same.
        device: A device of torch with float64, such as "cuda" or "cpu", to train on in batches,
            without regard to `threads`. By default the processor with compiled code, which is
            many times faster there than torch.
        checkpoint: A file that is kept up to date while training. If it is there already, the
            training goes on from it; with one thread the points come out as if there had been
            no interruption. It is left when the training is over.
        progress: Show a progress bar with the loss and the speed.
        on_epoch: Called after every epoch.

    Returns:
        A space with the nodes as words, float64 vectors with norms below 1, and scale 1.

    Raises:
        InvalidValueError: If there is nothing to learn from: no relations, relations of nodes to
            themselves, or nodes that no chain of relations joins; if there is no such device; or if
            the checkpoint belongs to another training.
        ArtifactError: If the checkpoint is damaged.
        MissingExtraError: If numba, SciPy, or torch for a device is not installed.
    """
    config = config or PoincareConfig.for_size(len(relations))
    threads = threads if threads is not None else os.cpu_count() or 1
    require_at_least(1, dim=dim, threads=threads)
    _check(relations)
    require("numba", "train")
    run = _Run(relations, dim, config, device or threads, checkpoint)
    with tqdm(total=config.all_epochs, desc="Poincaré", unit="epoch", disable=not progress) as bar:
        bar.update(run.state.epoch)
        while not run.is_over:
            epoch = run.epoch()
            bar.set_postfix_str(_describe(epoch))
            bar.update()
            if on_epoch is not None:
                on_epoch(epoch)
    where = {"device": device} if device else {"threads": threads}
    provenance: dict[str, Any] = {
        "recipe": asdict(config) | {"dim": dim, **where, "stopped": run.state.epoch}
    }
    return EmbeddingSpace(relations.nodes, run.result(), "poincare", provenance=provenance)


class _Run:
    def __init__(
        self,
        relations: Relations,
        dim: int,
        config: PoincareConfig,
        where: int | str,
        path: str | Path | None,
    ) -> None:
        # Imported late: it compiles.
        from hf_dxprivacy.training.descent import Checkpoint, State
        from hf_dxprivacy.training.kernels import to_ball

        self.relations = relations
        self.config = config
        self.to_ball = to_ball
        self.descent = _descent(relations, config, where)
        self.checkpoint = path and Checkpoint(path, relations, dim, config)
        stored = self.checkpoint.load() if self.checkpoint else None
        self.state = stored or State.start(len(relations.nodes), dim, config.seed)

    @property
    def is_over(self) -> bool:
        given_up = self.config.check_every > 0 and self.state.waited >= self.config.patience
        return given_up or self.state.epoch >= self.config.all_epochs

    def epoch(self) -> Epoch:
        loss, speed = self.descent.epoch(self.state)
        points = self.to_ball(self.state.points)
        every = self.config.check_every
        found = self._look(points) if every and self.state.epoch % every == 0 else None
        if self.checkpoint:
            self.checkpoint.save(self.state, now=self.is_over)
        return Epoch(self.state.epoch, loss, speed, points, found)

    def result(self) -> NDArray[np.float64]:
        best = self.state.best
        return self.to_ball(self.state.points if best is None else best)

    def _look(self, points: NDArray[np.float64]) -> Reconstruction:
        state, config = self.state, self.config
        space = EmbeddingSpace(self.relations.nodes, points, "poincare")
        found = reconstruction(space, self.relations, config.check_sample, config.seed)
        state.waited += 1
        if found.mean_average_precision > state.best_precision:
            state.best, state.best_precision = state.points.copy(), found.mean_average_precision
            state.waited = 0
        return found


def _descent(
    relations: Relations, config: PoincareConfig, where: int | str
) -> "Descent | TorchDescent":
    """Prepare training on some threads of the processor, or on a device of torch."""
    if isinstance(where, str):
        from hf_dxprivacy.training.torch_trainer import TorchDescent

        return TorchDescent(relations, config, where)
    from hf_dxprivacy.training.descent import Descent

    return Descent(relations, config, where)


def _describe(epoch: Epoch) -> str:
    text = f"loss {epoch.loss:.4f}, {epoch.relations_per_second:,.0f}/s"
    if epoch.reconstruction is not None:
        text += f", MAP {epoch.reconstruction.mean_average_precision:.3f}"
    return text


def _check(relations: Relations) -> None:
    if not len(relations):
        raise InvalidValueError(
            "expected at least one relation to train on, got none; where filters removed them (the "
            "summary of read_webisadb counts what each has removed), lower min_frequency or "
            "min_links (command line: --min-frequency, --min-links)"
        )
    loops = np.flatnonzero(relations.pairs[:, 0] == relations.pairs[:, 1])
    if loops.size:
        raise InvalidValueError(
            f"{loops.size} of {len(relations)} relations pair a node with itself, which teaches "
            "nothing; remove them first"
        )
    sizes = np.bincount(relations.components())
    if len(sizes) > 1:
        raise InvalidValueError(
            f"the nodes fall into {len(sizes)} parts that no relation joins, the largest of "
            f"{sizes[0]} nodes and the others of {len(relations.nodes) - sizes[0]} together, so "
            "distances between them would be arbitrary; train on relations.largest_component() "
            "(command line: --largest-component)"
        )


def train_space(
    relations: Relations,
    dim: int = 10,
    config: PoincareConfig | None = None,
    *,
    provenance: Mapping[str, Any],
    unit_step: bool = True,
    threads: int | None = None,
    device: str | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> EmbeddingSpace:
    """Train a space and describe it.

    Args:
        relations: Pairs of a node and a class of it.
        dim: Number of dimensions n of the ball.
        config: Settings; by default those of `PoincareConfig.for_size`.
        provenance: Where the relations come from. Recipe and reconstruction are added.
        unit_step: Scale so that the median distance to the nearest neighbour is 1, and ε counts
            such steps, as in the built-in spaces.
        threads: As for `train_poincare`.
        device: As for `train_poincare`.
        checkpoint: As for `train_poincare`.
        progress: Show progress bars.

    Raises:
        InvalidValueError: As `train_poincare` does.
        ArtifactError: If the checkpoint is damaged.
        MissingExtraError: As `train_poincare` does.
    """
    space = train_poincare(
        relations,
        dim,
        config,
        threads=threads,
        device=device,
        checkpoint=checkpoint,
        progress=progress,
    )
    found = reconstruction(space, relations, sample=SAMPLE)
    described = {
        **provenance,
        **space.provenance,
        "relations": len(relations),
        "reconstruction": asdict(found),
    }
    step = space.neighbour_distances((1,))[1] if unit_step else 1.0
    scale = 1.0 / step if step > 0 else 1.0
    return EmbeddingSpace(space.words, space.vectors, "poincare", scale, described)

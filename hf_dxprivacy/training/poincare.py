"""Training of Poincaré spaces from is-a relations, by Riemannian gradient descent.

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
[L]: the same, "Learning continuous hierarchies in the Lorentz model of hyperbolic geometry" (ICML
2018).
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.ranking import Reconstruction, reconstruction
from hf_dxprivacy.training.relations import Relations

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
    # Imported here because it compiles.
    from hf_dxprivacy.training.descent import Checkpoint, Descent, State
    from hf_dxprivacy.training.kernels import to_ball

    if device:
        from hf_dxprivacy.training.torch_trainer import TorchDescent

        descent: Descent = TorchDescent(relations, config, device)
    else:
        descent = Descent(relations, config, threads)
    stored = Checkpoint(checkpoint, relations, dim, config) if checkpoint else None
    state = (stored and stored.load()) or State.start(len(relations.nodes), dim, config.seed)

    def is_over() -> bool:
        given_up = config.check_every > 0 and state.waited >= config.patience
        return given_up or state.epoch >= config.all_epochs

    with tqdm(total=config.all_epochs, desc="Poincaré", unit="epoch", disable=not progress) as bar:
        bar.update(state.epoch)
        while not is_over():
            started = time.perf_counter()
            loss = descent.run(state) / len(relations)
            speed = len(relations) / (time.perf_counter() - started)
            state.epoch += 1
            points, found = to_ball(state.points), None
            shown = f"loss {loss:.4f}, {speed:,.0f}/s"
            if config.check_every and state.epoch % config.check_every == 0:
                space = EmbeddingSpace(relations.nodes, points, "poincare")
                found = reconstruction(space, relations, config.check_sample, config.seed)
                state.look(found.mean_average_precision)
                shown += f", MAP {found.mean_average_precision:.3f}"
            if stored:
                stored.save(state, now=is_over())
            bar.set_postfix_str(shown)
            bar.update()
            if on_epoch is not None:
                on_epoch(Epoch(state.epoch, loss, speed, points, found))
    where = {"device": device} if device else {"threads": threads}
    recipe = asdict(config) | {"dim": dim, **where, "stopped": state.epoch}
    points = to_ball(state.points if state.best is None else state.best)
    return EmbeddingSpace(relations.nodes, points, "poincare", provenance={"recipe": recipe})


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
        threads: As for `train_poincare`, and so the arguments below.
        device: A device of torch.
        checkpoint: A file for the state of the training.
        progress: Show progress bars.

    Raises:
        DxPrivacyError: As `train_poincare` does.
    """
    where: dict[str, Any] = {"threads": threads, "device": device, "checkpoint": checkpoint}
    space = train_poincare(relations, dim, config, progress=progress, **where)
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

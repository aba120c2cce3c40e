"""How well a trained space tells a node's classes from everything else."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.relations import Relations

BLOCK = 256


@dataclass(frozen=True)
class Reconstruction:
    """Quality of a reconstruction as in [N], section 4.1.

    Attributes:
        mean_average_precision: Mean over nodes of the average precision of ranking all other
            nodes by distance, with the node's classes as the relevant ones. 1 is perfect.
        mean_rank: Mean over relations of the rank of the class among it and all nodes that are
            not classes of the node. 1 is perfect.
        nodes: Number of nodes ranked.
    """

    mean_average_precision: float
    mean_rank: float
    nodes: int


def reconstruction(
    space: EmbeddingSpace, relations: Relations, sample: int | None = None, seed: int = 0
) -> Reconstruction:
    """Rank every word by distance from every node and see where the classes of the node stand.

    Args:
        space: A space with every node of the relations as a word.
        relations: What the space was trained on.
        sample: Rank from this many nodes drawn at random instead of all.
        seed: Of the draw.

    Raises:
        InvalidValueError: If the space lacks a node, or there are no relations.
    """
    rows = space.ids(relations.nodes)
    if len(relations) == 0 or (rows < 0).any():
        raise InvalidValueError(
            f"expected relations between words of the space, got {len(relations)} relations and "
            f"{int((rows < 0).sum())} nodes that are not among its {len(space)} words"
        )
    pairs = rows[relations.pairs[np.argsort(relations.pairs[:, 0], kind="stable")]]
    nodes, starts = np.unique(pairs[:, 0], return_index=True)
    classes = dict(zip(nodes.tolist(), np.split(pairs[:, 1], starts[1:]), strict=True))
    if sample is not None and sample < len(nodes):
        _validate.at_least(1, sample=sample)
        nodes = np.sort(np.random.default_rng(seed).choice(nodes, sample, replace=False))
    precisions: list[float] = []
    ranks: list[NDArray[np.int64]] = []
    for start in range(0, len(nodes), BLOCK):
        block = nodes[start : start + BLOCK]
        for node, distances in zip(block.tolist(), space.distances(block), strict=True):
            distances[node] = np.inf
            found = _ranks(distances, classes[node])
            precisions.append(float(np.mean(np.arange(1, len(found) + 1) / found)))
            ranks.append(found - np.arange(len(found)))
    return Reconstruction(
        float(np.mean(precisions)), float(np.mean(np.concatenate(ranks))), len(nodes)
    )


def _ranks(distances: NDArray[np.float64], relevant: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranks of relevant entries, ascending; among equals the irrelevant come first."""
    ordered = np.sort(distances[relevant])
    is_other = np.ones(len(distances), dtype=bool)
    is_other[relevant] = False
    others = np.sort(distances[is_other])
    return np.searchsorted(others, ordered, side="right") + np.arange(1, len(ordered) + 1)

"""Reconstruction and link prediction: ranks of the classes of a node by distance.

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.relations import Relations

# Nodes at once in each thread: a row has a distance to every word.
BLOCK = 64


@dataclass(frozen=True)
class Reconstruction:
    """Quality of a ranking as in [N], section 4.1.

    Attributes:
        mean_average_precision: Mean over nodes of the average precision of ranking all other
            nodes by distance, with the node's classes as the relevant ones. 1 is perfect.
        mean_rank: Mean over relations of the rank of the class among it and all nodes that are
            not classes of the node. 1 is perfect.
        trimmed_mean_rank: The same without the worst hundredth of the relations, which can be most
            of the mean.
        nodes: Number of nodes ranked from.
    """

    mean_average_precision: float
    mean_rank: float
    trimmed_mean_rank: float
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
    classes = _classes(space, relations)
    if sample is not None and sample < len(classes):
        require_at_least(1, sample=sample)
        drawn = np.random.default_rng(seed).choice(sorted(classes), sample, replace=False)
        classes = {node: classes[node] for node in sorted(drawn.tolist())}
    return _rank(space, classes, {})


def link_prediction(space: EmbeddingSpace, held_out: Relations, known: Relations) -> Reconstruction:
    """Rank words by distance and see where classes stand that were held out of training.

    Args:
        space: A space trained on `known`.
        held_out: Relations to predict; see `split_relations`.
        known: Relations that were trained on. They do not take part in the ranking, as in [N],
            section 4.1.

    Raises:
        InvalidValueError: If the space lacks a node, or nothing was held out.
    """
    return _rank(space, _classes(space, held_out), _classes(space, known))


def depth_correlation(space: EmbeddingSpace, relations: Relations) -> float:
    """Return Spearman's rank correlation of the distance from the centre with the depth.

    Args:
        space: A Poincaré space with every node of the relations as a word.
        relations: The closure: the depth of a node is the number of its classes.

    Returns:
        From −1 to 1; near 1 where classes are nearer to the centre than what they contain.

    Raises:
        InvalidValueError: If the space lacks a node, or there are no relations.
        MissingExtraError: If SciPy is not installed.
    """
    classes = _classes(space, relations)
    require("scipy", "train")
    from scipy import stats

    rows = space.ids(relations.nodes)
    radii = space.pair_distances(rows, np.full_like(rows, -1))
    depths = [len(classes.get(row, ())) for row in rows.tolist()]
    return float(stats.spearmanr(radii, depths).statistic)


def _classes(space: EmbeddingSpace, relations: Relations) -> dict[int, NDArray[np.int64]]:
    rows = space.ids(relations.nodes)
    if len(relations) == 0 or (rows < 0).any():
        raise InvalidValueError(
            f"expected relations between words of the space, got {len(relations)} relations and "
            f"{int((rows < 0).sum())} nodes that are not among its {len(space)} words"
        )
    pairs = rows[relations.pairs]
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    nodes, starts = np.unique(pairs[:, 0], return_index=True)
    return dict(zip(nodes.tolist(), np.split(pairs[:, 1], starts[1:]), strict=True))


def _rank(
    space: EmbeddingSpace,
    relevant: dict[int, NDArray[np.int64]],
    ignored: dict[int, NDArray[np.int64]],
) -> Reconstruction:
    nodes = list(relevant)
    blocks = [nodes[start : start + BLOCK] for start in range(0, len(nodes), BLOCK)]

    def work(block: list[int]) -> tuple[list[float], list[int]]:
        precisions, ranks = [], []
        for node, distances in zip(block, space.distances(block), strict=True):
            wanted = distances[relevant[node]]
            distances[[node, *relevant[node], *ignored.get(node, ())]] = np.inf
            before = _count_before(distances, wanted)
            places = np.arange(1, len(before) + 1)
            precisions.append(float(np.mean(places / (places + before))))
            ranks += (before + 1).tolist()
        return precisions, ranks

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(work, blocks))
    ranks = np.sort([rank for _, ranks in results for rank in ranks])
    return Reconstruction(
        float(np.mean([value for precisions, _ in results for value in precisions])),
        float(ranks.mean()),
        float(ranks[: len(ranks) - len(ranks) // 100].mean()),
        len(nodes),
    )


def _count_before(others: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many others are at most as large as each wanted number, in ascending order."""
    ordered = np.sort(wanted)
    near = others[others <= ordered[-1]]
    first = np.searchsorted(ordered, near, side="left")
    return np.cumsum(np.bincount(first, minlength=len(ordered)))

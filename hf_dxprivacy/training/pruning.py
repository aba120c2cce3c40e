"""Pruning of is-a pairs that patterns have found: opposite pairs, weak ones, and cycles.

Pairs are (m, 2) rows of node and class, with (m,) counts. What is returned is which to keep, (m,).
"""

from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def more_frequent_direction(pairs: Rows, counts: Rows) -> Mask:
    """Of two opposite pairs keep the more frequent one; none if they are equally frequent."""
    size = int(pairs.max(initial=-1)) + 1
    keys, opposite = pairs @ (size, 1), pairs @ (1, size)
    order = np.argsort(keys)
    place = np.searchsorted(keys, opposite, sorter=order).clip(max=max(0, len(keys) - 1))
    found = order[place] if len(keys) else order
    kept: Mask = (keys[found] != opposite) | (counts > counts[found])
    return kept


def strongest(pairs: Rows, counts: Rows, most: int) -> Mask:
    """Keep that many classes of each node, the most frequent first."""
    order = np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))
    nodes = pairs[order, 0]
    kept = np.empty(len(pairs), dtype=bool)
    kept[order] = np.arange(len(nodes)) - np.searchsorted(nodes, nodes) < most
    return kept


def acyclic(pairs: Rows, counts: Rows) -> Mask:
    """Break every cycle at its least frequent pairs.

    As long as nodes can be reached from each other, the least frequent pairs within each group of
    such nodes go. Those that agree with the order of the nodes that comes about are put back. The
    order of the pairs makes no difference.
    """
    require("scipy", "train")
    from scipy import sparse

    size = int(pairs.max(initial=-1)) + 1
    kept = np.ones(len(pairs), dtype=bool)
    while size:
        ends = pairs[kept].astype(np.int32).T
        links = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size))
        groups, group = sparse.csgraph.connected_components(links, connection="strong")
        within = kept & (group[pairs[:, 0]] == group[pairs[:, 1]])
        if not within.any():
            break
        least = np.full(groups, np.iinfo(np.int64).max)
        np.minimum.at(least, group[pairs[within, 0]], counts[within])
        kept &= ~within | (counts > least[group[pairs[:, 0]]])
    sorter: TopologicalSorter[int] = TopologicalSorter({node: () for node in range(size)})
    for node, above in np.unique(pairs[kept], axis=0).tolist():
        sorter.add(node, above)
    place = np.empty(size, dtype=np.int64)
    place[list(sorter.static_order())] = np.arange(size)
    return kept | (place[pairs[:, 0]] > place[pairs[:, 1]])

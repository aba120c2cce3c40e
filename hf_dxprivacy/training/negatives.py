"""Negatives that a node is compared with: drawn by degree, among near nodes, or from lists.

Compiled by numba in part; import this module only when training.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.spaces.metrics import lorentz_image

numba: Any = require("numba", "train")

# Near nodes that are listed for each node.
LISTED = 256

# Nodes at once: a row has a distance to every node. The same for any number of threads, since sums
# in other blocks may be rounded in another way.
BLOCK = 32

# One key in so many of a row is in the sample of it.
SPACING = 64


class Graph(NamedTuple):
    """Relations in the order of either end.

    Attributes:
        starts: (N + 1,) where the classes of each node start in `classes`.
        classes: (m,) classes of all nodes, sorted within each node.
        member_starts: (N + 1,) where the members of each class start in `members`.
        members: (m,) members of all classes.
        nearest: (N, k) near nodes that are no classes of a node, to draw from instead of the
            members of its classes if there are any; k = 0 if not.
    """

    starts: NDArray[np.int64]
    classes: NDArray[np.int64]
    member_starts: NDArray[np.int64]
    members: NDArray[np.int64]
    nearest: NDArray[np.int32]


class Table(NamedTuple):
    """A distribution over nodes; see `alias_table`.

    Attributes:
        threshold: (N,) probabilities; empty for the even distribution.
        alias: (N,) the nodes that stand in.
    """

    threshold: NDArray[np.float64]
    alias: NDArray[np.int64]


def graph_of(pairs: NDArray[np.int64], nodes: int) -> Graph:
    """Sort the pairs of `nodes` nodes."""
    up = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    down = pairs[np.argsort(pairs[:, 1], kind="stable")]
    return Graph(
        _starts(up[:, 0], nodes),
        np.ascontiguousarray(up[:, 1]),
        _starts(down[:, 1], nodes),
        np.ascontiguousarray(down[:, 0]),
        np.empty((nodes, 0), dtype=np.int32),
    )


def _starts(column: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    counts = np.bincount(column, minlength=nodes)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _uniform(state: NDArray[np.uint64]) -> float:
    """Draw from [0, 1) and advance a splitmix64 state of one element."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


uniform = numba.njit(inline="always")(_uniform)


def _draw(table: Table, nodes: int, state: NDArray[np.uint64]) -> int:
    """Draw one of `nodes` nodes by the alias method."""
    place = uniform(state) * nodes
    slot = int(place)
    if len(table.alias) and place - slot >= table.threshold[slot]:
        slot = table.alias[slot]
    return slot


draw = numba.njit(inline="always")(_draw)


def _draw_near(node: int, graph: Graph, state: NDArray[np.uint64]) -> int:
    """Draw one of the nearest nodes, or a member of one of the classes of a node."""
    listed = graph.nearest.shape[1]
    if listed:
        return int(graph.nearest[node, int(uniform(state) * listed)])
    first, end = graph.starts[node], graph.starts[node + 1]
    above = graph.classes[first + int(uniform(state) * (end - first))]
    first, end = graph.member_starts[above], graph.member_starts[above + 1]
    return int(graph.members[first + int(uniform(state) * (end - first))])


draw_near = numba.njit(inline="always")(_draw_near)


def _is_above(node: int, candidate: int, graph: Graph) -> bool:
    """Look a candidate up among the classes of a node."""
    low, end = graph.starts[node], graph.starts[node + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if graph.classes[middle] < candidate:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and graph.classes[low] == candidate)


is_above = numba.njit(_is_above)


def _fill_group(
    node: int,
    group: NDArray[np.int64],
    negatives: int,
    near: float,
    graph: Graph,
    table: Table,
    state: NDArray[np.uint64],
) -> int:
    """Fill `group` with the classes of a node and then with drawn nodes; return its end.

    The share `near` of the draws is of near nodes, see `draw_near`. What turns out to be
    a class of the node, or the node itself, is left out.
    """
    count = 0
    for place in range(graph.starts[node], graph.starts[node + 1]):
        group[count] = graph.classes[place]
        count += 1
    for _ in range(negatives):
        if near > 0.0 and uniform(state) < near:
            other = draw_near(node, graph, state)
        else:
            other = draw(table, len(graph.starts) - 1, state)
        if other != node and not is_above(node, other, graph):
            group[count] = other
            count += 1
    return count


fill_group = numba.njit(_fill_group)


def alias_table(weights: NDArray[np.float64]) -> Table:
    """Prepare drawing in constant time from a discrete distribution (Walker 1977, Vose 1991).

    Args:
        weights: (N,) non-negative, not all zero.

    Returns:
        Thresholds and aliases: a uniform slot i stands for i with probability threshold[i], else
        for alias[i]. Both empty if all weights are the same.
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
    points: NDArray[np.float64], graph: Graph, threads: int, listed: int = LISTED
) -> NDArray[np.int32]:
    """Return the nearest nodes that are neither the node itself nor classes of it, in order.

    Args:
        points: (N, n) points of the ball.
        graph: Relations.
        threads: Threads; the lists are the same for any number.
        listed: How many for each node; fewer if a node has not that many others.

    Returns:
        (N, k) rows.
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


def _pick(keys: NDArray[np.float64], first: int, graph: Graph, lists: NDArray[np.int32]) -> None:
    """Fill the lists of the nodes from `first` on with the smallest keys of each row."""
    wanted = lists.shape[1]
    places = np.empty(keys.shape[1], dtype=np.int64)
    for offset in range(len(keys)):
        node, row = first + offset, keys[offset]
        row[node] = np.inf
        for place in range(graph.starts[node], graph.starts[node + 1]):
            row[graph.classes[place]] = np.inf
        # A sample says below which key about twice as many are as wanted.
        sample = np.sort(row[node % SPACING :: SPACING])
        rank = 2 * wanted // SPACING + 2
        count = 0
        while count < wanted:
            limit = sample[rank] if rank < len(sample) else np.inf
            count = 0
            for place in range(len(row)):
                places[count] = place
                # Not "<=", by which an undefined key would never be counted.
                count += 1 - (row[place] > limit)
            rank *= 2
        order = np.argsort(row[places[:count]])
        for place in range(wanted):
            lists[node, place] = places[order[place]]


pick = numba.njit(_pick, nogil=True)

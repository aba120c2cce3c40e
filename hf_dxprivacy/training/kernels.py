"""Negative sampling and Riemannian gradient steps in the Lorentz model, compiled by numba.

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
[L]: the same, "Learning continuous hierarchies in the Lorentz model of hyperbolic geometry" (ICML
2018). A point is kept as its n space-like coordinates v; the time-like one, √(1 + |v|²), follows.
v may be any vector, so that nothing is clipped at a boundary, and steps are geodesics. Differences
of large coordinates are avoided: what the products of [L] lose at a distance r from the centre is
of the order e²ʳ, here it is eʳ, as much as the coordinates themselves resolve.

Import this module only when training: it needs the extra ``train``. The compiled functions release
the interpreter lock and share one matrix without locks, as in Recht et al., "Hogwild!" (NIPS 2011);
rare lost updates do no harm.

A node is compared with all its classes and with the negatives drawn for it at once. Their points
are copied into a buffer with one column each, so that memory is read in one go and the vector units
work along the columns. The rows of the buffer `terms` beside it are: cosh d − 1; learning rate
times the derivative of the loss by the distance d, over sinh d; scratch; and learning rate times
the derivative of the loss by d.
"""

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require

numba: Any = require("numba", "train")

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
RandomState = NDArray[np.uint64]
Function = TypeVar("Function", bound=Callable[..., Any])

# The point at a distance of 28.3 from the centre. In the ball it is 1e-12 inside, and float64
# tells places apart there that are 1e-4 from each other.
LARGEST_NORM = 1e12

# Between points nearer than this there is no direction to speak of.
COINCIDENT = 1e-7

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

    starts: Rows
    classes: Rows
    member_starts: Rows
    members: Rows
    nearest: NDArray[np.int32]


class Table(NamedTuple):
    """A distribution over nodes; see `alias_table`.

    Attributes:
        threshold: (N,) probabilities; empty for the even distribution.
        alias: (N,) the nodes that stand in.
    """

    threshold: Floats
    alias: Rows


def compiled(**options: bool | str) -> Callable[[Function], Function]:
    """Return numba's decorator with these options; the next process finds what it has compiled."""

    def decorate(function: Function) -> Function:
        try:
            made: Any = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # There is no folder that may be written to.
            return cast(Function, numba.njit(**options)(function))
        cache = made._cache
        cache.save_overload = partial(_save_if_possible, cache, cache.save_overload)
        return cast(Function, made)

    return decorate


def _save_if_possible(cache: Any, save: Callable[..., None], *compiled: Any) -> None:
    """Store what was compiled; with a full disk go on without a cache, and name its folder."""
    try:
        save(*compiled)
    except OSError as error:
        cache.disable()
        logger.warning(
            "what is compiled is not kept, since %s cannot be written (%s); every run compiles it "
            "again; make room, or set NUMBA_CACHE_DIR to another folder",
            cache.cache_path,
            error.strerror,
        )


@compiled(inline="always")
def uniform(state: RandomState) -> float:
    """Draw from [0, 1) and advance a splitmix64 state of one element."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled(inline="always")
def draw(table: Table, nodes: int, state: RandomState) -> int:
    """Draw one of `nodes` nodes by the alias method."""
    place = uniform(state) * nodes
    slot = int(place)
    if len(table.alias) and place - slot >= table.threshold[slot]:
        slot = table.alias[slot]
    return slot


@compiled(inline="always")
def draw_near(node: int, graph: Graph, state: RandomState) -> int:
    """Draw one of the nearest nodes, or a member of one of the classes of a node."""
    listed = graph.nearest.shape[1]
    if listed:
        return int(graph.nearest[node, int(uniform(state) * listed)])
    first, end = graph.starts[node], graph.starts[node + 1]
    above = graph.classes[first + int(uniform(state) * (end - first))]
    first, end = graph.member_starts[above], graph.member_starts[above + 1]
    return int(graph.members[first + int(uniform(state) * (end - first))])


@compiled()
def is_above(node: int, candidate: int, graph: Graph) -> bool:
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


@compiled()
def fill_group(
    node: int,
    group: Rows,
    negatives: int,
    near: int,
    graph: Graph,
    table: Table,
    state: RandomState,
) -> tuple[int, int]:
    """Fill `group` with the classes of a node, near nodes and then others that are drawn.

    Of the `negatives` draws the first `near` are by `draw_near`. Classes of the node, and the node
    itself, are left out.

    Returns:
        Where the others start, and the end.
    """
    count = even = 0
    for place in range(graph.starts[node], graph.starts[node + 1]):
        group[count] = graph.classes[place]
        count += 1
    for number in range(negatives):
        if number == near:
            even = count
        if number < near:
            other = draw_near(node, graph, state)
        else:
            other = draw(table, len(graph.starts) - 1, state)
        if other != node and not is_above(node, other, graph):
            group[count] = other
            count += 1
    return (even if near < negatives else count), count


@compiled(fastmath=True)
def measure(here: Floats, there: Floats, terms: Floats, count: int) -> None:
    """Fill the row `excess`, cosh d − 1 from `here`.

    With a = 1 + √(1 + |u|²) and b likewise for v it is |bu − av|² / (2ab), the image in the ball
    of ‖x − y‖² over the gaps.
    """
    excess, b = terms[0], terms[2]
    a = 1.0 + math.sqrt(1.0 + np.dot(here, here))
    excess[:count] = 0.0
    b[:count] = 1.0
    for axis in range(len(here)):
        for place in range(count):
            b[place] += there[axis, place] * there[axis, place]
    for place in range(count):
        b[place] = 1.0 + math.sqrt(b[place])
    for axis in range(len(here)):
        u = here[axis]
        for place in range(count):
            apart = b[place] * u - a * there[axis, place]
            excess[place] += apart * apart
    for place in range(count):
        excess[place] /= 2.0 * a * b[place]


@compiled()
def tangent_square(here: Floats, tangents: Floats, column: int) -> float:
    """Return the squared length of a tangent at `here`, given by its coordinates in space."""
    own, product, whole = 0.0, 0.0, 0.0
    for axis in range(len(here)):
        own += here[axis] * here[axis]
        product += here[axis] * tangents[axis, column]
        whole += tangents[axis, column] * tangents[axis, column]
    if own < 1.0:
        return whole - product * product / (1.0 + own)
    # The part along the point and the part across it, apart: they do not cancel.
    across = 0.0
    for axis in range(len(here)):
        part = tangents[axis, column] - product / own * here[axis]
        across += part * part
    return across + product * product / (own * (1.0 + own))


@compiled(fastmath=True)
def descend(here: Floats, there: Floats, terms: Floats, count: int) -> None:
    """Replace the columns of `there` by their steps, and the one after them by that of `here`.

    The tangent at v that points to u is (u − v − (cosh d − 1)v) / sinh d. A tangent t leads to
    √(1 + |t|²)v + t, along the geodesic as far as arsinh |t|.
    """
    excess, pull, stretch = terms[0], terms[1], terms[2]
    slope = terms[3]
    shrink = 0.0
    for place in range(count):
        shrink += pull[place] * excess[place]
        square = slope[place] * slope[place]
        longer = square / (1.0 + math.sqrt(1.0 + square))
        stretch[place] = longer - pull[place] * excess[place]
    for axis in range(len(here)):
        u, total = here[axis], 0.0
        for place in range(count):
            v = there[axis, place]
            total += pull[place] * (v - u)
            there[axis, place] = pull[place] * (u - v) + stretch[place] * v
        there[axis, count] = total - shrink * u
    square = tangent_square(here, there, count)
    longer = square / (1.0 + math.sqrt(1.0 + square))
    for axis in range(len(here)):
        there[axis, count] += longer * here[axis]


@compiled(fastmath=True)
def scatter(points: Floats, group: Rows, there: Floats) -> None:
    """Add the columns to the points of a group, and keep the norms within `LARGEST_NORM`."""
    for place, row in enumerate(group):
        square = 0.0
        for axis in range(points.shape[1]):
            points[row, axis] += there[axis, place]
            square += points[row, axis] ** 2
        if square > LARGEST_NORM * LARGEST_NORM:
            for axis in range(points.shape[1]):
                points[row, axis] *= LARGEST_NORM / math.sqrt(square)


@compiled(fastmath=True)
def slopes(
    terms: Floats,
    classes: int,
    even: int,
    count: int,
    sharpness: float,
    rate: float,
    rank_weight: float,
) -> float:
    """Fill the second and fourth row of `terms` from the first; return the loss of [N], Eq. 6.

    Of the `count` columns the first are the classes, and the others were drawn, those from `even`
    on without regard to the node. To the slopes, not to the sum, belongs a second loss, the sum of
    log(1 + exp(s(d − e)))/s over the distances d of classes and e of these others, for a sharpness
    s: how many of them are nearer than a class decides its slope, in proportion to its rank.
    """
    excess, sinh, push, slope = terms[0], terms[1], terms[2], terms[3]
    for place in range(count):
        # exp(-arcosh(1 + excess)) without transcendental functions.
        sinh[place] = math.sqrt(excess[place] * (excess[place] + 2.0))
        slope[place] = 1.0 / (1.0 + excess[place] + sinh[place])
    if sharpness != 1.0:
        for place in range(count):
            slope[place] **= sharpness
    drawn = np.sum(slope[classes:count])
    loss, inverses = 0.0, 0.0
    push[classes:count] = 0.0
    for place in range(classes):
        inverse = 1.0 / (slope[place] + drawn)
        loss -= math.log(slope[place] * inverse)
        inverses += inverse
        pull = sharpness * drawn * inverse
        if rank_weight > 0.0:
            for other in range(even, count):
                nearer = rank_weight * slope[other] / (slope[other] + slope[place])
                push[other] += nearer
                pull += nearer
        slope[place] = rate * pull
    for place in range(classes, count):
        slope[place] = -rate * (sharpness * inverses * slope[place] + push[place])
    for place in range(count):
        sinh[place] = slope[place] / sinh[place] if sinh[place] > COINCIDENT else 0.0
    return loss


@compiled(nogil=True)
def train(
    points: Floats,
    nodes: Rows,
    graph: Graph,
    table: Table,
    negatives: int,
    near: int,
    sharpness: float,
    rate: float,
    rank_weight: float,
    state: RandomState,
) -> float:
    """Take one step of Riemannian gradient descent for each node, in order.

    Args:
        points: (N, n) coordinates, changed in place.
        nodes: (m,) nodes that have classes.
        graph: Relations.
        table: Distribution of negatives.
        negatives: Nodes drawn for each node; its classes among them are left out.
        near: How many of them are drawn by `draw_near`.
        sharpness: Factor on distances in the loss.
        rate: Learning rate.
        rank_weight: Weight of the second loss of `slopes`, 0 for none.
        state: (1,) state of the random numbers.

    Returns:
        Sum of the losses of all relations of the nodes.
    """
    counts = graph.starts[1:] - graph.starts[:-1]
    width = counts.max() + negatives + 1
    group = np.empty(width, dtype=np.int64)
    there = np.empty((points.shape[1], width))
    terms = np.empty((4, width))
    losses = 0.0
    for node in nodes:
        even, count = fill_group(node, group, negatives, near, graph, table, state)
        for place, row in enumerate(group[:count]):
            for axis in range(points.shape[1]):
                there[axis, place] = points[row, axis]
        measure(points[node], there, terms, count)
        losses += slopes(terms, counts[node], even, count, sharpness, rate, rank_weight)
        descend(points[node], there, terms, count)
        group[count] = node
        scatter(points, group[: count + 1], there)
    return losses


@compiled(nogil=True)
def pick(keys: Floats, first: int, graph: Graph, lists: NDArray[np.int32]) -> None:
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


def to_ball(points: Floats) -> Floats:
    """Return the points of the ball with these coordinates in space, (N, n) for (N, n)."""
    times = np.sqrt(1.0 + np.einsum("ij,ij->i", points, points))
    ball: Floats = points / (1.0 + times)[:, None]
    return ball

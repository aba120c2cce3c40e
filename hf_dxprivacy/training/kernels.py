"""Riemannian gradient steps in the Lorentz model of hyperbolic space, compiled by numba.

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

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.training.negatives import Graph, Table, fill_group

numba: Any = require("numba", "train")

# The point at a distance of 28.3 from the centre. In the ball it is 1e-12 inside, and float64
# tells places apart there that are 1e-4 from each other.
LARGEST_NORM = 1e12

# Between points nearer than this there is no direction to speak of.
COINCIDENT = 1e-7


def _measure(
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    terms: NDArray[np.float64],
    count: int,
) -> None:
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


measure = numba.njit(_measure, fastmath=True)


def _descend(
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    terms: NDArray[np.float64],
    count: int,
) -> None:
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


def _tangent_square(here: NDArray[np.float64], tangents: NDArray[np.float64], column: int) -> float:
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


tangent_square = numba.njit(_tangent_square)
descend = numba.njit(_descend, fastmath=True)


def _gather(
    points: NDArray[np.float64], group: NDArray[np.int64], there: NDArray[np.float64]
) -> None:
    """Copy the points of a group into columns."""
    for place, row in enumerate(group):
        for axis in range(points.shape[1]):
            there[axis, place] = points[row, axis]


gather = numba.njit(_gather)


def _scatter(
    points: NDArray[np.float64],
    group: NDArray[np.int64],
    there: NDArray[np.float64],
) -> None:
    """Add the columns to the points of a group, and keep the norms within `LARGEST_NORM`."""
    for place, row in enumerate(group):
        square = 0.0
        for axis in range(points.shape[1]):
            points[row, axis] += there[axis, place]
            square += points[row, axis] ** 2
        if square > LARGEST_NORM * LARGEST_NORM:
            for axis in range(points.shape[1]):
                points[row, axis] *= LARGEST_NORM / math.sqrt(square)


scatter = numba.njit(_scatter, fastmath=True)


def _slopes(
    terms: NDArray[np.float64], classes: int, count: int, sharpness: float, rate: float
) -> float:
    """Fill the second and fourth row from the first; return the loss of [N], Eq. 6.

    Args:
        terms: (4, m) see above; the first columns are the classes, the others were drawn.
        classes: How many classes.
        count: How many in all.
        sharpness: Factor on distances in the loss.
        rate: Learning rate.
    """
    excess, sinh, slope = terms[0], terms[1], terms[3]
    for place in range(count):
        # exp(-arcosh(1 + excess)) without transcendental functions.
        sinh[place] = math.sqrt(excess[place] * (excess[place] + 2.0))
        slope[place] = 1.0 / (1.0 + excess[place] + sinh[place])
    if sharpness != 1.0:
        for place in range(count):
            slope[place] **= sharpness
    drawn = np.sum(slope[classes:count])
    loss, inverses = 0.0, 0.0
    for place in range(classes):
        inverse = 1.0 / (slope[place] + drawn)
        loss -= math.log(slope[place] * inverse)
        inverses += inverse
        slope[place] = rate * sharpness * drawn * inverse
    for place in range(classes, count):
        slope[place] *= -rate * sharpness * inverses
    for place in range(count):
        sinh[place] = slope[place] / sinh[place] if sinh[place] > COINCIDENT else 0.0
    return loss


slopes = numba.njit(_slopes, fastmath=True)


def _train(
    points: NDArray[np.float64],
    nodes: NDArray[np.int64],
    graph: Graph,
    table: Table,
    negatives: int,
    near: float,
    sharpness: float,
    rate: float,
    state: NDArray[np.uint64],
) -> float:
    """Take one step of Riemannian gradient descent for each node, in order.

    Args:
        points: (N, n) coordinates, changed in place.
        nodes: (m,) nodes that have classes.
        graph: Relations.
        table: Distribution of negatives.
        negatives: Nodes drawn for each node; its classes among them are left out.
        near: Share of them drawn among the members of the node's classes instead.
        sharpness: Factor on distances in the loss.
        rate: Learning rate.
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
        count = fill_group(node, group, negatives, near, graph, table, state)
        gather(points, group[:count], there)
        measure(points[node], there, terms, count)
        losses += slopes(terms, counts[node], count, sharpness, rate)
        descend(points[node], there, terms, count)
        group[count] = node
        scatter(points, group[: count + 1], there)
    return losses


train: Callable[..., float] = numba.njit(_train, nogil=True)


def to_ball(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points of the ball with these coordinates in space, (N, n) for (N, n)."""
    times = np.sqrt(1.0 + np.einsum("ij,ij->i", points, points))
    ball: NDArray[np.float64] = points / (1.0 + times)[:, None]
    return ball

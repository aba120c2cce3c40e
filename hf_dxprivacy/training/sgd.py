"""The inner loop of Poincaré training, compiled by numba.

Import this module only when training: it needs the extra ``train``. The compiled functions
release the interpreter lock and share one matrix without locks, as in Recht et al., "Hogwild!"
(NIPS 2011); rare lost updates do no harm.

A node is compared with all its classes and with the nodes drawn against them at once. Their points
are copied into a buffer with one column each, so that the memory is read in one go and the
processor's vector units work along the columns. The rows of the buffer `terms` beside it are: cosh
of the distance minus 1; rate times the derivative of the loss by the distance, over sinh of the
distance; what the parametrisation needs; and rate times the derivative of the loss.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.training import ball, hyperboloid
from hf_dxprivacy.training.negatives import Graph, Table, fill_group

numba: Any = require("numba", "train")

# Between points nearer than this there is no direction to speak of.
COINCIDENT = 1e-7


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
    limit: float,
) -> None:
    """Add the columns to the points of a group, and keep the norms within the limit."""
    for place, row in enumerate(group):
        square = 0.0
        for axis in range(points.shape[1]):
            points[row, axis] += there[axis, place]
            square += points[row, axis] ** 2
        if square > limit * limit:
            for axis in range(points.shape[1]):
                points[row, axis] *= limit / math.sqrt(square)


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


def _compile(measure: Any, descend: Any, limit: float) -> Callable[..., float]:
    """Compile the loop for one parametrisation."""

    def train(
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
            scatter(points, group[: count + 1], there, limit)
        return losses

    compiled: Callable[..., float] = numba.njit(train, nogil=True)
    return compiled


train_ball = _compile(ball.measure, ball.descend, ball.LARGEST_NORM)
train_hyperboloid = _compile(hyperboloid.measure, hyperboloid.descend, hyperboloid.LARGEST_NORM)

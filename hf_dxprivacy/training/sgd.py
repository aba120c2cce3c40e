"""The inner loop of Poincaré training, compiled by numba.

Import this module only when training: it needs the extra ``train``. The compiled functions
release the interpreter lock and share one matrix without locks, as in Recht et al., "Hogwild!"
(NIPS 2011); rare lost updates do no harm.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require

numba: Any = require("numba", "train")

# [N] keeps points this far inside the ball.
MARGIN = 1e-5

# Steps of this length in hyperbolic space, and directions between points this near, are skipped.
NEGLIGIBLE = 1e-7
COINCIDENT = 1e-12


def _uniform(state: NDArray[np.uint64]) -> float:
    """Draw from [0, 1) and advance a splitmix64 state of one element."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


uniform = numba.njit(inline="always")(_uniform)


def _draw(
    state: NDArray[np.uint64], threshold: NDArray[np.float64], alias: NDArray[np.int64]
) -> int:
    """Draw a node by the alias method."""
    place = uniform(state) * len(alias)
    slot = int(place)
    return slot if place - slot < threshold[slot] else int(alias[slot])


draw = numba.njit(inline="always")(_draw)


def _is_above(
    node: int, candidate: int, starts: NDArray[np.int64], classes: NDArray[np.int64]
) -> bool:
    """Look a candidate up among the sorted classes of a node."""
    low, high = starts[node], starts[node + 1]
    while low < high:
        middle = (low + high) // 2
        if classes[middle] < candidate:
            low = middle + 1
        else:
            high = middle
    return bool(low < starts[node + 1] and classes[low] == candidate)


is_above = numba.njit(_is_above)


def _move(points: NDArray[np.float64], row: int, step: NDArray[np.float64]) -> None:
    """Add a step to a point and keep it inside the ball."""
    square = 0.0
    for axis in range(points.shape[1]):
        points[row, axis] += step[axis]
        square += points[row, axis] ** 2
    limit = 1.0 - MARGIN
    if square >= limit * limit:
        shrink = limit / math.sqrt(square)
        for axis in range(points.shape[1]):
            points[row, axis] *= shrink


move = numba.njit(_move, fastmath=True)


def _pick(
    node: int,
    others: NDArray[np.int64],
    starts: NDArray[np.int64],
    classes: NDArray[np.int64],
    threshold: NDArray[np.float64],
    alias: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> int:
    """Fill `others` from its second place with nodes that are not classes; return their end."""
    count = 1
    for _ in range(len(others) - 1):
        other = draw(state, threshold, alias)
        if other != node and not is_above(node, other, starts, classes):
            others[count] = other
            count += 1
    return count


pick = numba.njit(_pick)


def _measure(
    points: NDArray[np.float64],
    node: int,
    others: NDArray[np.int64],
    sharpness: float,
    terms: NDArray[np.float64],
) -> tuple[float, float]:
    """Fill `terms` for each other node; return the node's squared norm and the sum of weights.

    The rows of `terms` are |y|², x·y, sinh d and exp(-d).
    """
    own = 0.0
    for axis in range(points.shape[1]):
        own += points[node, axis] ** 2
    weight_sum = 0.0
    for place, other in enumerate(others):
        square, product, apart = 0.0, 0.0, 0.0
        for axis in range(points.shape[1]):
            x, y = points[node, axis], points[other, axis]
            square += y * y
            product += x * y
            apart += (x - y) * (x - y)
        # exp(-arcosh(1 + excess)) without transcendental functions.
        excess = 2.0 * apart / ((1.0 - own) * (1.0 - square))
        root = math.sqrt(excess * (excess + 2.0))
        terms[0, place], terms[1, place], terms[2, place] = square, product, root
        terms[3, place] = (1.0 + excess + root) ** -sharpness
        weight_sum += terms[3, place]
    return own, weight_sum


measure = numba.njit(_measure, fastmath=True)


def _descend(
    points: NDArray[np.float64],
    node: int,
    own: float,
    others: NDArray[np.int64],
    terms: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> None:
    """Move a node and the others against the gradient.

    `terms` is what `measure` filled, with rate times the derivative of the loss by the distance in
    the last row; `steps` is room for (2, n) numbers.
    """
    steps[0] = 0.0
    for place, other in enumerate(others):
        slope, sinh = terms[3, place], terms[2, place]
        if abs(slope) < NEGLIGIBLE or sinh < COINCIDENT:
            continue
        # Eq. 4 of [N] times the inverse metric (1 - |x|²)² / 4, for either end.
        square, product = terms[0, place], terms[1, place]
        near = slope / ((1.0 - square) * sinh)
        far = slope / ((1.0 - own) * sinh)
        for axis in range(points.shape[1]):
            x, y = points[node, axis], points[other, axis]
            steps[0, axis] -= near * ((square - 2.0 * product + 1.0) * x - (1.0 - own) * y)
            steps[1, axis] = -far * ((own - 2.0 * product + 1.0) * y - (1.0 - square) * x)
        move(points, other, steps[1])
    move(points, node, steps[0])


descend = numba.njit(_descend, fastmath=True)


def _train(
    points: NDArray[np.float64],
    pairs: NDArray[np.int64],
    starts: NDArray[np.int64],
    classes: NDArray[np.int64],
    threshold: NDArray[np.float64],
    alias: NDArray[np.int64],
    negatives: int,
    sharpness: float,
    rate: float,
    state: NDArray[np.uint64],
) -> float:
    """Take one step of Riemannian gradient descent for each pair, in order.

    Args:
        points: (N, n) points in the ball, changed in place.
        pairs: (m, 2) node and class.
        starts: (N + 1,) where the classes of each node start in `classes`.
        classes: Classes of all nodes, sorted within each node.
        threshold: (N,) alias table of the distribution of negatives.
        alias: (N,) the other half of the table.
        negatives: Nodes drawn for each pair; those that are classes of the node are left out.
        sharpness: Factor on distances in the loss.
        rate: Learning rate.
        state: (1,) state of the random numbers.

    Returns:
        Sum of the losses.
    """
    others = np.empty(negatives + 1, dtype=np.int64)
    terms = np.empty((4, negatives + 1))
    steps = np.empty((2, points.shape[1]))
    losses = 0.0
    for pair in range(len(pairs)):
        node = pairs[pair, 0]
        others[0] = pairs[pair, 1]
        count = pick(node, others, starts, classes, threshold, alias, state)
        own, weight_sum = measure(points, node, others[:count], sharpness, terms)
        losses -= math.log(terms[3, 0] / weight_sum)
        for place in range(count):
            terms[3, place] *= -rate * sharpness / weight_sum
        terms[3, 0] += rate * sharpness
        descend(points, node, own, others[:count], terms, steps)
    return losses


train = numba.njit(_train, nogil=True, fastmath=True)

"""Riemannian gradient steps with the coordinates of the hyperboloid, as in [L].

[L]: Nickel & Kiela, "Learning continuous hierarchies in the Lorentz model of hyperbolic geometry"
(ICML 2018). A point is kept as its n coordinates in space, v; the one in time, √(1 + |v|²),
follows. It may be any vector, so that nothing is clipped at a boundary, and steps are geodesics.
Differences of large coordinates are avoided throughout: what the products of [L] lose at a
distance r from the centre is of the order e²ʳ, here it is eʳ, as much as the coordinates
themselves resolve. See `sgd` for the rows of `terms`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require

numba: Any = require("numba", "train")

# The point at a distance of 28.3 from the centre. In the ball it is 1e-12 inside, and float64
# tells places apart there that are 1e-4 from each other.
LARGEST_NORM = 1e12


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


def to_ball(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points of the ball with these coordinates in space, (N, n) for (N, n)."""
    times = np.sqrt(1.0 + np.einsum("ij,ij->i", points, points))
    ball: NDArray[np.float64] = points / (1.0 + times)[:, None]
    return ball

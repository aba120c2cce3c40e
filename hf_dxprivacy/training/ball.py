"""Riemannian gradient steps with the coordinates of the Poincaré ball, as in [N].

[N]: Nickel & Kiela, "Poincaré embeddings for learning hierarchical representations" (NIPS 2017).
A step is a straight line in the ball, and what would leave it is put back. See `sgd` for the rows
of `terms`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require

numba: Any = require("numba", "train")

# [N] keeps points this far inside the ball.
LARGEST_NORM = 1.0 - 1e-5


def _measure(
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    terms: NDArray[np.float64],
    count: int,
) -> None:
    """Fill the rows `excess`, cosh d − 1 from `here`, and `gap`, 1 − |y|²."""
    excess, gap = terms[0], terms[2]
    own = 1.0
    excess[:count] = 0.0
    gap[:count] = 1.0
    for axis in range(len(here)):
        x = here[axis]
        own -= x * x
        for place in range(count):
            y = there[axis, place]
            gap[place] -= y * y
            excess[place] += (x - y) * (x - y)
    for place in range(count):
        excess[place] *= 2.0 / (own * gap[place])


measure = numba.njit(_measure, fastmath=True)


def _descend(
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    terms: NDArray[np.float64],
    count: int,
) -> None:
    """Replace the columns of `there` by their steps, and the one after them by that of `here`.

    Eq. 4 of [N] times the inverse metric, written with the gaps g = 1 − |·|² and δ = |x − y|²:
    x moves by slope · (gₓ(y − x) − δx) / (g_y sinh d).
    """
    excess, pull, gap = terms[0], terms[1], terms[2]
    own = 1.0 - np.dot(here, here)
    shrink = 0.0
    for place in range(count):
        shrink += 0.5 * pull[place] * excess[place] * own
    for axis in range(len(here)):
        x, total = here[axis], 0.0
        for place in range(count):
            y = there[axis, place]
            total += pull[place] / gap[place] * (y - x)
            half = 0.5 * excess[place] * gap[place]
            there[axis, place] = pull[place] * (gap[place] / own * (x - y) - half * y)
        there[axis, count] = own * total - shrink * x


descend = numba.njit(_descend, fastmath=True)


def to_ball(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of the points, which are in the ball already."""
    return points.copy()

"""Laws of the peers' mechanisms, worked out apart from them, to compare all pairs of inputs by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Nodes of a piece of an integral, and how far it goes beyond the words, in units of 1/ε.
NODES, REACH = 20, 60


def vickrey_on_a_line(words: Array, inputs: Array, epsilon: float, t: float) -> Array:
    """Integrate the law of the Vickrey mechanism in one dimension.

    Between two of these points the two nearest words stay the same and all is smooth: the words,
    the inputs, and the middles between words that are neighbours or next to them.

    Args:
        words: (V,) places of the words, V >= 3.
        inputs: (m,) places of inputs.
        epsilon: ε.
        t: From the nearest word (0) to the second nearest (1).

    Returns:
        (m, V) probabilities; each row adds up to 1.
    """
    order = np.sort(words)
    middles = [(order[k:] + order[:-k]) / 2.0 for k in (1, 2)]
    tail = np.arange(1, REACH + 1) / epsilon
    ends = np.concatenate([order, inputs, *middles, order[0] - tail, order[-1] + tail])
    ends = np.unique(ends)
    at, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(ends)[:, None] / 2.0
    points = (ends[:-1, None] + half + half * at).ravel()
    masses = (half * weights).ravel()
    away = np.abs(points[:, None] - words)
    nearest = np.argsort(away, axis=1)[:, :2]
    first, second = np.take_along_axis(away, nearest, axis=1).T
    stays = (1.0 - t) * second / (t * first + (1.0 - t) * second)
    law = np.empty((len(inputs), len(words)))
    for row, place in zip(law, inputs, strict=True):
        mass = masses * epsilon / 2.0 * np.exp(-epsilon * np.abs(points - place))
        row[:] = np.bincount(nearest[:, 0], mass * stays, len(words))
        row += np.bincount(nearest[:, 1], mass * (1.0 - stays), len(words))
    return law


def largest_log_ratios(laws: Array) -> Array:
    """Return, for all pairs of rows, the largest |ln Pr[y | a] − ln Pr[y | b]|, (m, m).

    ∞ where an output is possible from one and not from the other.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(laws)
        return np.stack(
            [np.nan_to_num(np.abs(logs - row), nan=0.0, posinf=np.inf).max(axis=1) for row in logs]
        )


def worst_share(ratios: Array, allowed: Array) -> float:
    """Return the largest log-ratio as a share of what is allowed for its pair."""
    apart = ~np.eye(len(ratios), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: Any = np.where(np.isinf(allowed) | (ratios <= 1e-9), 0.0, ratios / allowed)
    return float(shares[apart].max())

"""Laws of the peers' mechanisms, worked out apart from them, to compare all pairs of inputs by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Nodes of a piece of an integral, and how far it goes beyond the words, in units of 1/ε.
NODES, REACH = 20, 60
# In the place of −ln 0; no logarithm of a number comes near it.
IMPOSSIBLE = 1e9


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
    from scipy.spatial.distance import cdist

    with np.errstate(divide="ignore"):
        # ∞ − ∞ is no number.
        logs = np.maximum(np.log(laws), -IMPOSSIBLE)
    found: Array = cdist(logs, logs, "chebyshev")
    found[found > IMPOSSIBLE / 2.0] = np.inf
    return found


def worst_share(ratios: Array, allowed: Array) -> float:
    """Return the largest log-ratio as a share of what is allowed for its pair."""
    apart = ~np.eye(len(ratios), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: Any = np.where(np.isinf(allowed) | (ratios <= 1e-9), 0.0, ratios / allowed)
    return float(shares[apart].max())


def diffractor(orders: NDArray[np.int64], epsilon: float) -> Array:
    """Return the law of noise on places that is clamped at the ends, a mean over lists.

    Args:
        orders: (L, V) words of each list.
        epsilon: ε per place.

    Returns:
        (V, V) probabilities.
    """
    lists, size = orders.shape
    reach = size + int(np.ceil(60.0 / epsilon))
    steps = np.arange(-reach, reach + 1)
    noise = np.exp(-epsilon * np.abs(steps))
    noise /= noise.sum()
    law = np.zeros((size, size))
    for order in orders:
        for place, word in enumerate(order):
            ends = order[np.clip(place + steps, 0, size - 1)]
            law[word] += np.bincount(ends, noise, size) / lists
    return law


def in_sets(distances: Array, sets: list[set[int]], epsilon: float) -> Array:
    """Return the exponential mechanism in a set of each word, by parts of its largest distance."""
    law = np.zeros_like(distances)
    for word, members in enumerate(sets):
        found = sorted(members)
        scores = -distances[word, found] / distances[word, found].max()
        law[word, found] = np.exp(epsilon / 2.0 * scores)
    return law / law.sum(axis=1, keepdims=True)


def clusters_of(distances: Array, k: int) -> list[set[int]]:
    """Return the cluster of each word: the first free one and the k−1 nearest free ones."""
    found: list[set[int]] = [set() for _ in distances]
    free = list(range(len(distances)))
    while free:
        size = k if len(free) >= 2 * k else len(free)
        cluster = set(sorted(free, key=lambda word: distances[free[0], word])[:size])
        for word in cluster:
            found[word] = cluster
        free = [word for word in free if word not in cluster]
    return found


def gumbel_logs(distances: Array, epsilon: float, every: int = 1) -> Array:
    """Return ln of the law of the truncated Gumbel mechanism as its paper has it, (V, V).

    With `every`, of every so many words only, beginning with the first one.

    In logarithms, since the farthest words are less likely than double precision can tell.
    """
    from scipy.special import gammaln, lambertw, logsumexp

    size = len(distances)
    least, largest = distances[distances > 0].min(), distances.max()
    alpha = (epsilon - 2.0 * (1.0 + np.log(size)) / least) / 3.0
    scale = 2.0 * largest / min(lambertw(2.0 * alpha * largest).real, np.log(alpha * least))
    low, high = np.exp(-np.exp(np.array([largest, -largest]) / scale))
    inside = np.log(high - low)
    numbers = np.arange(1, size + 1)
    counts = numbers * np.log(np.log(size)) - gammaln(numbers + 1)
    counts -= logsumexp(counts)
    at, weights = np.polynomial.legendre.leggauss(4)
    rows = distances[::every]
    logs = np.empty_like(rows)
    for word, row in enumerate(rows):
        order = np.argsort(row, kind="stable")
        ends = np.unique(np.append(row - largest, np.linspace(row.max() - largest, largest, 9)))
        half = np.diff(ends)[:, None] / 2.0
        points, masses = (ends[:-1, None] + half * (1.0 + at)).ravel(), (half * weights).ravel()
        away = points - row[order][:, None]
        beyond = np.exp(-np.maximum(away, -largest) / scale)
        density = -away / scale - beyond - np.log(scale) - inside
        density[away < -largest] = -np.inf
        survival = (high - np.exp(-beyond)) / (high - low)
        logs_of_survival = np.log(survival)
        # The candidates from a rank on, as a multiple of that rank's own part.
        from_rank = np.ones_like(survival)
        for rank in range(size - 2, -1, -1):
            step = np.log(size) / numbers[rank + 1] * survival[rank + 1]
            from_rank[rank] += step * from_rank[rank + 1]
        parts = density + counts[:, None] + np.cumsum(logs_of_survival, axis=0) - logs_of_survival
        peaks = parts.max(axis=1)
        sums = (np.exp(parts - peaks[:, None]) * from_rank) @ masses
        logs[word, order] = peaks + np.log(sums)
    return logs

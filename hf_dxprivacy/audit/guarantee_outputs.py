"""Sets of outputs that tell two inputs apart, found in draws."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.results import share_interval

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Event:
    """A suspicion: more of `first` comes out within a set than `second` would allow.

    Attributes:
        first: Position of one input.
        second: Position of the other one.
        outputs: The set, ascending.
        score: By how many standard deviations its log-ratio was above ε·d where it was found.
    """

    first: int
    second: int
    outputs: Ids
    score: float


def most_telling(pair: tuple[int, int], first: Ids, second: Ids, allowed: float) -> Event:
    """Find the set of outputs that speaks most against ln Pr[first ∈ S]/Pr[second ∈ S] ≤ ε·d.

    Sets are single outputs, the k most frequent ones, and the k with the largest likelihood ratio:
    by Neyman and Pearson the law that tells two inputs apart best is of that form. The first half
    of the draws orders outputs, the second one scores the sets, so that no set scores high merely
    because it was made of what had come up.

    Args:
        pair: Positions of the two inputs.
        first: (n,) outputs drawn for the first one.
        second: (n,) outputs drawn for the second one.
        allowed: ε·d of the pair.
    """
    half = len(first) // 2
    found, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    a, b = (np.split(part, [half]) for part in np.split(codes, [len(first)]))
    (seen_a, counts_a), (seen_b, counts_b) = (
        [np.bincount(part, minlength=len(found)) for part in parts] for parts in (a, b)
    )
    ratio = (seen_a + 0.5) / (seen_b + 0.5)
    candidates = []
    for order in (np.lexsort((-seen_a, -ratio)), np.argsort(-seen_a, kind="stable")):
        scores = _scores(
            np.cumsum(counts_a[order]), np.cumsum(counts_b[order]), len(first) - half, allowed
        )
        size = int(scores.argmax()) + 1
        candidates.append((float(scores[size - 1]), order[:size]))
    singles = _scores(counts_a, counts_b, len(first) - half, allowed)
    best = int(singles.argmax())
    candidates.append((float(singles[best]), np.array([best])))
    score, members = max(candidates, key=lambda candidate: candidate[0])
    return Event(*pair, np.sort(found[members]), score)


def least_log_ratio(hits_first: int, hits_second: int, draws: int, alpha: float) -> float:
    """Return a lower bound of ln p/q that is above it with probability at most alpha.

    Clopper–Pearson bounds, from below for p and from above for q, each wrong with probability
    alpha/2 at most.

    Args:
        hits_first: Successes of probability p.
        hits_second: Successes of probability q.
        draws: Trials of each.
        alpha: In (0, 1).
    """
    low = share_interval(hits_first, draws, 1.0 - alpha).low
    high = share_interval(hits_second, draws, 1.0 - alpha).high
    return math.log(low / high) if low > 0 else -math.inf


def _scores(first: Ids, second: Ids, draws: int, allowed: float) -> NDArray[np.float64]:
    """Return (ln p/q − ε·d) in its standard deviations, for counts of successes."""
    p, q = (first + 0.5) / (draws + 1.0), (second + 0.5) / (draws + 1.0)
    deviation = np.sqrt((1.0 - p) / p + (1.0 - q) / q) / math.sqrt(draws)
    scores: NDArray[np.float64] = (np.log(p / q) - allowed) / deviation
    return scores

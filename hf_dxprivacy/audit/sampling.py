"""Statistical check of the guarantee of anything that can be drawn from."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.check import GuaranteeCheck
from hf_dxprivacy.audit.inputs import AuditTarget, pairs_to_compare
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.results import share_interval

Ids = NDArray[np.int64]

# Candidate violations that are tested. Fewer of them get more draws each, and need less to fail.
TESTED = 8
# Draws of one input below which a search finds nothing.
LEAST_DRAWS = 20
# Draws that are held at once.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class CandidateViolation:
    """A candidate violation: more of `first` comes out within a set than `second` would allow.

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


def most_telling(
    pair: tuple[int, int], first: Ids, second: Ids, allowed: float
) -> CandidateViolation:
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
    return CandidateViolation(*pair, np.sort(found[members]), score)


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


def check_by_draws(
    target: AuditTarget, draws: int, alpha: float, rng: np.random.Generator
) -> GuaranteeCheck:
    """Search for a pair and a set of outputs above ε·d, then test it on fresh draws.

    Half of the draws search: all inputs are drawn for, and in the draws of each pair that set is
    looked for which speaks most against it. The other half tests the `TESTED` worst pairs
    and sets. With T of them and a Clopper–Pearson lower bound at level alpha/T each (Bonferroni),
    a mechanism whose draws are independent and keep ε·d fails with probability at most alpha,
    however the search went, since it used none of the draws that decide.

    Args:
        target: What to look at.
        draws: In all.
        alpha: The false-alarm rate, in (0, 1).
        rng: Chooses pairs.

    Raises:
        InvalidValueError: If the draws are too few for so many inputs.
    """
    least = 2 * LEAST_DRAWS * len(target.inputs)
    if draws < least:
        raise InvalidValueError(
            f"expected draws >= {least} for {len(target.inputs)} inputs, got draws={draws}; "
            "draw more or look at fewer inputs"
        )
    # A set that is seen a few times from one input of a pair, and never from the other.
    most = math.log(draws / (4 * TESTED))
    pairs = pairs_to_compare(target.allowed, most, rng)
    candidates = _search(target, pairs, draws // 2 // len(target.inputs))
    place, lowest = _test(target, candidates, draws // 2, alpha / len(candidates))
    worst, allowed = candidates[place], target.allowed
    return GuaranteeCheck(
        passed=bool(lowest <= allowed[worst.first, worst.second]),
        method="sampling",
        worst=(target.inputs[worst.first], target.inputs[worst.second]),
        outputs=tuple(target.name(int(output)) for output in worst.outputs),
        log_ratio=lowest,
        allowed=float(allowed[worst.first, worst.second]),
        inputs=len(target.inputs),
        pairs=len(pairs),
        scope=f"near, far and random ones with ε·d up to {most:.3g}; "
        f"{len(candidates)} candidate violations tested",
        false_alarm_rate=alpha,
        draws=draws,
    )


def _search(target: AuditTarget, pairs: NDArray[np.int64], each: int) -> list[CandidateViolation]:
    """Return the worst pairs and sets, worst first."""
    inputs = len(target.inputs)
    drawn = target.draw(np.repeat(np.arange(inputs), each)).reshape(inputs, each)
    candidates = [
        most_telling((int(i), int(j)), drawn[i], drawn[j], target.allowed[i, j])
        for pair in pairs
        for i, j in (pair, pair[::-1])
    ]
    return sorted(candidates, key=lambda candidate: -candidate.score)[:TESTED]


def _test(
    target: AuditTarget, candidates: list[CandidateViolation], draws: int, alpha: float
) -> tuple[int, float]:
    """Return the place of the candidate that goes farthest above ε·d, and its log-ratio."""
    inputs = sorted({k for c in candidates for k in (c.first, c.second)})
    each = draws // len(inputs)
    # Suspicions that share an input share its draws; Bonferroni asks for no independence.
    hits = {k: _hits(target, k, [e.outputs for e in candidates], each) for k in inputs}
    lowest = [
        least_log_ratio(hits[e.first][place], hits[e.second][place], each, alpha)
        for place, e in enumerate(candidates)
    ]
    allowed = [target.allowed[e.first, e.second] for e in candidates]
    place = int(np.argmax(np.subtract(lowest, allowed)))
    return place, lowest[place]


def _hits(
    target: AuditTarget, position: int, sets: list[NDArray[np.int64]], draws: int
) -> list[int]:
    """Count the draws of one input that fall into each set."""
    hits = np.zeros(len(sets), dtype=np.int64)
    for start in range(0, draws, BLOCK):
        drawn, counts = np.unique(
            target.draw(np.full(min(BLOCK, draws - start), position)), return_counts=True
        )
        hits += [counts[np.isin(drawn, outputs)].sum() for outputs in sets]
    return hits.tolist()

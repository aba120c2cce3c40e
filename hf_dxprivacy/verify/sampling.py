"""Statistical check of a guarantee, by draws from a mechanism or any other callable."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.results import share_interval
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import AuditTarget, Ids, pairs_to_compare

# Candidate violations that are tested. Fewer of them get more draws each, and need less to fail.
TESTED = 8
# Draws of one input below which a search finds nothing.
LEAST_DRAWS = 20
# Draws that are held at once.
BLOCK = 1 << 20


class CandidateViolation(NamedTuple):
    """A set of outputs, ascending, that is likelier from `first` than ε·d from `second` allows.

    The score says by how many standard deviations the log-ratio was above ε·d in the search.
    """

    first: int
    second: int
    outputs: Ids
    score: float


def most_telling(
    pair: tuple[int, int], first: Ids, second: Ids, allowed: float
) -> list[CandidateViolation]:
    """Find the sets of outputs that speak most against ln Pr[first ∈ S]/Pr[second ∈ S] ≤ ε·d.

    One for the pair, and one for the pair the other way round. Sets are single outputs, the k most
    frequent ones, and the k with the largest likelihood ratio: by Neyman and Pearson the law that
    tells two inputs apart best is of that form. The first half of the (n,) draws of each orders
    outputs, the second one scores the sets, so that no set scores high merely because it was made
    of what had come up.
    """
    half = len(first) // 2
    found, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    parts = np.split(codes, [half, len(first), len(first) + half])
    tallies = [np.bincount(part, minlength=len(found)) for part in parts]
    best = []
    for seen_a, hits_a, seen_b, hits_b in (tallies, tallies[2:] + tallies[:2]):
        ratio, candidates = (seen_a + 0.5) / (seen_b + 0.5), []
        for order in (np.lexsort((-seen_a, -ratio)), np.argsort(-seen_a, kind="stable")):
            hits = np.cumsum(hits_a[order]), np.cumsum(hits_b[order])
            scores = _scores(*hits, len(first) - half, allowed)
            size = int(scores.argmax()) + 1
            candidates.append((float(scores[size - 1]), order[:size]))
        singles = _scores(hits_a, hits_b, len(first) - half, allowed)
        candidates.append((float(singles.max()), np.array([singles.argmax()])))
        score, members = max(candidates, key=lambda candidate: candidate[0])
        best.append(CandidateViolation(*pair, np.sort(found[members]), score))
        pair = pair[1], pair[0]
    return best


def _scores(first: Ids, second: Ids, draws: int, allowed: float) -> NDArray[np.float64]:
    """Return (ln p/q − ε·d) in its standard deviations, for counts of successes."""
    p, q = (first + 0.5) / (draws + 1.0), (second + 0.5) / (draws + 1.0)
    deviation = np.sqrt((1.0 - p) / p + (1.0 - q) / q) / math.sqrt(draws)
    scores: NDArray[np.float64] = (np.log(p / q) - allowed) / deviation
    return scores


def least_log_ratio(hits_first: int, hits_second: int, draws: int, alpha: float) -> float:
    """Return a lower bound of ln p/q that is above it with probability at most alpha.

    Clopper–Pearson bounds, from below for p and from above for q, each of `draws` trials and each
    wrong with probability alpha/2 at most.
    """
    low = share_interval(hits_first, draws, 1.0 - alpha).low
    high = share_interval(hits_second, draws, 1.0 - alpha).high
    return math.log(low / high) if low > 0 else -math.inf


def check_by_draws(
    target: AuditTarget,
    draws: int,
    alpha: float,
    rng: np.random.Generator,
    progress: bool = False,
) -> GuaranteeCheck:
    """Search for a pair and a set of outputs above ε·d, then test it on fresh draws.

    Half of the draws search: all inputs are drawn for, and in the draws of each pair that set is
    looked for which speaks most against it. The other half tests the `TESTED` worst pairs
    and sets. With T of them and a Clopper–Pearson lower bound at level alpha/T each (Bonferroni),
    a mechanism whose draws are independent and keep ε·d fails with probability at most alpha,
    however the search went, since it used none of the draws that decide.

    Raises:
        InvalidValueError: If the draws are too few for so many inputs.
    """
    inputs, allowed = len(target.inputs), target.allowed
    least = 2 * LEAST_DRAWS * inputs
    if draws < least:
        raise InvalidValueError(
            f"expected draws >= {least} for {inputs} inputs, got draws={draws}; "
            "draw more or look at fewer inputs"
        )
    # A set that is seen a few times from one input of a pair, and never from the other.
    most = math.log(draws / (4 * TESTED))
    pairs = pairs_to_compare(allowed, most, rng)
    drawn = target.draw(np.repeat(np.arange(inputs), draws // 2 // inputs)).reshape(inputs, -1)
    found = [
        candidate
        for i, j in tqdm(pairs.tolist(), "Comparing", delay=1.0, disable=not progress or None)
        for candidate in most_telling((i, j), drawn[i], drawn[j], float(allowed[i, j]))
    ]
    candidates = sorted(found, key=lambda candidate: -candidate.score)[:TESTED]
    worst, lowest = _test(target, candidates, draws // 2, alpha / len(candidates))
    bound = float(allowed[worst.first, worst.second])
    return GuaranteeCheck(
        passed=bool(lowest <= bound),
        method="sampling",
        worst=(target.inputs[worst.first], target.inputs[worst.second]),
        outputs=tuple(target.name(int(output)) for output in worst.outputs),
        log_ratio=lowest,
        allowed=bound,
        inputs=inputs,
        pairs=len(pairs),
        scope=f"near, far and random ones with ε·d up to {most:.3g}; "
        f"{len(candidates)} candidate violations tested",
        false_alarm_rate=alpha,
        draws=draws,
    )


def _test(
    target: AuditTarget, candidates: list[CandidateViolation], draws: int, alpha: float
) -> tuple[CandidateViolation, float]:
    """Return the candidate that goes farthest above ε·d in fresh draws, and its log-ratio."""
    inputs = sorted({k for c in candidates for k in (c.first, c.second)})
    each = draws // len(inputs)
    # Candidates that share an input share its draws; Bonferroni asks for no independence.
    hits = np.zeros((len(target.inputs), len(candidates)), dtype=np.int64)
    step = BLOCK // len(inputs)
    for start in range(0, each, step):
        drawn = target.draw(np.repeat(inputs, min(step, each - start)))
        for position, row in zip(inputs, drawn.reshape(len(inputs), -1), strict=True):
            found, counts = np.unique(row, return_counts=True)
            hits[position] += [counts[np.isin(found, c.outputs)].sum() for c in candidates]
    tested = [
        (c, least_log_ratio(hits[c.first, place], hits[c.second, place], each, alpha))
        for place, c in enumerate(candidates)
    ]
    return max(tested, key=lambda pair: pair[1] - target.allowed[pair[0].first, pair[0].second])

"""The guarantee of anything that can be drawn from, by statistical tests."""

import math

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.guarantee_check import GuaranteeCheck
from hf_dxprivacy.audit.guarantee_inputs import Suspect, pairs_to_compare
from hf_dxprivacy.audit.guarantee_outputs import Event, least_log_ratio, most_telling
from hf_dxprivacy.errors import InvalidValueError

# Suspicions that are put to the test. Fewer of them get more draws each, and need less to fail.
TESTED = 8
# Draws of one input below which a search finds nothing.
LEAST_DRAWS = 20
# Draws that are held at once.
BLOCK = 1 << 20


def check_by_draws(
    suspect: Suspect, draws: int, alpha: float, rng: np.random.Generator
) -> GuaranteeCheck:
    """Search for a pair and a set of outputs above ε·d, then test the suspicions on fresh draws.

    Half of the draws search: all inputs are drawn for, and in the draws of each pair that set is
    looked for which speaks most against it. The other half tests the `TESTED` most suspicious pairs
    and sets. With T of them and a Clopper–Pearson lower bound at level alpha/T each (Bonferroni),
    a mechanism whose draws are independent and keep ε·d fails with probability at most alpha,
    however the search went, since it used none of the draws that decide.

    Args:
        suspect: What to look at.
        draws: In all.
        alpha: The false-alarm rate, in (0, 1).
        rng: Chooses pairs.

    Raises:
        InvalidValueError: If the draws are too few for so many inputs.
    """
    least = 2 * LEAST_DRAWS * len(suspect.inputs)
    if draws < least:
        raise InvalidValueError(
            f"expected draws >= {least} for {len(suspect.inputs)} inputs, got draws={draws}; "
            "draw more or look at fewer inputs"
        )
    # A set that is seen a few times from one input of a pair, and never from the other.
    most = math.log(draws / (4 * TESTED))
    pairs = pairs_to_compare(suspect.allowed, most, rng)
    suspicions = _search(suspect, pairs, draws // 2 // len(suspect.inputs))
    place, lowest = _test(suspect, suspicions, draws // 2, alpha / len(suspicions))
    worst, allowed = suspicions[place], suspect.allowed
    return GuaranteeCheck(
        passed=bool(lowest <= allowed[worst.first, worst.second]),
        method="sampling",
        worst=(suspect.inputs[worst.first], suspect.inputs[worst.second]),
        outputs=tuple(suspect.name(int(output)) for output in worst.outputs),
        log_ratio=lowest,
        allowed=float(allowed[worst.first, worst.second]),
        inputs=len(suspect.inputs),
        pairs=len(pairs),
        scope=f"near, far and random ones with ε·d up to {most:.3g}; "
        f"{len(suspicions)} suspicions tested",
        false_alarm_rate=alpha,
        draws=draws,
    )


def _search(suspect: Suspect, pairs: NDArray[np.int64], each: int) -> list[Event]:
    """Return the most suspicious pairs and sets, most suspicious first."""
    inputs = len(suspect.inputs)
    drawn = suspect.draw(np.repeat(np.arange(inputs), each)).reshape(inputs, each)
    events = [
        most_telling((int(i), int(j)), drawn[i], drawn[j], suspect.allowed[i, j])
        for pair in pairs
        for i, j in (pair, pair[::-1])
    ]
    return sorted(events, key=lambda event: -event.score)[:TESTED]


def _test(suspect: Suspect, suspicions: list[Event], draws: int, alpha: float) -> tuple[int, float]:
    """Return the place of the suspicion that goes farthest above ε·d, and its log-ratio."""
    inputs = sorted({k for event in suspicions for k in (event.first, event.second)})
    each = draws // len(inputs)
    # Suspicions that share an input share its draws; Bonferroni asks for no independence.
    hits = {k: _hits(suspect, k, [e.outputs for e in suspicions], each) for k in inputs}
    lowest = [
        least_log_ratio(hits[e.first][place], hits[e.second][place], each, alpha)
        for place, e in enumerate(suspicions)
    ]
    allowed = [suspect.allowed[e.first, e.second] for e in suspicions]
    place = int(np.argmax(np.subtract(lowest, allowed)))
    return place, lowest[place]


def _hits(suspect: Suspect, position: int, sets: list[NDArray[np.int64]], draws: int) -> list[int]:
    """Count the draws of one input that fall into each set."""
    hits = np.zeros(len(sets), dtype=np.int64)
    for start in range(0, draws, BLOCK):
        drawn, counts = np.unique(
            suspect.draw(np.full(min(BLOCK, draws - start), position)), return_counts=True
        )
        hits += [counts[np.isin(drawn, outputs)].sum() for outputs in sets]
    return hits.tolist()

"""What of a claim holds, by verification, and how often words are guessed all the same."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hf_dxprivacy.audit import reconstruction, verify_claim, verify_guarantee
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation.candidates import Candidate
from hf_dxprivacy.evaluation.scores import Effort
from hf_dxprivacy.mechanisms import ExactMechanism, Mechanism
from hf_dxprivacy.results import Interval

# Probability, at most, with which draws accuse a claim that is true.
FALSE_ALARM = 1e-3
# Releases by which a claim is verified where there is no mechanism, at least.
LEAST_RUNS = 1000
# Draws from each word for the Bayes adversary, where no law is known.
DRAWS = 100

EXACT, BY_DRAWS, FALSE, OPEN = "exact", "draws", "claim not true", "not checked"


def verified(
    candidate: Candidate,
    effort: Effort,
    rng: np.random.Generator,
    inputs: Callable[[str], list[str]],
) -> tuple[str, str]:
    """Return whether the claim of a candidate was verified, and how, in a sentence.

    Args:
        candidate: Whose claim.
        effort: How much is looked at.
        rng: Source of choices, and of draws from a mechanism.
        inputs: Returns words or texts to draw for, of a unit, where there is no mechanism.

    Returns:
        "exact": the laws of pairs of inputs keep it. "draws": no draw speaks against it. "claim
        not true": something does. "not checked": nothing could.
    """
    mechanism = candidate.mechanism
    if mechanism is None:
        return _claimed(candidate, effort, rng, inputs(candidate.unit))
    try:
        found = _checked(mechanism, effort, rng)
    except InvalidValueError as error:
        return OPEN, str(error)
    looked = f"{found.pairs:,} pairs of {found.inputs:,} inputs: {found.scope}"
    if found.method == "sampling":
        alarm = f"a true claim is called false with probability {FALSE_ALARM:g} at most"
        looked += f", {found.draws:,} draws; {alarm}"
    if not found.passed:
        return FALSE, str(found)
    return (EXACT if found.method == "exact" else BY_DRAWS), looked


def _checked(mechanism: Mechanism, effort: Effort, rng: np.random.Generator) -> Any:
    options: dict[str, Any] = {
        "inputs": effort.inputs,
        "draws": effort.draws,
        "alpha": FALSE_ALARM,
        "rng": rng,
    }
    if isinstance(mechanism, ExactMechanism):
        try:
            return verify_guarantee(mechanism, **options)
        except InvalidValueError:  # a law without an exact check
            return verify_guarantee(mechanism, method="sampling", **options)
    return verify_guarantee(mechanism, **options)


def _claimed(
    candidate: Candidate, effort: Effort, rng: np.random.Generator, inputs: list[str]
) -> tuple[str, str]:
    """Verify what is claimed of a program by as many draws as it has time for."""
    claim = getattr(candidate.privatizer, "claim", math.inf)
    if not callable(claim) and not math.isfinite(claim):
        return OPEN, "nothing is claimed"
    start = time.perf_counter()
    candidate.release(inputs)
    runs = int(effort.seconds * len(inputs) / max(time.perf_counter() - start, 1e-6))
    if runs < LEAST_RUNS or len(inputs) < 2:
        return OPEN, f"it is too slow for {LEAST_RUNS:,} releases in {effort.seconds:g} seconds"
    runs = min(runs, effort.draws)
    found = verify_claim(
        candidate.privatizer, claim, inputs, runs=runs, false_alarm=FALSE_ALARM, rng=rng
    )
    return (BY_DRAWS if found.holds else FALSE), str(found)


def guessed(
    mechanism: Mechanism, frequencies: Mapping[str, float], rng: np.random.Generator
) -> dict[str, Interval]:
    """Return how often the Bayes adversary names a word with one guess, "b1", and with ten, "b10".

    He knows the mechanism and how often each word occurs in the texts.
    """
    found = reconstruction(mechanism, frequencies, bands=(), draws=DRAWS, rng=rng).results
    return {
        name: Interval(r.value, r.low, r.high) for name, r in zip(("b1", "b10"), found, strict=True)
    }

"""The largest slope of an exponential mechanism whose exact privacy level meets an ε.

Slopes lie on a fixed geometric grid and the largest feasible one is taken: no interpolation, and no
monotonicity is assumed.
"""

import logging
import math
from dataclasses import dataclass

from hf_dxprivacy.mechanisms import certificate_store
from hf_dxprivacy.mechanisms.certificate_store import STEPS_PER_OCTAVE, grid_rate
from hf_dxprivacy.mechanisms.levels import privacy_levels
from hf_dxprivacy.spaces import EmbeddingSpace

logger = logging.getLogger(__name__)

# Processor time for a pair of words, roughly: 43 s for the 25,000 words of wordnet-gloss.
SECONDS_PER_PAIR = 7e-8


@dataclass(frozen=True)
class Calibration:
    """A slope and the exact privacy level that it was certified at."""

    rate: float
    level: float


def truncation_weight(size: int, beta: float) -> float:
    """Return exp(−s·γ) = β/((1−β)(V−1)), the weight of far words; the same for every slope s."""
    return min(1.0, beta / ((1.0 - beta) * max(size - 1, 1)))


def certify(
    space: EmbeddingSpace,
    lowest: float,
    highest: float,
    beta: float = 0.001,
    progress: bool = True,
) -> dict[int, float]:
    """Work out, and remember, the levels of all slopes that an ε of a range may need.

    Args:
        space: Where the words lie.
        lowest: Least ε.
        highest: Largest ε.
        beta: β in (0, 1).
        progress: Show a bar while levels that nobody remembered are worked out.

    Returns:
        ε*(s) by grid index; see `certificate_store.grid_rate`.
    """
    known = certificate_store.load(space, beta)
    missing = [k for k in wanted_steps(lowest, highest) if k not in known]
    if missing:
        _announce(len(space), lowest, highest)
        floor = truncation_weight(len(space), beta)
        known |= privacy_levels(space, missing, floor, progress=progress)
    certificate_store.attach(space, beta, known)
    if missing:
        certificate_store.save(space, beta)
    return known


def _announce(size: int, lowest: float, highest: float) -> None:
    """Say that it takes a while, if it does: a progress bar is for terminals only."""
    seconds = SECONDS_PER_PAIR * size**2
    if seconds >= 1.0:
        asked = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
        logger.warning(
            "calibrating ε = %s for a space of %d words, which is remembered: roughly %.0f s of "
            "processor time; mechanism 'tem' starts at once",
            *(asked, size, seconds),
        )


def is_certified(space: EmbeddingSpace, epsilon: float, beta: float = 0.001) -> bool:
    """Tell whether all levels that an ε needs are remembered, so that it starts without delay.

    Raises:
        ArtifactError: If what is remembered is damaged, impossible, or of another space.
    """
    known = certificate_store.load(space, beta)
    return all(k in known for k in wanted_steps(epsilon, epsilon))


def calibrated_rate(
    space: EmbeddingSpace, epsilon: float, beta: float, progress: bool = True
) -> Calibration:
    """Return the largest slope on the grid whose exact level is at most ε.

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        beta: β in (0, 1).
        progress: Show a bar while levels that nobody remembered are worked out.

    Returns:
        The slope s and its level ε*(s) ≤ ε.
    """
    known = certify(space, epsilon, epsilon, beta, progress)
    best = max(k for k, level in known.items() if level <= epsilon)
    return Calibration(grid_rate(best), known[best])


def wanted_steps(lowest: float, highest: float) -> range:
    """Return the grid indices of the slopes that an ε of a range may need."""
    # One step below ε/2 is feasible for certain, whatever the margin for rounding.
    return range(_grid_index(lowest) - STEPS_PER_OCTAVE - 1, _grid_index(highest) + 1)


def _grid_index(slope: float) -> int:
    """Return the index of the largest grid slope that is at most this (ε*(s) ≥ s)."""
    return math.floor(STEPS_PER_OCTAVE * math.log2(slope) + 1e-9)

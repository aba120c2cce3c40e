"""Measurements for the card of a space: distances, N_w and S_w, reproducible and free of text."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.calibration.epsilons import epsilon_grid
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub.cards import stored_figures
from hf_dxprivacy.mechanisms import MECHANISMS, ExactMechanism, Mechanism, create_mechanism
from hf_dxprivacy.mechanisms.certificate import is_certified
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.distances import SAMPLE

Space = TypeVar("Space", EmbeddingSpace, SentencePool)

# The measuring protocol. Figures of another one are measured again.
PROTOCOL: dict[str, Any] = {
    "percentiles": [5, 25, 50, 75, 95],
    "pairs": 10_000,
    "runs": 100,
    "eta": 0.05,
}

# Their ε is one of another norm, or ignores the space, so that they do not belong into one table
# with the others.
LEFT_OUT = ("mahalanobis", "krr")

# Words that mechanisms are measured on: as many as may be, fewer where each takes long.
MOST_WORDS, FEWEST_WORDS = 50, 10
WORK = 1 << 30

# Up to this size a space is certified here, which takes a second; larger ones never are.
CERTIFIED_HERE = 1000


def measure(space: Space) -> Space:
    """Measure the figures that the card of a space, or of a pool of sentences, shows.

    Figures that the space has under its own digest are kept; only missing ones are measured.
    "calibrated" is left out where its levels are unknown and would take long to compute. Takes
    seconds for 25,000 words of 100 dimensions, a minute for 400,000 words of 300.

    Args:
        space: The space or pool. It is public, and so is all that is measured.

    Returns:
        The space with the attribute `figures`, which is saved and pushed with it; or a pool of it.
    """
    if isinstance(space, SentencePool):
        return replace(space, space=measure(space.space))
    known = stored_figures(space.figures, space.digest)
    if known and known["settings"] != PROTOCOL:
        known = None
    unit = _short(space.unit_distance, 4)
    mechanisms = {}
    # Those of a known law first.
    for name, kind in sorted(
        MECHANISMS.items(), key=lambda m: not issubclass(m[1], ExactMechanism)
    ):
        if unit and name not in LEFT_OUT and kind.suits(space):
            stored = known["mechanisms"].get(name, []) if known else []
            done = {point["epsilon"]: point for point in stored}
            grid = epsilon_grid(space, name, few=True)
            points = [done.get(e) or _point(space, name, e) for e in grid]
            mechanisms[name] = [point for point in points if point]
    figures = {
        "digest": space.digest,
        "settings": PROTOCOL,
        "unit": unit,
        "words": _sample_size(len(space), space.dim),
        "neighbour_words": min(len(space), SAMPLE),
        "distances": known["distances"] if known else _distances(space),
        "mechanisms": {name: row for name, row in mechanisms.items() if row},
    }
    return space.with_figures(figures)


def ready_mechanism(space: EmbeddingSpace, name: str, epsilon: float) -> Mechanism:
    """Make a mechanism if it needs no levels, knows them, or finds them in a second.

    Raises:
        InvalidValueError: If it does not, or if there is no such mechanism at this ε.
    """
    if name == "calibrated" and len(space) > CERTIFIED_HERE and not is_certified(space, epsilon):
        raise InvalidValueError(
            f"the levels of {name!r} at ε = {epsilon:g} are not worked out for this space; do that "
            f"once: hf-dxprivacy calibrate SPACE --epsilon {epsilon:g}"
        )
    return create_mechanism(name, space, epsilon)


def _sample_size(size: int, dim: int) -> int:
    return min(size, max(FEWEST_WORDS, min(MOST_WORDS, WORK // (size * dim))))


def _point(space: EmbeddingSpace, name: str, epsilon: float) -> dict[str, Any] | None:
    """Measure a mechanism at one ε; None where it does not exist or would take long."""
    try:
        mechanism = ready_mechanism(space, name, epsilon)
    except InvalidValueError:
        # The noise does not exist at so small an ε, or the levels are not to be trusted.
        return None
    size = _sample_size(len(space), space.dim)
    words = [space.words[row] for row in np.linspace(0, len(space) - 1, size).round().astype(int)]
    rng = keyed_generator(0, name, repr(epsilon))
    found = privacy_statistics(mechanism, words, PROTOCOL["runs"], PROTOCOL["eta"], rng)
    support = [_count(found.support.mean()), _count(found.support.min())]
    return {
        "epsilon": epsilon,
        "kept": [round(float(found.kept.mean()), 3), round(float(found.kept.max()), 3)],
        "support": support if found.exact else None,
        "distinct": [_count(found.distinct.mean()), _count(found.distinct.min())],
    }


def _distances(space: EmbeddingSpace) -> dict[str, list[float]]:
    """Return percentiles of the distances to the neighbours, and between words at random."""
    size = len(space)
    samples = {str(k): row for k, row in space.sampled_neighbour_distances().items() if k < size}
    if size > 1:
        rng = keyed_generator(0, "pairs")
        first = rng.integers(size, size=PROTOCOL["pairs"])
        second = (first + rng.integers(1, size, size=len(first))) % size
        samples["pairs"] = space.pair_distances(first, second)
    return {
        name: [_short(value, 4) for value in np.percentile(row, PROTOCOL["percentiles"])]
        for name, row in samples.items()
    }


def _count(value: float) -> float:
    return round(float(value), 0 if value >= 100 else 1)


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")

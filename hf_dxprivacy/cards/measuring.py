"""Measuring what a card shows of a space; never text, and always with the same result."""

import numpy as np

from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.cards.figures import SETTINGS, Figures, Point
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import MECHANISMS, create_mechanism
from hf_dxprivacy.mechanisms.certificate import is_certified
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.nearest import SAMPLE

# ε·d at the median distance to the nearest neighbour. Noise in many dimensions needs more of it
# for the same effect than a law over the words.
STEPS: dict[str, tuple[int, ...]] = {
    "tem": (1, 2, 4, 6, 8, 12, 16),
    "calibrated": (1, 2, 4, 6, 8, 12, 16),
    "laplace": (8, 16, 32, 64, 128),
    "hyperbolic": (8, 16, 32, 64, 128),
}

# Words that mechanisms are measured on: as many as may be, fewer where each takes long.
MOST_WORDS, FEWEST_WORDS = 50, 10
WORK = 1 << 30

# Up to this size a space is certified here, which takes a second; larger ones never are.
CERTIFIED_HERE = 1000


def measure(space: EmbeddingSpace) -> None:
    """Measure what the card of a space shows, and put it into `space.figures`.

    What the space has stored under its own digest is not measured again, only what it lacks.
    "calibrated" is left out where its levels are not known and would take long to work out. Takes
    seconds for 25,000 words of 100 dimensions, a minute for 400,000 words of 300.

    Args:
        space: The space. It is public, and so is all that is measured.
    """
    known = Figures.parse(space.figures, space.digest)
    unit = _unit(space)
    names = [name for name in STEPS if unit and space.metric in MECHANISMS[name].metrics]
    points = {
        name: _points(space, name, unit, known.mechanisms.get(name, ()) if known else ())
        for name in names
    }
    Figures(
        unit=unit,
        words=_sample_size(len(space), space.dim),
        neighbour_words=min(len(space), SAMPLE),
        distances=known.distances if known else _distances(space),
        mechanisms={name: row for name, row in points.items() if row},
    ).store(space)


def starts_at_once(space: EmbeddingSpace, name: str, epsilon: float) -> bool:
    """Tell whether a mechanism needs no levels, knows them, or works them out in a second.

    Args:
        space: The space.
        name: Of the mechanism.
        epsilon: ε > 0.
    """
    return name != "calibrated" or len(space) <= CERTIFIED_HERE or is_certified(space, epsilon)


def _unit(space: EmbeddingSpace) -> float:
    """Return the median distance to the nearest neighbour that is not at the same place, or 0."""
    medians = space.neighbour_distances().values()
    return _short(next((d for d in medians if d > 0), 0.0), 4)


def _sample_size(size: int, dim: int) -> int:
    return min(size, max(FEWEST_WORDS, min(MOST_WORDS, WORK // (size * dim))))


def _points(
    space: EmbeddingSpace, name: str, unit: float, known: tuple[Point, ...]
) -> tuple[Point, ...]:
    done = {point.epsilon: point for point in known}
    grid = [_short(step / unit, 3) for step in STEPS[name]]
    points = (done.get(epsilon) or _point(space, name, epsilon) for epsilon in grid)
    return tuple(point for point in points if point)


def _point(space: EmbeddingSpace, name: str, epsilon: float) -> Point | None:
    try:
        if not starts_at_once(space, name, epsilon):
            return None
        mechanism = create_mechanism(name, space, epsilon)
    except InvalidValueError:
        # The noise does not exist at so small an ε, or the levels are not to be trusted.
        return None
    size = _sample_size(len(space), space.dim)
    rows = np.linspace(0, len(space) - 1, size).round().astype(int)
    found = privacy_statistics(
        mechanism,
        [space.words[row] for row in rows],
        SETTINGS["runs"],
        SETTINGS["eta"],
        keyed_generator(0, name, repr(epsilon)),
    )
    return Point(
        epsilon,
        (round(float(found.kept.mean()), 3), round(float(found.kept.max()), 3)),
        (_count(found.support.mean()), _count(found.support.min())) if found.exact else None,
        (_count(found.distinct.mean()), _count(found.distinct.min())),
    )


def _distances(space: EmbeddingSpace) -> dict[str, tuple[float, ...]]:
    """Return percentiles of the distances to the neighbours, and between words at random."""
    size = len(space)
    samples = {
        str(k): distances
        for k, distances in space.sampled_neighbour_distances().items()
        if k < size
    }
    if size > 1:
        rng = keyed_generator(0, "pairs")
        first = rng.integers(size, size=SETTINGS["pairs"])
        second = (first + rng.integers(1, size, size=len(first))) % size
        samples["pairs"] = space.pair_distances(first, second)
    return {
        name: tuple(_short(value, 4) for value in np.percentile(row, SETTINGS["percentiles"]))
        for name, row in samples.items()
    }


def _count(value: float) -> float:
    return round(float(value), 0 if value >= 100 else 1)


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")

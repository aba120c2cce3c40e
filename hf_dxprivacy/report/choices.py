"""What the page offers for a space: mechanisms that start at once, and values of ε for each."""

from dataclasses import dataclass
from itertools import dropwhile

from hf_dxprivacy.cards.measuring import STEPS, starts_at_once
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import DEFAULT, MECHANISMS, Mechanism, create_mechanism
from hf_dxprivacy.spaces import EmbeddingSpace

# Positions of the slider between its ends.
POSITIONS = 60


@dataclass(frozen=True)
class Range:
    """Values of ε to choose from.

    Attributes:
        low: The least.
        high: The largest.
        step: From one to the next.
        start: Where to begin.
    """

    low: float
    high: float
    step: float
    start: float


@dataclass(frozen=True, eq=False)
class Offer:
    """A space and what can be done with it.

    Attributes:
        space: The space.
        ranges: Values of ε by the name of the mechanism, from where hardly a word stays to where
            nearly all do; the default mechanism comes first.
    """

    space: EmbeddingSpace
    ranges: dict[str, Range]

    @classmethod
    def of(cls, space: EmbeddingSpace) -> "Offer":
        """Find the mechanisms that suit a space and start at once."""
        names = sorted(MECHANISMS, key=lambda name: name != DEFAULT)
        usable = {name: _usable(space, name) for name in names}
        return cls(space, {name: _range(grid) for name, grid in usable.items() if grid})


def ready_mechanism(space: EmbeddingSpace, name: str, epsilon: float) -> Mechanism:
    """Make a mechanism, unless that would take long.

    Raises:
        InvalidValueError: If it would, or if there is no such mechanism at this ε.
    """
    if not starts_at_once(space, name, epsilon):
        raise InvalidValueError(
            f"the levels of {name!r} at ε = {epsilon:g} are not worked out for this space; do that "
            f"once: hf-dxprivacy calibrate SPACE --epsilon {epsilon:g}"
        )
    return create_mechanism(name, space, epsilon)


def _usable(space: EmbeddingSpace, name: str) -> list[float]:
    """Return the values of ε on the grid of the model card that a mechanism can be used at."""
    if space.metric not in MECHANISMS[name].metrics:
        return []
    # In the Mahalanobis norm noise of the same ε is about as large.
    steps = STEPS.get(name, STEPS["laplace"])
    unit = next((d for d in space.neighbour_distances().values() if d > 0), 1.0)
    grid = [_short(step / unit) for step in steps]
    # Some noise exists from an ε on.
    return list(dropwhile(lambda epsilon: not _is_ready(space, name, epsilon), grid))


def _is_ready(space: EmbeddingSpace, name: str, epsilon: float) -> bool:
    try:
        ready_mechanism(space, name, epsilon)
    except InvalidValueError:
        return False
    return True


def _range(grid: list[float]) -> Range:
    low, high = grid[0], grid[-1]
    return Range(low, high, _short((high - low) / POSITIONS), grid[len(grid) // 2])


def _short(value: float) -> float:
    return float(f"{value:.3g}")

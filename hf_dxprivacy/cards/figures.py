"""The figures of a card: as a space stores them, bound to its digest, and as they are shown."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hf_dxprivacy.mechanisms import MECHANISMS
from hf_dxprivacy.spaces import EmbeddingSpace

# How figures are measured. What was measured in another way is measured again.
SETTINGS: dict[str, Any] = {
    "percentiles": [5, 25, 50, 75, 95],
    "pairs": 10_000,
    "runs": 100,
    "eta": 0.05,
}


@dataclass(frozen=True)
class Point:
    """What a mechanism does to the sampled words at one ε.

    Attributes:
        epsilon: ε, per unit of the space's metric.
        kept: N_w, its mean and largest value.
        support: S_w, the least number of outputs that hold 1−η, its mean and least value; None
            where the law is not known.
        distinct: Distinct outputs in R draws, mean and least number.
    """

    epsilon: float
    kept: tuple[float, float]
    support: tuple[float, float] | None
    distinct: tuple[float, float]

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> "Point":
        """Read a point from JSON."""
        support = stored["support"]
        return cls(
            float(stored["epsilon"]),
            _pair(stored["kept"]),
            None if support is None else _pair(support),
            _pair(stored["distinct"]),
        )


@dataclass(frozen=True)
class Figures:
    """What was measured of a space.

    Attributes:
        unit: The distance that the grid of ε is counted in: the median one to the nearest
            neighbour, unless that is 0.
        words: Number of words that the mechanisms were measured on.
        neighbour_words: Number of words whose neighbours were looked at.
        distances: Percentiles of the distance to the k-th neighbour by k, as a string, and of the
            distance of random "pairs".
        mechanisms: Points in the order of ε, by the name of the mechanism.
    """

    unit: float
    words: int
    neighbour_words: int
    distances: dict[str, tuple[float, ...]]
    mechanisms: dict[str, tuple[Point, ...]]

    @classmethod
    def parse(cls, stored: Mapping[str, Any], digest: str) -> "Figures | None":
        """Read figures from JSON.

        Args:
            stored: `EmbeddingSpace.figures`, or "figures" of a config.
            digest: Of the space that they have to be of.

        Returns:
            The figures; None if they are of another space, measured in another way, or damaged.
        """
        try:
            if stored["digest"] != digest or stored["settings"] != SETTINGS:
                return None
            return cls(
                float(stored["unit"]),
                int(stored["words"]),
                int(stored["neighbour_words"]),
                {str(name): tuple(map(float, row)) for name, row in stored["distances"].items()},
                {
                    name: tuple(map(Point.parse, points))
                    for name, points in stored["mechanisms"].items()
                    if name in MECHANISMS and points
                },
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def store(self, space: EmbeddingSpace) -> None:
        """Put the figures into a space, with which they are saved."""
        space.figures.clear()
        space.figures.update({"digest": space.digest, "settings": SETTINGS, **asdict(self)})


def _pair(values: Any) -> tuple[float, float]:
    first, second = map(float, values)
    return first, second

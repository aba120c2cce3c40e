"""Mechanisms compared along their curves, at the same success of an attack."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.results import EXTRA, Interval

# Places at which two curves are compared, between the ends of what they share.
PLACES = 65

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Utility of a mechanism against the success of an attack, at several ε.

    Attributes:
        name: The mechanism.
        attack: (k,) success of the attack, ascending.
        variance: (k,) of it.
        utility: (k, n) utility, in each of n texts.
        parts: (n,) numbers; texts of one share errors, such as those of the model that read them.
    """

    name: str
    attack: Reals
    variance: Reals
    utility: Reals
    parts: Reals

    @classmethod
    def of(cls, name: str, points: Sequence[tuple[Interval, Reals]], parts: Reals) -> "Curve":
        """Return the curve through (attack, utility in each text)."""
        ordered = sorted(points, key=lambda point: point[0].value)
        attack = np.array([found.value for found, _ in ordered])
        # Half of a 95 % interval is about two standard deviations.
        spread = np.array([(found.high - found.low) / 3.92 for found, _ in ordered])
        return cls(name, attack, spread**2, np.array([utility for _, utility in ordered]), parts)

    def weights(self, places: Reals) -> Reals:
        """Return (k,) weights of the points in the mean of the curve over some places."""
        hats = np.eye(len(self.attack))
        # Equal places would leave the line between them undefined.
        apart = self.attack + 1e-12 * np.arange(len(self.attack))
        return np.array([np.interp(places, apart, hat).mean() for hat in hats])

    @property
    def slopes(self) -> Reals:
        """(k,) slopes of the utility at the points."""
        if len(self.attack) < 2:
            return np.zeros(len(self.attack))
        gaps = np.maximum(np.diff(self.attack), 1e-3)
        steps = np.diff(self.utility.mean(axis=1)) / gaps
        return np.asarray((np.append(steps, steps[-1]) + np.insert(steps, 0, steps[0])) / 2.0)


@dataclass(frozen=True)
class Difference:
    """Mean difference in utility of two mechanisms, where the attack succeeds as often on both.

    Attributes:
        first: A mechanism.
        second: Another one.
        utility: Mean of the first minus the second, with a 95 % interval over the texts.
        low: From here, as a success of the attack,
        high: up to here both have been measured.
    """

    first: str
    second: str
    utility: Interval
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval is on one side of zero."""
        return self.utility.low > 0.0 or self.utility.high < 0.0


def difference(first: Curve, second: Curve, confidence: float = 0.95) -> Difference | None:
    """Compare two curves over the successes that both have; None if there are none.

    Curves are straight between their points. The texts are the same for both, so that the interval
    is over the differences in each text; or in each part of them, which has a model and noise of
    its own, where these differ by more than texts would alone. What the attack's success is
    uncertain by counts through the slope of the curve.
    """
    low = max(first.attack[0], second.attack[0])
    high = min(first.attack[-1], second.attack[-1])
    if low > high:
        return None
    places = np.linspace(low, high, PLACES)
    each, variance = np.zeros(first.utility.shape[1]), 0.0
    for sign, curve in ((1.0, first), (-1.0, second)):
        weights = curve.weights(places)
        each += sign * (weights @ curve.utility)
        variance += float((weights * curve.slopes) ** 2 @ curve.variance)
    error, quantile = _error(each, first.parts, confidence)
    normal = require("scipy.stats", EXTRA).norm
    uncertain = math.sqrt(variance) * float(normal.ppf(0.5 + confidence / 2.0))
    half, mean = math.hypot(quantile * error, uncertain), float(each.mean())
    around = Interval(mean, mean - half, mean + half)
    return Difference(first.name, second.name, around, float(low), float(high))


def _error(each: Reals, parts: Reals, confidence: float) -> tuple[float, float]:
    """Return the standard error of a mean over texts, and how many of them the interval has."""
    _, part = np.unique(parts, return_inverse=True)
    means = np.bincount(part, each) / np.bincount(part)
    over = [values for values in (each, means) if len(values) > 1]
    if not over:
        return math.inf, 1.0
    errors = [float(values.std(ddof=1)) / math.sqrt(len(values)) for values in over]
    error, freedom = max(zip(errors, (len(values) - 1 for values in over), strict=True))
    return error, float(require("scipy.stats", EXTRA).t.ppf(0.5 + confidence / 2.0, freedom))


def headline(curves: Sequence[Curve], kept: str, attack: str) -> str:
    """Say in a sentence which mechanism keeps most at the same success of an attack.

    `kept` and `attack` are words, such as "accuracy" and "success of the author attack".
    """
    if len(curves) < 2:
        return "There are no two mechanisms to compare."
    # All intervals hold together with 95 %: the best one is chosen by them.
    confidence = 1.0 - 0.1 / (len(curves) * (len(curves) - 1))
    pairs = {
        (a.name, b.name): found
        for a in curves
        for b in curves
        if a is not b and (found := difference(a, b, confidence)) is not None
    }
    if not pairs:
        return (
            f"No two mechanisms were measured at the same {attack}; give values of ε at which it "
            "is about the same."
        )
    names = [curve.name for curve in curves]

    def lead(name: str) -> tuple[float, float]:
        """Return over how many more others a mechanism is ahead than behind, and by how much."""
        mine = [pairs[name, other].utility.value for other in names if (name, other) in pairs]
        return float(np.sign(mine).sum()), float(np.mean(mine)) if mine else -math.inf

    best = max(names, key=lead)
    others = [pairs[best, name] for name in names if (best, name) in pairs]
    others.sort(key=lambda found: found.utility.value)
    ahead = [d for d in others if d.is_shown and d.utility.value > 0]
    behind = [d for d in others if d.is_shown and d.utility.value < 0]
    level = [d for d in others if not d.is_shown]
    parts = []
    if ahead:
        parts.append(f"{best} keeps more {kept} than {_listed(ahead)}")
    if behind:
        less = "less than" if ahead else f"{best} keeps less {kept} than"
        parts.append(f"{less} {_listed(behind)}")
    if level:
        who = "between it and" if parts else f"between {best} and"
        parts.append(f"no difference in {kept} is shown {who} {_listed(level)}")
    for curve in curves:
        if curve.name != best and (best, curve.name) not in pairs:
            means = curve.utility.mean(axis=1)
            at = [float(f"{curve.attack[k]:.3g}") for k in (0, -1)]
            ends = [
                f"{means[k]:.2f} at {format(a, ',.0f' if a >= 1000 else 'g')}"
                for k, a in zip((0, -1), at, strict=True)
            ]
            where = " to ".join(dict.fromkeys(ends))
            parts.append(f"{curve.name} keeps {where}, where {best} was not measured")
    return f"At the same {attack}, {'; '.join(parts)}."


def _listed(found: Sequence[Difference]) -> str:
    """Return names with differences of shares in points, and their intervals."""
    names = []
    for d in found:
        mean, low, high = (f"{100.0 * end:+.1f}".replace("-", "−") for end in d.utility)
        names.append(f"{d.second} ({mean} points, {low} to {high})")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

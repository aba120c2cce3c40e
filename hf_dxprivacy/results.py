"""Measurements with confidence intervals: of an attack or a task, for a mechanism at an ε."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_within,
)

if TYPE_CHECKING:
    from datasets import Dataset

# Name in the place of a mechanism for texts that were not privatized.
ORIGINAL = "none"
# The extra that brings SciPy for intervals.
EXTRA = "audit"


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """One measurement.

    Attributes:
        task: The attack, or the task that texts are used for.
        dataset: What it was measured on.
        mechanism: A mechanism's name, "none" for original texts, "random" for random words.
        epsilon: ε as asked for; None where there is none.
        metric: What the value is, such as "accuracy" or "AUC".
        value: The measured value, a mean where there are repeats.
        low: Lower end of its confidence interval; equal to the value if none was computed.
        high: Upper end.
        repeats: How many independent repeats, or trials for a share of successes, it rests on.
    """

    task: str
    dataset: str
    mechanism: str
    epsilon: float | None
    metric: str
    value: float
    low: float
    high: float
    repeats: int = 1

    @classmethod
    def of(
        cls,
        task: str,
        metric: str,
        found: Interval,
        repeats: int = 1,
        *,
        dataset: str = "texts",
        mechanism: str = ORIGINAL,
        epsilon: float | None = None,
    ) -> "Result":
        """Return the measurement of an interval; see the attributes."""
        return cls(task, dataset, mechanism, epsilon, metric, *found, repeats)


class Results(ReprHTML, tuple[Result, ...]):
    """Measurements in a row, as a table, a file or a data set."""

    __slots__ = ()

    def __add__(self, other: Iterable[Result]) -> "Results":  # type: ignore[override]
        return Results((*self, *other))

    def __repr__(self) -> str:
        return f"Results({len(self)})\n{self.to_markdown()}"

    def _shown(self) -> str:
        return f"Results: {len(self)}\n{self.to_markdown()}"

    def where(self, **values: Any) -> "Results":
        """Return the measurements whose fields have these values."""
        return Results(r for r in self if all(getattr(r, k) == v for k, v in values.items()))

    def replace(self, **values: Any) -> "Results":
        """Return the same measurements with other fields, such as ``dataset="mail"``."""
        return Results(replace(r, **values) for r in self)

    def to_markdown(self, digits: int = 3) -> str:
        """Return a table with a row for each measurement and its interval."""
        lines = ["| task | dataset | mechanism | ε | metric | value | interval |"]
        lines.append("|---|---|---|---:|---|---:|---:|")
        for r in self:
            epsilon = "" if r.epsilon is None else f"{r.epsilon:g}"
            spread = "" if r.low == r.high else f"{r.low:.{digits}f} to {r.high:.{digits}f}"
            lines.append(
                f"| {r.task} | {r.dataset} | {r.mechanism} | {epsilon} | {r.metric} "
                f"| {r.value:.{digits}f} | {spread} |"
            )
        return "\n".join(lines)

    def to_dataset(self) -> "Dataset":
        """Return a `datasets.Dataset` with a row for each measurement."""
        from datasets import Dataset

        names = [field.name for field in fields(Result)]
        return Dataset.from_dict({name: [getattr(r, name) for r in self] for name in names})

    def to_json_lines(self) -> str:
        """Return a line with a JSON object for each measurement."""
        return "".join(json.dumps(asdict(r), ensure_ascii=False) + "\n" for r in self)

    def save(self, path: str | Path) -> None:
        """Write the measurements as JSON lines."""
        Path(path).write_text(self.to_json_lines(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Results":
        """Read what `save` wrote.

        Raises:
            ArtifactError: If the file holds something else.
        """
        try:
            # Not splitlines, which also splits at separators that JSON leaves in strings.
            lines = Path(path).read_text(encoding="utf-8").split("\n")
            return cls(Result(**json.loads(line)) for line in lines if line)
        except (TypeError, ValueError) as error:
            raise ArtifactError(f"{path} does not hold results as JSON lines ({error})") from error


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the mean of independent repeats with its Student t interval.

    The interval of two or three repeats is wide, and passes the ends of a scale, such as 0 and 1 of
    a share, where the mean is near them.

    Args:
        values: (k,) repeats. The interval of a single one is the value itself.
        confidence: In (0, 1).

    Raises:
        InvalidValueError: If there are no values, or the confidence is out of range.
        MissingExtraError: If SciPy is not installed.
    """
    require_between(0.0, 1.0, confidence=confidence)
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size == 0:
        raise InvalidValueError("expected at least one repeat, got none")
    mean = float(array.mean())
    if array.size == 1:
        return Interval(mean, mean, mean)
    quantile = require("scipy.stats", EXTRA).t.ppf(0.5 + confidence / 2.0, array.size - 1)
    half = float(quantile * array.std(ddof=1)) / math.sqrt(array.size)
    return Interval(mean, mean - half, mean + half)


def share_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return a share of independent trials with its Clopper–Pearson interval.

    Args:
        successes: How many succeeded.
        trials: How many there were.
        confidence: In (0, 1). The interval holds the true probability at least so often.

    Raises:
        InvalidValueError: If there are no trials or a number is out of range.
        MissingExtraError: If SciPy is not installed.
    """
    require_between(0.0, 1.0, confidence=confidence)
    require_at_least(1, trials=trials)
    require_within(0, trials, successes=successes)
    low, high = share_bounds([successes], trials, confidence)
    return Interval(successes / trials, float(low[0]), float(high[0]))


def share_bounds(
    successes: ArrayLike, trials: int, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (m,) lower and (m,) upper ends of intervals as `share_interval` gives them.

    Each is of as many trials, and holds with the confidence by itself.
    """
    # Quantiles of beta laws, several times faster than by the objects of scipy.stats.
    special = require("scipy.special", EXTRA)
    counts = np.asarray(successes, dtype=np.float64)
    failures, tail = trials - counts, (1.0 - confidence) / 2.0
    low = special.betaincinv(np.maximum(counts, 1), failures + 1, tail)
    high = special.betainccinv(counts + 1, np.maximum(failures, 1), tail)
    low, high = np.where(counts > 0, low, 0.0), np.where(failures > 0, high, 1.0)
    return low, high

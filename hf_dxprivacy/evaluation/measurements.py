"""Repeated measurements of a task, kept in a file so that an interrupted sweep goes on."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import ArtifactError, require_at_least
from hf_dxprivacy.results import EXTRA, ORIGINAL, Result, Results, mean_interval

Scores = Mapping[str, float]


@dataclass(frozen=True)
class Measurement:
    """Labels of a measurement, as in `Result`, and its settings.

    Attributes:
        settings: All else that decides the figures, as JSON-ready values.
    """

    task: str
    dataset: str
    mechanism: str
    epsilon: float | None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Runs:
    """Repeats of measurements, in a file of JSON lines if there is one.

    Args:
        path: What is there already is not measured again. None keeps everything in memory.

    Raises:
        ArtifactError: If the file holds something else.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._done: dict[str, Scores] = {}
        if self._path is None or not self._path.exists():
            return
        content = self._path.read_text(encoding="utf-8")
        whole = content[: content.rfind("\n") + 1]
        try:
            for line in whole.splitlines():
                record = json.loads(line)
                values = record.pop("values")
                self._done[_key(record)] = values
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} does not hold runs as JSON lines ({error!r}); name another file"
            ) from error
        if whole != content:
            # The line that was being written when the sweep was interrupted.
            self._path.write_text(whole, encoding="utf-8")

    def measure(
        self, measurement: Measurement, repeats: int, run: Callable[[int], Scores]
    ) -> Results:
        """Measure what is not done yet, and return all figures with their 95 % t intervals.

        Args:
            measurement: What is measured.
            repeats: How often, at least once.
            run: Takes the number of the repeat, from 0, and returns figures by their names.

        Raises:
            InvalidValueError: If `repeats` is below 1.
        """
        require_at_least(1, repeats=repeats)
        scores = []
        for repeat in range(repeats):
            key = _key({**asdict(measurement), "repeat": repeat})
            if key not in self._done:
                self._done[key] = {name: float(value) for name, value in run(repeat).items()}
                if self._path is not None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(_key({**json.loads(key), "values": self._done[key]}) + "\n")
            scores.append(self._done[key])
        return Results(
            Result.of(
                measurement.task,
                metric,
                mean_interval([each[metric] for each in scores]),
                repeats,
                dataset=measurement.dataset,
                mechanism=measurement.mechanism,
                epsilon=measurement.epsilon,
            )
            for metric in scores[0]
        )


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, ensure_ascii=False)


def pivot(results: Results, metric: str | None = None, digits: int = 3) -> str:
    """Return a Markdown table with a row for each mechanism and ε, and a column for each dataset.

    Args:
        results: The figures, in the order in which they are shown.
        metric: Which ones. By default all, with a column for each dataset and metric.
        digits: After the point. Behind ± is half the width of the interval.
    """
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for r in results if metric is None else results.where(metric=metric):
        name = "original" if r.mechanism == ORIGINAL else r.mechanism
        row = f"{name} | {'' if r.epsilon is None else f'{r.epsilon:g}'}"
        column = r.dataset if metric else f"{r.dataset}, {r.metric}"
        columns[column] = None
        half = (r.high - r.low) / 2.0
        spread = f" ± {half:.{digits}f}" if round(half, digits) else ""
        cells.setdefault(row, {})[column] = f"{r.value:.{digits}f}{spread}"
    lines = [f"| mechanism | ε | {' | '.join(columns)} |", "|---|---:|" + "---:|" * len(columns)]
    for row, found in cells.items():
        lines.append(f"| {row} | {' | '.join(found.get(column, '') for column in columns)} |")
    return "\n".join(lines)


def classification_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Return accuracy, and precision, recall and F1 as means over the labels.

    Args:
        truth: (m,) labels.
        predicted: (m,) labels.

    Raises:
        MissingExtraError: If scikit-learn is not installed.
    """
    metrics = require("sklearn.metrics", EXTRA)
    found = metrics.precision_recall_fscore_support(
        truth, predicted, average="macro", zero_division=0
    )
    accuracy = float(metrics.accuracy_score(truth, predicted))
    by_label = zip(("precision", "recall", "F1"), map(float, found[:3]), strict=True)
    return {"accuracy": accuracy, **dict(by_label)}


def correlation_scores(
    truth: ArrayLike, predicted: ArrayLike, groups: Sequence[str] | None = None
) -> dict[str, float]:
    """Return Pearson's and Spearman's correlation, as means over groups.

    Args:
        truth: (m,) numbers.
        predicted: (m,) numbers.
        groups: m names of the groups that are correlated each for itself; one by default.

    Returns:
        Both; what does not vary within a group correlates by 0 there.

    Raises:
        MissingExtraError: If SciPy is not installed.
    """
    stats = require("scipy.stats", EXTRA)
    x, y = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    names = np.asarray(groups if groups is not None else [""] * len(x))
    scores: dict[str, list[float]] = {"Pearson": [], "Spearman": []}
    for name in np.unique(names):
        pair = x[names == name], y[names == name]
        varies = all(len(each) > 1 and np.ptp(each) > 0 for each in pair)
        for title, law in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr)):
            scores[title].append(float(law(*pair)[0]) if varies else 0.0)
    return {title: float(np.mean(values)) for title, values in scores.items()}

"""Repeats of a measurement, each kept when it is done, so that an interrupted sweep goes on."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.results import Result, Results, mean_interval

Scores = Mapping[str, float]


@dataclass(frozen=True)
class Cell:
    """What is measured.

    Attributes:
        task: As in `Result`.
        dataset: As in `Result`.
        mechanism: As in `Result`.
        epsilon: As in `Result`.
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
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def measure(self, cell: Cell, repeats: int, run: Callable[[int], Scores]) -> Results:
        """Measure what is not done yet, and return all figures with their 95 % t intervals.

        Args:
            cell: What is measured.
            repeats: How often, at least once.
            run: Takes the number of the repeat, from 0, and returns figures by their names.

        Raises:
            InvalidValueError: If `repeats` is below 1.
        """
        _validate.at_least(1, repeats=repeats)
        scores = [self._score(cell, repeat, run) for repeat in range(repeats)]
        return Results(
            Result(
                cell.task,
                cell.dataset,
                cell.mechanism,
                cell.epsilon,
                metric,
                interval.value,
                interval.low,
                interval.high,
                repeats,
            )
            for metric in scores[0]
            for interval in [mean_interval([each[metric] for each in scores])]
        )

    def _score(self, cell: Cell, repeat: int, run: Callable[[int], Scores]) -> Scores:
        key = _key({**asdict(cell), "repeat": repeat})
        if key not in self._done:
            self._done[key] = {name: float(value) for name, value in run(repeat).items()}
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(_key({**json.loads(key), "values": self._done[key]}) + "\n")
        return self._done[key]

    def _read(self, path: Path) -> None:
        content = path.read_text(encoding="utf-8")
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
            path.write_text(whole, encoding="utf-8")


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, ensure_ascii=False)

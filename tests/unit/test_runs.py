"""Repeats of measurements: their figures, and going on where a sweep was interrupted."""

from pathlib import Path

import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.evaluation import Measurement, Runs

CELL = Measurement("task", "mr", "tem", 2.0, {"rows": 5, "space": "glöve"})


def test_figures_are_means_with_intervals() -> None:
    (result,) = Runs().measure(CELL, 3, lambda repeat: {"accuracy": repeat / 10})
    assert (result.task, result.dataset, result.mechanism) == ("task", "mr", "tem")
    assert (result.epsilon, result.metric, result.repeats) == (2.0, "accuracy", 3)
    # t(0.975, 2) = 4.3027; the standard deviation is 0.1.
    assert (result.value, result.high - result.value) == pytest.approx((0.1, 0.24842), abs=1e-5)


def test_what_is_done_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "runs.jsonl"
    asked: list[int] = []

    def run(repeat: int) -> dict[str, float]:
        asked.append(repeat)
        return {"accuracy": float(repeat)}

    first = Runs(path).measure(CELL, 2, run)
    assert list(Runs(path).measure(CELL, 2, run)) == list(first)
    Runs(path).measure(CELL, 3, run)
    assert asked == [0, 1, 2]
    for other in (
        Measurement("task", "mr", "tem", 2.0, {"rows": 6, "space": "glöve"}),
        Measurement("task", "mr", "tem", 3.0, CELL.settings),
        Measurement("task", "cr", "tem", 2.0, CELL.settings),
    ):
        Runs(path).measure(other, 1, run)
    assert asked == [0, 1, 2, 0, 0, 0]


def test_a_half_written_line_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    Runs(path).measure(CELL, 2, lambda repeat: {"accuracy": 0.5})
    path.write_text(path.read_text("utf-8")[:-20], encoding="utf-8")
    found = Runs(path).measure(CELL, 2, lambda repeat: {"accuracy": 0.75})
    assert found[0].value == pytest.approx((0.5 + 0.75) / 2)
    assert len(path.read_text("utf-8").splitlines()) == 2
    assert Runs(path).measure(CELL, 2, lambda repeat: {})[0].value == found[0].value


def test_a_failed_run_leaves_those_before_it(tmp_path: Path) -> None:
    def run(repeat: int) -> dict[str, float]:
        return {"accuracy": 1 / (1 - repeat)}

    path = tmp_path / "runs.jsonl"
    with pytest.raises(ZeroDivisionError, match="division"):
        Runs(path).measure(CELL, 2, run)
    assert len(path.read_text("utf-8").splitlines()) == 1


@pytest.mark.parametrize("content", ["no JSON\n", "[1]\n", '{"task": "t"}\n'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ArtifactError, match="does not hold runs as JSON lines"):
        Runs(path)


def test_no_repeat_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="expected repeats >= 1"):
        Runs().measure(CELL, 0, lambda repeat: {"accuracy": 1.0})

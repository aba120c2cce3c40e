"""docs/sizing.md: how machines, hours and costs follow from words a second."""

import importlib
import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sizing() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("sizing")


def row(words_a_second: float) -> dict[str, object]:
    figures = {"workers": 2, "start, s": 1.5, "run, s": 10.5, "words/s per core": words_a_second}
    return {"through": "`Dataset.map`", "mechanism": "laplace"} | figures


def test_machines_hours_and_cost(sizing: ModuleType) -> None:
    options = Namespace(machine_cores=10, hours=10.0, price=0.1)
    (line,) = sizing.sizes([row(1000.0)], options)
    # 10⁹ / 1000 / 3600 = 277.8 hours of a core.
    assert line["10⁹ words"] == "3 × 9.3 h, 27.78"
    assert line["10¹¹ words"] == "278 × 10 h, 2,777.78"
    assert line["10¹³ words"] == "27,778 × 10 h, 277,777.78"
    (line,) = sizing.sizes([row(100_000.0)], options)
    assert line["10⁹ words"] == "1 × 0.28 h, 0.28"


def test_the_page_has_the_tables_between_its_marks(
    sizing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, measured = tmp_path / "sizing.md", tmp_path / "sizing.json"
    before = sizing.PAGE.read_text("utf-8")
    page.write_text(before, "utf-8")
    measured.write_text(json.dumps({"machine": {"cpu": r"one \1"}, "rows": [row(1234.5)]}))
    monkeypatch.setattr(sizing, "PAGE", page)
    options = Namespace(page=measured, machine_cores=64, hours=24.0, price=0.25)
    sizing.render(options)
    after = page.read_text("utf-8")
    assert r"Measured (cpu one \1):" in after
    assert "| `Dataset.map` | laplace | 2 | 1.5 | 10.5 | 1,234 |" in after
    assert "at 0.25 for an hour of a core" in after
    head, tail = before.split("<!-- sizing:")[0], before.split("<!-- end of sizing -->")[1]
    assert after.startswith(head)
    assert after.endswith(tail)
    sizing.render(options)
    assert page.read_text("utf-8") == after

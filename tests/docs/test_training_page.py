"""docs/results/poincare-training.md: what takes a second to measure again."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.training import read_wordnet
from hf_dxprivacy.training.wordnet import DEFAULT_PATH

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "poincare-training.md").read_text("utf-8")

pytestmark = pytest.mark.skipif(
    not (Path(DEFAULT_PATH) / "data.noun").exists(), reason=f"no WordNet in {DEFAULT_PATH}"
)


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delitem(sys.modules, "common", raising=False)
    import poincare_training

    return poincare_training


def test_fifty_epochs_of_mammals(benchmark: Any) -> None:
    mammals = benchmark.mammals(read_wordnet())
    for parametrisation in ("lorentz", "poincare"):
        row = benchmark.by_us(mammals, parametrisation)
        stated = re.search(
            rf"^\| {parametrisation} \| \S+ \| (\S+) \| (\S+) \|", PAGE, re.MULTILINE
        )
        assert stated is not None
        assert row["MAP"] == pytest.approx(float(stated[1]), abs=0.01)
        assert row["mean rank"] == pytest.approx(float(stated[2]), abs=0.15)

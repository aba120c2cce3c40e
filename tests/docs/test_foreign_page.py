"""What docs/foreign.md shows of other programs, as far as it runs without them."""

import ast
import re
import sys
import types
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest

from hf_dxprivacy.evaluation import External

PAGE = (Path(__file__).parents[2] / "docs" / "foreign.md").read_text("utf-8")
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS)
def test_block_is_python(code: str) -> None:
    ast.parse(code)


def test_our_privatizer_is_an_anonymizer_of_rat_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its base class as it is in imperial-aisp/rat-bench, pii_benchmark/anonymizers."""

    class Anonymizer(ABC):
        @abstractmethod
        def anonymize(self, text: str, scenario: str = "medical") -> str: ...

    name = "pii_benchmark.anonymizers.anonymizer"
    for part in ("pii_benchmark", "pii_benchmark.anonymizers", name):
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    sys.modules[name].Anonymizer = Anonymizer  # type: ignore[attr-defined]
    names: dict[str, Any] = {}
    exec(BLOCKS[-1], names)
    anonymizer = names["HierarchicalAnonymizer"](epsilon=1.5)
    assert isinstance(anonymizer, Anonymizer)
    # As run_anonymization does, with profiles of its own.
    profile = {"text": "Doctor, my name is Jane Roe.", "scenario": "medical"}
    released = anonymizer.anonymize(profile["text"], scenario=profile["scenario"])
    assert re.fullmatch(r"\S+, \S+ \S+ \S+ \S+ \S+\.", released)
    # And back.
    external = External(anonymizer.anonymize, name="RAT-Bench", claim=14.6)
    assert len(external.privatize([profile["text"], ""])) == 2

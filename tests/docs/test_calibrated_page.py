"""docs/calibrated.md: its example, and the curve that it states."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from hf_dxprivacy.mechanisms import CalibratedExponential
from hf_dxprivacy.spaces import EmbeddingSpace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "calibrated.md").read_text("utf-8")


def test_the_example_prints_what_the_page_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (stated,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "calibrated.md", "exec"), {})
    assert printed.getvalue() == stated


def test_the_curve_of_the_built_in_space_is_the_one_it_brings() -> None:
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    section = PAGE.split("## The curve s(ε)")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \|", section, re.MULTILINE)
    assert len(rows) == 7
    for epsilon, share in rows:
        rate = CalibratedExponential(space, float(epsilon)).rate
        assert rate / float(epsilon) == pytest.approx(float(share), abs=6e-4)

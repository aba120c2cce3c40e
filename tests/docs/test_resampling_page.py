"""docs/resampling.md: its example runs, and its guarantee is that without resampling."""

import re
from pathlib import Path
from typing import Any

from hf_dxprivacy import DxPrivatizer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "resampling.md").read_text("utf-8")


def test_the_example_runs_and_promises_what_plain_noise_does() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made: dict[str, Any] = {}
    exec(compile(code, "resampling.md", "exec"), made)
    plain = DxPrivatizer.from_pretrained("wordnet-gloss", mechanism="laplace", epsilon=40.0)
    resampled = made["privatizer"].guarantee
    assert resampled.ldp_epsilon == plain.guarantee.ldp_epsilon
    assert resampled.neighbour_epsilon == plain.guarantee.neighbour_epsilon
    assert any("i up to 50" in sentence for sentence in resampled.assumptions)

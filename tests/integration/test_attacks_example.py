"""examples/attacks.py, run as a user runs it, on rows made here."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from example_runs import run, run_here

from hf_dxprivacy.results import Results

pytestmark = pytest.mark.slow

HABITS = {
    "ann": "the soup was hot and the bread was fresh so we came back for lunch and dinner",
    "bob": "a storm hit the coast at night while trains to the north stood still for hours",
    "eve": "my teacher reads old books about kings and castles when rain falls on the roof",
    "kim": "his team won every game this year because young players run faster than most",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for i in range(16):
        for name, habit in HABITS.items():
            text = " ".join(rng.choice(habit.split(), 20))
            row = {"author": name, "text": text, "label": str(i % 2)}
            lines.append(json.dumps(row | {"split": "train" if i < 8 else "test"}))
    path = tmp_path_factory.mktemp("example") / "mail.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


OPTIONS = {
    "attribution": ("--known_released", "--words_only", "--every", "2"),
    "membership": ("--repeats", "1", "--rows", "40"),
    "users": ("--repeats", "1", "--texts", "2"),
    "reconstruction": ("--words", "30", "--draws", "20"),
}


def test_one_epsilon_has_nothing_between(rows: Path) -> None:
    options = ("--data", rows, "--lines", "tem", "--epsilon", 5, "--words", 30, "--draws", 20)
    output = run("attacks.py", "reconstruction", *options)
    assert "| tem | 5 | N_w |" in output
    assert "nan" not in output
    assert "N_w = " not in output


@pytest.mark.parametrize("attack", OPTIONS)
def test_every_attack_prints_and_writes_what_it_finds(
    rows: Path, tmp_path: Path, attack: str
) -> None:
    output = tmp_path / "results.jsonl"
    # A program of its own where that does not import torch or scikit-learn.
    as_user = run if attack == "reconstruction" else run_here
    line = ("--data", rows, "--lines", "tem", "--epsilon", 1, 40)
    printed = as_user("attacks.py", attack, *line, *OPTIONS[attack], "--output", output)
    results = Results.load(output)
    assert all(f"| {r.mechanism} |" in printed for r in results)
    assert {r.epsilon for r in results.where(mechanism="tem")} == {1.0, 40.0}
    if attack == "reconstruction":
        kept = [r.value for r in results.where(metric="N_w")]
        assert kept == pytest.approx([0.0, 1.0], abs=0.01)
        assert re.search(r"\| tem \| 0\.\d+ \| 0\.\d+ ", printed)
    else:
        assert {r.mechanism for r in results} == {"none", "mixed up", "tem"}
        same = [r.value for r in results.where(metric="words unchanged")]
        assert same[0] < 0.1 < 0.8 < same[1]
    if attack == "attribution":
        found = [r.value for r in results.where(metric="accuracy")]
        assert found[0] > 0.9
        assert found[1] < 0.8

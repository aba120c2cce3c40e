"""docs/attacks.md: its figures, and that its commands are what the program takes."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from hf_dxprivacy.audit import reconstruction
from hf_dxprivacy.cli.main import VERBS, _Parsers
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "attacks.md").read_text("utf-8")
RESULTS = (ROOT / "docs" / "results" / "attacks.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("tem", r"([\d.]+) for TEM"), ("calibrated", r"([\d.]+) for the calibrated")],
)
def test_one_guess_at_the_same_certified_epsilon(name: str, pattern: str) -> None:
    space, reader = EmbeddingSpace.from_pretrained("wordnet-gloss"), RowReader()
    lines = (ROOT / "examples" / "demo_sentences.txt").read_text("utf-8").splitlines()
    words = [w.lower() for line in lines for w in reader.read_text(line.split("\t")[1]).words]
    prior = {word: float(count) for word, count in Counter(words).items()}
    found = reconstruction(create_mechanism(name, space, 6.0), prior).results[0]
    (stated,) = re.findall(f"right with probability.*?{pattern}", PAGE, re.DOTALL)
    assert found.value == pytest.approx(float(stated), abs=6e-4)


COMMANDS = re.findall(r"^hf-dxprivacy (audit .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_what_the_program_takes(command: str) -> None:
    assert "audit" in VERBS
    args = _Parsers().program.parse_args(shlex.split(command))
    assert args.verb == "audit"


def test_commands_of_every_attack_are_there() -> None:
    assert len(COMMANDS) == 5
    assert "python examples/attacks.py" in RESULTS

"""docs/results/utility.md: its commands are commands, and a figure is what one of them gives."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.spaces import EmbeddingSpace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "utility.md").read_text("utf-8")
WHOLE_LINES = PAGE.replace("\\\n", " ")
COMMANDS = [
    shlex.split(command)
    for command in re.findall(r"^    python (examples/.*)$", WHOLE_LINES, re.MULTILINE)
]


def test_the_page_has_a_command_for_each_table() -> None:
    assert len(COMMANDS) == len(re.findall(r"^\| mechanism \|", PAGE, re.MULTILINE))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_are_understood(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = runpy.run_path(str(ROOT / command[0]))
    monkeypatch.setattr(sys, "argv", command)
    assert vars(script["parse_arguments"]())["data"]


@pytest.mark.realdata
def test_the_original_figure_is_that_of_the_command(data: Path, tmp_path: Path) -> None:
    """It has no noise: chance is in the choice of the test parts alone, by their numbers."""
    archive = np.load(data / "embeddings" / "glove.840B.300d-33860.npz")
    space = EmbeddingSpace.from_vectors(archive["words"].tolist(), archive["vectors"])
    space.save_pretrained(tmp_path / "glove")
    command = COMMANDS[0]
    done = subprocess.run(
        [
            *(sys.executable, "-X", "utf8", str(ROOT / command[0])),
            *("--data", str(data / "utility" / "mr.jsonl.gz"), "--features", "glove"),
            *("--mechanism", "--baseline", "none"),
        ],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    (printed,) = re.findall(r"^\| original \| .*$", done.stdout, re.MULTILINE)
    (stated,) = re.findall(r"^\| original \| .*$", PAGE, re.MULTILINE)[:1]
    assert stated.split("|")[3].split() == printed.split("|")[3].split()

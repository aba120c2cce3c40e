"""`make demo`: it runs as a user runs it, and shows what it should."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from machine import PATIENCE
from programs import run_python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"
COMMAND = [sys.executable, "-X", "utf8", str(DEMO)]


def test_demo_shows_texts_shares_and_guarantees() -> None:
    # A pipe is no terminal.
    output = run_python(DEMO, COLUMNS="100")
    assert "\033" not in output
    shares = [int(share) for share in re.findall(r"^ε = [\d.]+: (\d+)% of", output, re.MULTILINE)]
    assert len(shares) == 2
    assert 100 > shares[0] > shares[1] > 0
    assert output.count("ε·d-private per word") == 2
    assert output.count("Send a message to Priya: I am stuck in traffic.") == 1
    # Words that the space lacks never come out, at whatever ε.
    for word in ("20391", "Priya", "Ferreira", "example.org", "finallyfree"):
        assert output.count(word) <= 1


def test_on_a_terminal_lines_fit_and_changed_words_are_marked() -> None:
    terminal, program_side = os.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment["COLUMNS"] = "60"
    process = subprocess.Popen([*COMMAND, "--epsilon", "1.5"], stdout=program_side, env=environment)
    os.close(program_side)
    output = b""
    # A terminal whose other side has been closed reads as an error.
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            output += part
    os.close(terminal)
    assert process.wait(timeout=PATIENCE) == 0
    originals = [line for line in output.splitlines() if line.startswith(b"support")]
    released = [line for line in output.splitlines() if line.startswith("ε = 1.5 ".encode())]
    assert originals
    assert not any(b"\033" in line for line in originals)
    assert sum(b"\033[1;33m" in line for line in released) > len(released) / 2
    shown = re.sub(r"\033\[[\d;]*m", "", output.decode()).replace("\r", "")
    sentences = shown.partition("\nε = 1.5: ")[0].partition("\n\n")[2].splitlines()
    assert len(sentences) > 40
    assert max(map(len, sentences)) <= 60


def test_sentences_are_two_hundred_different_ones() -> None:
    lines = DEMO.with_name("demo_sentences.txt").read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 200
    assert all(line.count("\t") == 1 for line in lines)

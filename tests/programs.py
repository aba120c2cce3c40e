"""Programs of the repository and of its pages, run as a user runs them, and what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

from keyed_noise import environment_of_program
from machine import PATIENCE

ROOT = Path(__file__).parents[1]
PATH = os.pathsep.join(map(str, (ROOT, Path(__file__).parent / "keyed_programs")))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Return the programs of one language on a page."""
    return [code for kind, code in FENCE.findall(page.read_text("utf-8")) if kind == language]


def run_python(*arguments: object, folder: Path | None = None, **environment: str) -> str:
    """Run Python in a folder; require that it ends well, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATH, **environment_of_program(), **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of a table in Markdown without its two head lines."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

"""Running an example as a user runs it."""

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from machine import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, **environment: str) -> str:
    """Run an example and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(EXAMPLES / name), *map(str, arguments)],
        # The models are small: threads would only get in each other's way.
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def help_of(name: str) -> str:
    """Return what an example says of itself, run in this process: most of its time is imports."""
    arguments, printed = [name, "--help"], io.StringIO()
    search = [str(EXAMPLES), *sys.path]
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.object(sys, "path", search),
        contextlib.redirect_stdout(printed),
        pytest.raises(SystemExit) as ended,
    ):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert not ended.value.code
    return printed.getvalue()


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path

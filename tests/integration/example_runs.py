"""Running an example as a user runs it."""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest

from programs import run_python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, folder: Path | None = None, **environment: str) -> str:
    """Run an example, in a folder, and return what it prints."""
    # The models are small: threads would only get in each other's way.
    environment = {"OMP_NUM_THREADS": "1", **environment}
    return run_python(EXAMPLES / name, *arguments, folder=folder, **environment)


def help_of(name: str) -> str:
    """Return what an example says of itself, run in this process: most of its time is imports."""
    arguments, printed = [name, "--help"], io.StringIO()
    search = [str(EXAMPLES), *sys.path]
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.object(sys, "path", search),
        contextlib.redirect_stdout(printed),
        pytest.raises(SystemExit, match=r"^0$"),
    ):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path

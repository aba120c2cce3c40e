"""Running an example as a user runs it."""

import contextlib
import io
import json
import os
import runpy
import sys
import warnings
from pathlib import Path
from unittest import mock

import datasets

from programs import run_python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, folder: Path | None = None, **environment: str) -> str:
    """Run an example, in a folder, and return what it prints."""
    # The models are small: threads would only get in each other's way.
    environment = {"OMP_NUM_THREADS": "1", **environment}
    return run_python(EXAMPLES / name, *arguments, folder=folder, **environment)


def run_here(name: str, *arguments: object, folder: Path | None = None, **environment: str) -> str:
    """Run an example in this process, and return what it prints.

    For those that import torch and transformers, which takes longer than what the examples do here
    and happens once in a process of tests. What they set for their own process is undone.
    """
    printed, before = io.StringIO(), Path.cwd()
    bars = datasets.are_progress_bars_disabled()
    with (
        mock.patch.object(sys, "argv", [name, *map(str, arguments)]),
        mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]),
        mock.patch.dict(os.environ, environment),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
    ):
        # As in a process of its own: what other libraries warn of is no failure of the example.
        warnings.simplefilter("ignore")
        os.chdir(folder or before)
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        finally:
            os.chdir(before)
            (datasets.disable_progress_bars if bars else datasets.enable_progress_bars)()
    return printed.getvalue()


def help_of(name: str) -> str:
    """Return what an example says of itself."""
    return run_here(name, "--help")


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path

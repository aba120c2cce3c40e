"""docs/notebooks: each runs from start to end; what is stored is small and names no machine."""

import os
import re
from base64 import b64decode
from pathlib import Path

import nbformat
import pytest

from hub_server import HubServer
from programs import ROOT

NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_the_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["chats", "epsilon", "map"]


@each
def test_what_is_stored(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(cell.outputs and cell.execution_count for cell in code_cells(notebook))
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    images = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert all(len(b64decode(image)) < 200_000 for image in images)
    text = path.read_text("utf-8")
    assert len(text) < 200_000
    without_images = re.sub(r'"image/png": ".*"', "", text)
    assert (
        re.findall(r"(?:/(?:work|home|root|tmp|usr)/|127\.0\.0\.1|localhost)", without_images) == []
    )


@pytest.mark.cluster
@each
def test_it_runs(
    path: Path, tmp_path: Path, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    from run_notebooks import QUIET, run

    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    for name, value in (QUIET | {"HF_TOKEN": hub.token, "PYTHONPATH": python_path}).items():
        monkeypatch.setenv(name, value)
    ran = code_cells(run(path, tmp_path))
    stored = code_cells(nbformat.read(path, as_version=4))
    assert [len(cell.outputs) > 0 for cell in ran] == [True] * len(stored)
    assert "per word: ε = " in str([cell.outputs for cell in ran])
    if path.stem == "chats":
        assert any(
            name.endswith(".parquet") for name in hub.repo("datasets/me/support-chats").files()
        )

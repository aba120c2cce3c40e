"""Run the notebooks of docs/notebooks and store what they print: make notebooks.

What they push goes to a Hub on this machine, that of the tests, under the name of the real one.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
QUIET = {
    "DATASETS_VERBOSITY": "error",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "PYTHONWARNINGS": "ignore:IProgress not found",
}
# The kernel warns of its ports, which are those of this machine.
NO_WARNINGS = ["--IPKernelApp.log_level=ERROR"]


def run(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder, with the environment of this process, and return it."""
    content = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(content, timeout=600, resources=where, extra_arguments=NO_WARNINGS)
    client.execute()
    return content


def cleaned(content: nbformat.NotebookNode, url: str) -> nbformat.NotebookNode:
    """Return a notebook without times, with the real Hub's name, joined streams, and HTML once."""
    text = nbformat.writes(content).replace(url, "https://huggingface.co")
    content = nbformat.reads(text, as_version=4)
    for cell in content.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)  # of statistics: all their figures
        if cell.get("outputs") and all(part.get("name") == "stdout" for part in cell.outputs):
            text = "".join(part.text for part in cell.outputs)
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    content.metadata.language_info = {"name": "python"}
    return content


def main() -> None:
    """Run all notebooks, and write them with their outputs."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hub_server import HubServer

    for notebook in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as name, HubServer(Path(name) / "hub") as hub:
            cache = {"HF_DATASETS_CACHE": str(Path(name) / "cache")}
            os.environ.update(hub.environment | QUIET | cache | {"PYTHONPATH": str(ROOT)})
            os.environ["HF_TOKEN"] = hub.token
            content = cleaned(run(notebook, Path(name)), hub.url)
        notebook.write_text(nbformat.writes(content) + "\n", "utf-8")
        print(notebook.relative_to(ROOT))


if __name__ == "__main__":
    main()

"""What the benchmark scripts share: the development data, machine facts, tables, JSON."""

import argparse
import gzip
import json
import os
import platform
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy import EmbeddingSpace, __version__

HERE = Path(__file__).parent
DATA = Path(os.environ.get("HF_DXPRIVACY_DATA", HERE.parents[1] / "shared" / "data"))


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--data", type=Path, default=DATA, help="folder of the datasets")
    result.add_argument("--json", type=Path, help="write the results there too")
    return result


def jsonl(path: Path) -> list[dict[str, Any]]:
    """Read a gzipped JSON lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def glove(data: Path) -> EmbeddingSpace:
    """Return the 33,860 × 300 GloVe space."""
    archive = np.load(data / "embeddings" / "glove.840B.300d-33860.npz")
    return EmbeddingSpace.from_vectors(archive["words"].tolist(), archive["vectors"])


def peer_python(name: str, *requirements: str) -> Path:
    """Return the interpreter of a peer's own virtual environment, which is made if missing."""
    folder = HERE / "out" / "venvs" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "complete").exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        (folder / "complete").touch()
    return python


def machine() -> dict[str, Any]:
    """Return the facts without which a figure means nothing."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "hf_dxprivacy": __version__,
    }


def report(title: str, rows: Sequence[dict[str, Any]], target: Path | None) -> None:
    """Print a Markdown table with the machine's facts; write JSON if asked to."""
    facts = machine()
    print(f"\n## {title}\n\n{', '.join(f'{k} {v}' for k, v in facts.items())}\n")
    names = list(rows[0])
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |")
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        content = {"title": title, "machine": facts, "rows": list(rows)}
        target.write_text(json.dumps(content, indent=1))


def _cell(value: Any) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )

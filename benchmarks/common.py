"""Shared parts of the benchmarks: development data, machine facts, tables, JSON."""

import argparse
import gzip
import json
import os
import platform
import subprocess
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from hf_dxprivacy import EmbeddingSpace, __version__

HERE = Path(__file__).parent
DATA = Path(os.environ.get("HF_DXPRIVACY_DATA", HERE.parents[1] / "shared" / "data"))
STARTED = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
# Of the minute before, where the system tells it: what else was going on.
LOAD = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else "unknown"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--data", type=Path, default=DATA, help="folder of the datasets")
    result.add_argument("--json", type=Path, help="write the results there too")
    return result


def existing(path: Path) -> Path:
    """Return a file of the development data, which are not part of the repository."""
    if not path.exists():
        raise SystemExit(f"{path} is missing; pass --data, or set HF_DXPRIVACY_DATA")
    return path


def jsonl(path: Path) -> list[dict[str, Any]]:
    """Read a gzipped JSON lines file."""
    with gzip.open(existing(path), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def glove(data: Path) -> EmbeddingSpace:
    """Return the 33,860 × 300 GloVe space."""
    archive = np.load(existing(data / "embeddings" / "glove.840B.300d-33860.npz"))
    return EmbeddingSpace.from_vectors(archive["words"].tolist(), archive["vectors"])


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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
        "memory": memory(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "faiss": faiss.__version__,
        "hf_dxprivacy": __version__,
        "started": STARTED,
        "load before": LOAD,
    }


def memory() -> str:
    """Return the size of the machine's memory."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def report(title: str, rows: Sequence[dict[str, Any]], target: Path | None) -> None:
    """Print a Markdown table with the machine's facts; write JSON if asked to."""
    facts = machine()
    print(f"\n## {title}\n\n{', '.join(f'{k} {v}' for k, v in facts.items())}\n")
    print(markdown(rows), end="")
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        content = {"title": title, "machine": facts, "rows": list(rows)}
        target.write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table with a column for each name that a row has; nothing for no rows."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, ["---"] * len(names)]
    lines += [[cell(row.get(name, "")) for name in names] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_into(page: Path, name: str, content: str) -> None:
    """Replace what stands between the markers of a name, or "name: made by script", in a page."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name.partition(':')[0]} -->"
    before, found, rest = page.read_text("utf-8").partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{page} has no place for {name}")
    page.write_text(f"{before}{start}\n{content}\n{end}{after}", "utf-8")


class Measured:
    """Figures by a key, in a file of JSON lines that a run which was interrupted goes on from."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._done = path, dict[str, dict[str, float]]()
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                self._done[entry["key"]] = entry["values"]

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def once(self, key: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Return the figures of a key from the file, or measure them."""
        if key not in self._done:
            self._done[key] = measure()
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, "values": self._done[key]}) + "\n")
            print(key, self._done[key], flush=True)
        return self._done[key]


def print_or_write(description: str, page: Path, script: str, table: Callable[[], str]) -> None:
    """Print the table of a page, or with --write put it there."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    write = parser.parse_args().write
    if write:
        write_into(page, f"table: made by benchmarks/{script}", table())
    else:
        print(table(), end="")


def cell(value: Any) -> str:
    """Return a figure with four digits, a whole number with all of its own."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)

"""Measure how large the package is and how far a call travels in it.

python scripts/house.py           print tables
python scripts/house.py --json    print the same figures as JSON

Figures of files are read from the working tree; paths of calls are traced while the call runs.
`tests/unit/test_house.py` holds the limits.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.calibration import suggest_epsilon
from hf_dxprivacy.cli.main import main as program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hf_dxprivacy"

# What turns batches into batches; every other room only looks at it. Besides these, the modules
# at the top level.
CORE = ("text", "spaces", "search", "noise", "mechanisms", "hub", "sentences", "privatizers")

# No module can be imported under these names, or it is the package itself.
NO_ENTRIES = ("__init__.py", "__pycache__", "py.typed")

# Frames that Python 3.12 does not have: it runs a comprehension inside its function.
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
OPTIMIZED = 1

BATCH = {"text": ["The soup was cold.", "Bring a lamp, please."], "stars": [1, 2]}


def rooms() -> dict[str, dict[str, int]]:
    """Count the files and lines of each room; "(top level)" is that of no room."""
    counts: dict[str, dict[str, int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        room = counts.setdefault(
            parts[0] if len(parts) > 1 else "(top level)", {"files": 0, "lines": 0}
        )
        room["files"] += 1
        room["lines"] += len(path.read_text(encoding="utf-8").splitlines())
    return counts


def entries() -> list[str]:
    """Return the names at the top of the package, of modules, rooms and data."""
    return sorted(path.name for path in PACKAGE.iterdir() if path.name not in NO_ENTRIES)


def repeated_names() -> dict[str, int]:
    """Return how often a name of a module is used, where that is more than once."""
    stems = Counter(path.stem for path in PACKAGE.rglob("*.py"))
    return {
        name: count
        for name, count in sorted(stems.items())
        if count > 1 and not name.startswith("__")
    }


def contract() -> dict[str, int]:
    """Count the layers of the import contract, and the imports that are exempt from it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = [len(each["layers"]) for each in contracts if each["type"] == "layers"]
    exempt = sum(len(each.get("ignore_imports", ())) for each in contracts)
    return {"layers": max(layers), "exemptions": exempt}


def traced(job: Callable[[], Any]) -> dict[str, int]:
    """Run a job and count what it goes through.

    Args:
        job: A call, which was made before: nothing is left to be imported or kept.

    Returns:
        Distinct functions of the package, distinct modules, the largest depth of calls, and how
        often the path goes from one module to another.
    """
    calls: list[tuple[str, str]] = []
    depth = deepest = 0
    prefix = f"{PACKAGE}/"

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        # Bodies of modules and classes are no calls.
        if not code.co_filename.startswith(prefix) or not code.co_flags & OPTIMIZED:
            return
        if code.co_name in INLINED:
            return
        if event == "call":
            calls.append((code.co_filename, code.co_name))
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(profile)
    try:
        job()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in calls]
    return {
        "functions": len(set(calls)),
        "modules": len(set(files)),
        "depth": deepest,
        "switches": sum(a != b for a, b in pairwise(files)),
    }


def jobs(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls whose paths are counted, by what they are.

    Args:
        folder: An empty folder to write to.
    """
    name, mechanism = "wordnet-gloss", "calibrated"
    privatizer = DxPrivatizer.from_pretrained(name, mechanism=mechanism, epsilon=5.0)
    space = EmbeddingSpace.from_pretrained(name)
    (folder / "in.csv").write_text('text,stars\nThe soup was cold.,1\n"A lamp, please.",2\n')
    command = ["privatize", str(folder / "in.csv"), "--output", str(folder / "out.csv")]
    command += ["--space", name, "--mechanism", mechanism, "--epsilon", "5", "--overwrite"]

    def privatize() -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            if program(command):
                raise RuntimeError("hf-dxprivacy privatize failed")

    return {
        "privatizer(batch)": lambda: privatizer(BATCH),
        "from_pretrained": lambda: DxPrivatizer.from_pretrained(
            name, mechanism=mechanism, epsilon=5.0
        ),
        "hf-dxprivacy privatize": privatize,
        "suggest_epsilon": lambda: suggest_epsilon(
            space, "tem", max_nw=0.5, words=space.words[:5], progress=False
        ),
        "save_pretrained": lambda: privatizer.save_pretrained(folder / "saved"),
    }


def paths() -> dict[str, dict[str, int]]:
    """Count what each job goes through, at its second call."""
    counted = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name, job in jobs(Path(temporary)).items():
            job()
            counted[name] = traced(job)
    return counted


def figures() -> dict[str, Any]:
    """Return all figures as JSON-ready values."""
    by_room = rooms()
    core = [counts for name, counts in by_room.items() if name in (*CORE, "(top level)")]
    return {
        "lines": sum(counts["lines"] for counts in by_room.values()),
        "modules": sum(counts["files"] for counts in by_room.values()),
        "core lines": sum(counts["lines"] for counts in core),
        "core modules": sum(counts["files"] for counts in core),
        "entries": len(entries()),
        **contract(),
        "repeated names": repeated_names(),
        "rooms": by_room,
        "paths": paths(),
    }


def as_tables(found: dict[str, Any]) -> str:
    """Write figures as Markdown tables."""
    blocks = []
    whole = {name: value for name, value in found.items() if isinstance(value, int)}
    repeated = ", ".join(f"{name} x{count}" for name, count in found["repeated names"].items())
    rows = [*whole.items(), ("repeated names", f"{len(found['repeated names'])}: {repeated}")]
    blocks.append(_table(("figure", "value"), rows))
    blocks.append(_table(("room", "files", "lines"), _rows(found["rooms"])))
    columns = ("job", "functions", "modules", "depth", "switches")
    blocks.append(_table(columns, _rows(found["paths"])))
    return "\n\n".join(blocks)


def _rows(counts: dict[str, dict[str, int]]) -> list[tuple[Any, ...]]:
    return [(name, *values.values()) for name, values in counts.items()]


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(f"{value}" for value in row) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    found = figures()
    print(json.dumps(found, indent=2) if asked.json else as_tables(found))


if __name__ == "__main__":
    main()

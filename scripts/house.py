"""Measure how large the package is and how far a call travels in it.

python scripts/house.py           print tables
python scripts/house.py --json    print the same figures as JSON

Figures of files are read from the working tree; paths of calls are traced while the call runs.
`tests/unit/test_house.py` holds the limits.
"""

import argparse
import ast
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hf_dxprivacy import DxPrivatizer, SentencePrivatizer, errors
from hf_dxprivacy.cli.main import main as program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hf_dxprivacy"

# What turns batches into batches, with the modules at the top level; every other room is around it.
CORE = ("text", "noise", "search", "spaces", "mechanisms", "hub", "privatizers")
# What nothing below the command line imports.
SATELLITES = ("training", "evaluation", "page")

# The same figures of version 0.3 (the first column of the table), where they were counted.
BEFORE: dict[str, Any] = {
    "lines": 37_366,
    "core lines": 16_858,
    "ten lines, lines": 17_254,
    "ten lines, modules": 77,
    "privatizer(batch)": (47, 13),
    "privatizer(batch), seeded": (76, 16),
    "SentencePrivatizer(batch)": (62, 17),
    "load a space": (72, 21),
    "load a privatizer": (118, 25),
    "hf-dxprivacy privatize": (290, 39),
    "code lines per raise": 40,
    "circles": 3,
    "probes of privatizers": 12,
    "words of README": 1_850,
    "words of docs": 83_000,
}

# No module can be imported under these names, or it is the package itself.
NO_ENTRIES = ("__init__.py", "__pycache__", "py.typed")

# Frames that Python 3.12 does not have: it runs a comprehension inside its function.
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
OPTIMIZED = 1
# Of these figures only.
SEED = 1 << 100

SOURCES = sorted(PACKAGE.rglob("*.py"))
OWN_ERRORS = {name for name in vars(errors) if name.endswith("Error")}
# What a first user runs, and then what it imported.
TEN_LINES = """
import sys
from datasets import Dataset
from hf_dxprivacy import DxPrivatizer
privatizer = DxPrivatizer("english", mechanism="hierarchical", epsilon=1.5)
released = Dataset.from_dict({"text": ["The soup was cold."]}).map(privatizer, batched=True)
str(privatizer.guarantee)
files = {v.__file__ for k, v in sys.modules.items() if k.partition(".")[0] == "hf_dxprivacy"}
print(len(files), sum(len(open(file, encoding="utf-8").read().splitlines()) for file in files))
"""

POOL = "wordnet-sentences"
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


def imports() -> dict[str, set[str]]:
    """Return which modules of the package each names in an import, late ones and types included."""
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in SOURCES}
    found = {}
    for module, path in files.items():
        named = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                named |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        found[module] = (named & files.keys()) - {module}
    return found


def circles() -> list[list[str]]:
    """Return the groups of modules that import each other, round about."""
    graph = imports()

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [*graph[start]]
        while waiting:
            if (module := waiting.pop()) not in seen:
                seen.add(module)
                waiting += graph[module]
        return seen

    reach = {module: reached(module) for module in graph}
    groups = {
        tuple(sorted(other for other in reach[module] if module in reach[other]))
        for module in graph
        if module in reach[module]
    }
    return [[*group] for group in sorted(groups)]


def raises() -> dict[str, int]:
    """Count statements that raise an error of the package, and lines of code."""
    raised = code = 0
    for path in SOURCES:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        documented: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised += ast.unparse(node.exc.func) in OWN_ERRORS
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for number, line in enumerate(text.splitlines(), 1):
            code += bool(line.strip()) and line.strip()[0] != "#" and number not in documented
    return {"raises": raised, "code lines": code}


def probes() -> int:
    """Count `getattr` and `hasattr` on something that is called a privatizer."""
    pattern = re.compile(r"\b(?:get|has)attr\(\s*(?:self\.)?(?:privatizer|made|found)\b")
    return sum(len(pattern.findall(path.read_text("utf-8"))) for path in SOURCES)


def words_written() -> dict[str, int]:
    """Count the words of the README and of the pages of the docs."""
    pages = (ROOT / "docs").rglob("*.md")
    return {
        "words of README": len((ROOT / "README.md").read_text("utf-8").split()),
        "words of docs": sum(len(page.read_text("utf-8").split()) for page in pages),
    }


def loaded() -> dict[str, int]:
    """Count the modules and lines that the ten lines of the README import."""
    done = subprocess.run(
        [sys.executable, "-c", TEN_LINES], capture_output=True, text=True, cwd=ROOT, check=True
    )
    modules, lines = map(int, done.stdout.split()[-2:])
    return {"ten lines, modules": modules, "ten lines, lines": lines}


def traced(job: Callable[[], Any]) -> dict[str, int]:
    """Run a job and count what it goes through, in all its threads.

    Args:
        job: A call, which was made before: nothing is left to be imported or kept.

    Returns:
        Distinct functions of the package, and distinct modules.
    """
    calls: set[tuple[str, str]] = set()
    prefix = f"{PACKAGE}/"

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Bodies of modules and classes are no calls.
        if event == "call" and code.co_filename.startswith(prefix) and code.co_flags & OPTIMIZED:
            if code.co_name not in INLINED:
                calls.add((code.co_filename, code.co_name))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {"functions": len(calls), "modules": len({file for file, _ in calls})}


def jobs(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls whose paths are counted, by what they are.

    Args:
        folder: An empty folder to write to.
    """
    name, mechanism = "english", "hierarchical"
    made = DxPrivatizer(name, mechanism, 1.5)
    seeded = DxPrivatizer(name, mechanism, 1.5, seed=SEED)
    sentences = SentencePrivatizer(POOL, epsilon=1.2)
    made.save_pretrained(folder / "saved")
    (folder / "in.csv").write_text('text,stars\nThe soup was cold.,1\n"A lamp, please.",2\n')
    command = ["privatize", str(folder / "in.csv"), "--output", str(folder / "out.csv")]
    command += ["--space", name, "--mechanism", mechanism, "--epsilon", "1.5", "--overwrite"]

    def privatize() -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            if program(command):
                raise RuntimeError("hf-dxprivacy privatize failed")

    return {
        "privatizer(batch)": lambda: made(BATCH),
        "privatizer(batch), seeded": lambda: seeded(BATCH, [0, 1]),
        "SentencePrivatizer(batch)": lambda: sentences(BATCH),
        "load a space": lambda: DxPrivatizer(name, mechanism, 1.5),
        "load a privatizer": lambda: DxPrivatizer.from_pretrained(folder / "saved"),
        "hf-dxprivacy privatize": privatize,
        "save a privatizer": lambda: made.save_pretrained(folder / "saved"),
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
    around = [counts for name, counts in by_room.items() if name not in SATELLITES]
    told = raises()
    return {
        "lines": sum(counts["lines"] for counts in by_room.values()),
        "lines without satellites": sum(counts["lines"] for counts in around),
        "core lines": sum(counts["lines"] for counts in core),
        "core modules": sum(counts["files"] for counts in core),
        **loaded(),
        "code lines per raise": told["code lines"] // told["raises"],
        "probes of privatizers": probes(),
        "entries": len(entries()),
        **contract(),
        **words_written(),
        "circles": circles(),
        "repeated names": repeated_names(),
        "rooms": by_room,
        "paths": paths(),
    }


def as_tables(found: dict[str, Any]) -> str:
    """Write figures as Markdown tables, those of version 0.3 beside them."""
    rows = [
        (name, BEFORE.get(name, ""), value if isinstance(value, int) else len(value))
        for name, value in found.items()
        if name not in ("rooms", "paths")
    ]
    travelled = [
        (name, *BEFORE.get(name, ("", "")), *counts.values())
        for name, counts in found["paths"].items()
    ]
    return "\n\n".join(
        [
            _table(("figure", "0.3", "now"), rows),
            _table(("room", "files", "lines"), _rows(found["rooms"])),
            _table(("call", "functions, 0.3", "modules, 0.3", "functions", "modules"), travelled),
            *[f"circle: {', '.join(group)}" for group in found["circles"]],
        ]
    )


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

"""Run the benchmarks one after the other and write docs/results/speed.md from the last two runs.

    python benchmarks/run.py                    # `make bench`, 25 minutes on two free cores
    python benchmarks/run.py --only peers       # again within the last run
    python benchmarks/run.py --long             # what takes longer, kept until it is run again
    python benchmarks/run.py --page             # the page only, from what was measured

Every script prints a table and writes JSON into benchmarks/out. A script that fails does not keep
the others from running; at the end it is an error, as is a goal whose figure no script has.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import common
import speed_page
from goals import GOALS

OUT = common.HERE / "out"
LATEST, PREVIOUS, LONG = OUT / "latest", OUT / "previous", OUT / "long"
PAGE = common.HERE.parent / "docs" / "results" / "speed.md"

# What is run, by the name of its results.
SCRIPTS = {
    "peers": "peers.py",
    "map_speed": "map_speed.py",
    "index_speed": "index_speed.py",
    "startup": "startup.py",
    "poincare_training": "poincare_training.py --task gensim",
    "webisadb": "webisadb.py --millions 1 10 --forms csv",
    "gpu": "gpu.py",
}
LONG_SCRIPTS = {
    "nouns": "poincare_training.py --task nouns --dims 10 --threads 1",
    "certification": "certification.py",
    "mr_accuracy": "mr_accuracy.py",
}


def run(names: Iterable[str], scripts: dict[str, str], folder: Path) -> list[str]:
    """Run scripts; return those that failed."""
    failed = []
    for name in names:
        script, *arguments = scripts[name].split()
        target = folder / f"{name}.json"
        target.unlink(missing_ok=True)
        started = time.perf_counter()
        command = [sys.executable, common.HERE / script, *arguments, "--json", target]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        print(f"\n{name}: {time.perf_counter() - started:.0f} s", flush=True)
    return failed


def write_page() -> None:
    """Write the measured parts of the page, and print the goals."""
    long = speed_page.read(LONG)
    previous, latest = speed_page.read(PREVIOUS), speed_page.read(LATEST)
    runs = [previous, latest] if previous else [latest]
    table = common.markdown(speed_page.goals_table(GOALS, [*runs[:-1], latest | long]))
    print(f"\n{table}")
    commands = {
        name: f"python benchmarks/{command}" for name, command in (SCRIPTS | LONG_SCRIPTS).items()
    }
    parts = {
        "goals": table,
        "machine": common.markdown(speed_page.machine_table(runs)),
        "tables": speed_page.all_tables(latest | long, commands),
    }
    page = PAGE.read_text("utf-8")
    for name, content in parts.items():
        page = speed_page.with_part(page, name, content)
    PAGE.write_text(page, "utf-8")


def main() -> int:
    """Run what is asked for and write the page."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = arguments.add_mutually_exclusive_group()
    what.add_argument("--only", nargs="+", choices=SCRIPTS, help="run these again")
    what.add_argument("--long", action="store_true", help="run what takes hours")
    what.add_argument("--page", action="store_true", help="run nothing")
    options = arguments.parse_args()
    failed = []
    if options.long:
        failed = run(LONG_SCRIPTS, LONG_SCRIPTS, LONG)
    elif not options.page:
        if options.only is None and LATEST.exists():
            shutil.rmtree(PREVIOUS, ignore_errors=True)
            LATEST.rename(PREVIOUS)
        failed = run(options.only or SCRIPTS, SCRIPTS, LATEST)
    write_page()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

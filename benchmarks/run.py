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
    "search_kernels": "search_kernels.py",
    "index_speed": "index_speed.py",
    "exponential_rows": "exponential_rows.py",
    "hyperbolic_noise": "hyperbolic_noise.py",
    "startup": "startup.py",
    "growth": "growth.py",
    "profile_map": "profile_map.py",
    "sizing": "sizing.py",
    "poincare_training": "poincare_training.py --task gensim",
    "webisadb": "webisadb.py --millions 10 --forms csv",
    "gpu": "gpu.py",
}
LONG_SCRIPTS = {
    "certification": "exponential_rows.py --certify --sizes 10000 20000 --epsilons 2",
    "mr_accuracy": "mr_accuracy.py",
    "slots": "slots.py",
    "exponential_lists": "exponential_rows.py --sizes 400000 --listed 400000 --epsilons 2",
    "nouns": "poincare_training.py --task nouns --dims 10 --threads 1",
}
ALL_SCRIPTS = SCRIPTS | LONG_SCRIPTS
# Those that write a page of their own from their results; and all whose tables are on other pages.
WITH_PAGE = ("growth", "profile_map", "sizing")
ELSEWHERE = (*WITH_PAGE, "mr_accuracy", "slots")


def run(names: Iterable[str]) -> list[str]:
    """Run scripts; return those that failed."""
    failed = []
    for name in names:
        script, *arguments = ALL_SCRIPTS[name].split()
        target = (LONG if name in LONG_SCRIPTS else LATEST) / f"{name}.json"
        target.unlink(missing_ok=True)
        started = time.perf_counter()
        command = [sys.executable, common.HERE / script]
        commands = [[*command, *arguments, "--json", target]]
        if name in WITH_PAGE:
            commands.append([*command, "--page", target])
        if any(subprocess.run(each, check=False).returncode for each in commands):
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
        name: f"python benchmarks/{command}"
        for name, command in ALL_SCRIPTS.items()
        if name not in ELSEWHERE
    }
    parts = {
        "goals": table,
        "machine": common.markdown(speed_page.machine_table(runs)),
        "tables": speed_page.all_tables(previous | latest | long, commands),
    }
    for name, content in parts.items():
        common.write_into(PAGE, f"{name}: made by benchmarks/run.py", content)


def main() -> int:
    """Run what is asked for and write the page."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = arguments.add_mutually_exclusive_group()
    what.add_argument("--only", nargs="+", choices=ALL_SCRIPTS, help="run these again")
    what.add_argument("--long", action="store_true", help="run what takes longer")
    what.add_argument("--page", action="store_true", help="run nothing")
    options = arguments.parse_args()
    failed = []
    if not (options.page or options.long or options.only) and LATEST.exists():
        shutil.rmtree(PREVIOUS, ignore_errors=True)
        LATEST.rename(PREVIOUS)
    if not options.page:
        failed = run(options.only or (LONG_SCRIPTS if options.long else SCRIPTS))
    write_page()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run tests as if on other processors, and print which of them passed where.

python scripts/processors.py            golden, contract and statistical tests; an hour of one core
python scripts/processors.py --short    some of them in two environments, for continuous integration
python scripts/processors.py PATH ...   other files, or arguments of pytest after "--"

An environment tells OpenBLAS, NumPy and faiss to use other kernels, and so to round otherwise. One
that this machine cannot run is named as such and is no failure.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from machine import Settings, as_processor, features  # type: ignore # noqa: E402

CORES = ("Nehalem", "Haswell", "Zen", "SkylakeX")
TESTS = ("tests/golden/test_golden.py", "tests/contracts", "tests/statistical")
SHORT = (
    *("tests/golden/test_golden.py", "tests/contracts/test_tree_privacy.py"),
    *("-k", "artifacts or reloaded or samples or tree_privacy"),
)

# Fails, also by an illegal instruction, where no library follows the settings.
PROBE = """
import os
from pathlib import Path
import faiss, numpy, threadpoolctl
ones = numpy.ones((300, 300), dtype=numpy.float32)
assert (ones @ ones == 300).all() and (ones.astype(float) @ ones == 300).all()
assert (faiss.pairwise_distances(ones, 2 * ones) == 300).all()
blas = [each for each in threadpoolctl.threadpool_info() if each["internal_api"] == "openblas"]
taken = {Path(each["filepath"]).parent.stem: each["architecture"] for each in blas}
print(", ".join(f"{library} {core}" for library, core in sorted(taken.items())), end="")
core = os.environ.get("OPENBLAS_CORETYPE")
raise SystemExit(core is not None and core not in taken.values())
"""


def environments() -> dict[str, Settings | None]:
    """Return the settings of each environment by name; None for those that NumPy lacks."""
    found: dict[str, Settings | None] = {}
    for threads in (1, 2):
        end = "" if threads == 1 else ", two threads"
        found["this processor" + end] = as_processor(threads=threads)
        for core in CORES:
            found[f"OpenBLAS {core}{end}"] = as_processor(core, threads=threads)
    for name in ("AVX-512", "AVX2"):
        found[f"NumPy without {name}"] = as_processor(numpy=name) if features(name) else None
    found["faiss generic"] = as_processor(faiss="generic")
    found["Haswell, no AVX-512, faiss avx2, two threads"] = as_processor(
        "Haswell", "AVX-512", "avx2", threads=2
    )
    found["Nehalem, no AVX2, faiss generic"] = as_processor("Nehalem", "AVX2", "generic")
    return found


def probe(settings: Settings) -> tuple[bool, str]:
    """Return whether this machine can run an environment, and the kernels that it takes, or why."""
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", PROBE],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == -signal.SIGILL:
        return False, "illegal instruction"
    if done.returncode and done.stdout:
        return False, f"OpenBLAS has no such kernels, or not for this processor: {done.stdout}"
    if done.returncode:
        return False, done.stderr.strip().rpartition("\n")[2]
    return True, done.stdout


def run(settings: Settings, tests: list[str]) -> tuple[str, str, list[str]]:
    """Return how many tests passed, how many failed, and which."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {kind: number for number, kind in re.findall(r"(\d+) (\w+)", done.stdout[-200:])}
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode and not failed:
        failed = [f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}"]
    return counts.get("passed", "0"), str(len(failed)), failed


def main() -> int:
    """Run the tests in every environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("tests", nargs="*", default=TESTS)
    arguments = parser.parse_args()
    asked = environments()
    if arguments.short:
        asked = dict(list(asked.items())[-2:])
    tests = [*(SHORT if arguments.short else arguments.tests)]
    print("| environment | kernels of OpenBLAS | passed | failed |\n| --- | --- | ---: | ---: |")
    wrong = {}
    for name, settings in asked.items():
        able, taken = (False, "no such feature to disable") if settings is None else probe(settings)
        if settings is None or not able:
            print(f"| {name} | not possible here: {taken} | | |", flush=True)
            continue
        passed, failed, wrong[name] = run(settings, tests)
        print(f"| {name} | {taken} | {passed} | {failed} |", flush=True)
    for name, failures in wrong.items():
        print("".join(f"\n{name}: {failure}" for failure in failures), end="")
    return int(any(wrong.values()) or not wrong)


if __name__ == "__main__":
    sys.exit(main())

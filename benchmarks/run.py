"""Run every benchmark, one after the other; tables on the terminal, JSON in benchmarks/out."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "startup",
    "map_speed",
    "index_speed",
    "certification",
    "mr_accuracy",
    "webisadb",
    "poincare_training",
)


def main() -> int:
    """Run the scripts; the first failure stops."""
    for name in BENCHMARKS:
        command = [sys.executable, HERE / f"{name}.py", "--json", HERE / "out" / f"{name}.json"]
        subprocess.run(command, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

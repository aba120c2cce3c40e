"""The table of docs/repeated-releases.md is what its script prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "repeated-releases.md").read_text("utf-8")


def lines(text: str, epsilon: int) -> dict[str, list[float]]:
    """Return the percentages of the table's lines for an ε, by the kind of noise."""
    found = re.findall(rf"^\| {epsilon} \| ([^|]+) \|(.*)\|$", text, re.MULTILINE)
    return {name: [float(share) for share in re.findall(r"[\d.]+", row)] for name, row in found}


def test_the_table_is_what_the_script_prints() -> None:
    command = [sys.executable, "-X", "utf8", ROOT / "examples" / "averaging_attack.py"]
    done = subprocess.run(
        [*command, "--epsilon", "6", "--counts", "1", "2", "4"],
        capture_output=True,
        encoding="utf-8",
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed, shown = lines(done.stdout, 6), lines(PAGE, 6)
    assert printed.keys() == shown.keys()
    assert len(shown) == 3
    for name, shares in shown.items():
        # Another processor may round a draw to another word.
        assert printed[name] == pytest.approx(shares[:3], abs=1.0)
    for epsilon in (2, 4, 6):
        fresh, *memoized = lines(PAGE, epsilon).values()
        assert fresh[-1] > fresh[0]
        assert all(len(set(shares)) == 1 for shares in memoized)

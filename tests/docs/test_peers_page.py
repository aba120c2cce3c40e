"""docs/peers.md: its table is what the script makes, and nothing stated here is exceeded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hf_dxprivacy.mechanisms import PEERS
from machine import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "peers.md").read_text("utf-8")


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table without its two head lines."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_peer_is_in_the_table_and_keeps_what_is_stated() -> None:
    table = rows(PAGE)
    assert {f"`{name}`" for name in (*PEERS, "krr")} == {row[0].split(",")[0] for row in table}
    for row in table:
        assert row[6] == "–" or float(row[6]) <= 1
    broken = {row[0].strip("`") for row in table if row[4] == "∞" or float(row[4]) > 1}
    assert broken == {"custext", "syntf", "truncated-gumbel"}


@pytest.mark.slow
def test_the_table_is_what_the_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(ROOT / "benchmarks" / "peer_claims.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made, table = rows(done.stdout), rows(PAGE)
    assert len(made) == len(table)
    for stated, found in zip(table, made, strict=True):
        for a, b in zip(stated, found, strict=True):
            assert a == b or float(a) == pytest.approx(float(b), abs=2e-3)

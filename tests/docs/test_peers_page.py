"""docs/peers.md: its table is what the script makes, and nothing stated here is exceeded."""

import pytest

from hf_dxprivacy.evaluation.peer_candidates import PEERS
from programs import ROOT, run_python, table_rows

PAGE = (ROOT / "docs" / "peers.md").read_text("utf-8")


def test_every_peer_is_in_the_table_and_keeps_what_is_stated() -> None:
    table = table_rows(PAGE)
    assert {f"`{name}`" for name in (*PEERS, "krr")} == {row[0].split(",")[0] for row in table}
    for row in table:
        assert row[6] == "–" or float(row[6]) <= 1
    broken = {row[0].strip("`") for row in table if row[4] == "∞" or float(row[4]) > 1}
    assert broken == {"custext", "syntf", "truncated-gumbel"}


@pytest.mark.slow
def test_the_table_is_what_the_script_makes() -> None:
    made = table_rows(run_python(ROOT / "benchmarks" / "peer_claims.py"))
    table = table_rows(PAGE)
    assert len(made) == len(table)
    for stated, found in zip(table, made, strict=True):
        for a, b in zip(stated, found, strict=True):
            assert a == b or float(a) == pytest.approx(float(b), abs=2e-3)

"""docs/errata.md: its table is what the script makes, and each row breaks what it states."""

import math

import pytest

from programs import ROOT, run_python, table_rows

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "errata.md").read_text("utf-8")


def number(cell: str) -> float:
    return math.inf if "∞" in cell else float(cell.removeprefix("≥ "))


@pytest.fixture(scope="module")
def made() -> list[list[str]]:
    return table_rows(run_python(ROOT / "benchmarks" / "errata.py"))


def test_the_table_is_what_the_script_makes(made: list[list[str]]) -> None:
    """Exact rows to the digits they print; draws with room for another processor's rounding."""
    table = table_rows(PAGE)
    assert len(table) == 16
    for stated, found in zip(table, made, strict=True):
        assert stated[:2] == found[:2]
        assert stated[4] == found[4]
        room = 0.3 if stated[2].startswith("≥") else 0.011
        assert number(stated[2]) == pytest.approx(number(found[2]), abs=room)


def test_every_formula_breaks_what_it_states_and_no_corrected_one(made: list[list[str]]) -> None:
    for row in (*table_rows(PAGE), *made):
        assert number(row[2]) > number(row[3])
        assert "broken" not in row[4]


def test_the_closed_form_of_the_hyperbolic_paper() -> None:
    """Outputs on the line through both centres, for n = 3 and ε = 1: Eq. 7 by invariant volume."""

    def log_density(rho: float) -> float:
        return -rho + 3 * math.log((1 - math.tanh(rho / 2) ** 2) / 2)

    found = log_density(8.0) - log_density(8.0 + 2.0455)
    assert 8.163 <= found <= 4 * 2.0455
    text = " ".join(PAGE.split())
    assert "2.0455, the log-ratio reaches 8.163, where ε·d = 2.0455 and (ε+n)·d = 8.182" in text

"""docs/results/speed.md: how its parts are made from stored results, and that it is up to date."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "speed.md").read_text("utf-8")


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        importlib.import_module("goals")
        yield importlib.import_module("speed_page")


def content(*rows: dict[str, Any], started: str = "2026-01-02", load: float = 0.1) -> Any:
    """Return what a script writes."""
    machine = {"cpu": "one", "cores": 2, "started": started, "load before": load}
    return {"title": "A title", "machine": machine, "rows": list(rows)}


def test_goals_with_their_figures_and_verdicts(benchmarks: ModuleType) -> None:
    fast = benchmarks.Goal("search", "a peer", "s", {"what": "a"}, "x", 100, beside="words/s")
    small = benchmarks.Goal("memory", "", "s", {"what": "b"}, "x", 1.5, "GB", at_most=True)
    other = benchmarks.Goal("other", "", "missing", {}, "x", 1)
    runs = [
        {"s": content({"what": "a", "x": 99.9, "words/s": 1234.5}, {"what": "b", "x": 1.5})},
        {"s": content({"what": "a", "x": 100.0, "words/s": 2000.0}, {"what": "b", "x": 1.49})},
    ]
    met, kept, missing = benchmarks.goals_table([fast, small, other], runs)
    assert met == {
        "what": "search",
        "against": "a peer",
        "goal": "≥ 100 ×",
        "run 1": "99.9 × (1,234 words/s)",
        "run 2": "100 × (2,000 words/s)",
        "": "met once",
    }
    assert (kept["goal"], kept["run 1"], kept[""]) == ("≤ 1.5 GB", "1.5 GB", "met")
    assert (missing["run 1"], missing["run 2"], missing[""]) == ("not measured",) * 2 + ("",)
    assert benchmarks.goals_table([fast], runs[:1])[0][""] == "**missed**"


@pytest.mark.parametrize(
    "rows", [[], [{"what": "a"}], [{"what": "a", "x": 1.0}, {"what": "a", "x": 2.0}]]
)
def test_a_script_without_the_one_row_of_a_goal(
    benchmarks: ModuleType, rows: list[dict[str, Any]]
) -> None:
    goal = benchmarks.Goal("search", "", "s", {"what": "a"}, "x", 1)
    with pytest.raises(LookupError, match=f"s: {len(rows)} rows of .* with 'x'"):
        benchmarks.goals_table([goal], [{"s": content(*rows)}])


def test_facts_of_the_machine_for_each_run(benchmarks: ModuleType) -> None:
    run = {"a": content(started="03:10"), "b": content(started="03:05", load=1.5)}
    (row,) = benchmarks.machine_table([run])
    assert row == {
        "run": 1,
        "started": "03:05",
        "cpu": "one",
        "cores": 2,
        "load before scripts": "0.1, 1.5",
    }


def test_tables_stand_under_their_commands(benchmarks: ModuleType) -> None:
    results = {"b": content({"what": "x", "speed": 12345.6, "n": 12345, "ratio": 1.23456})}
    text = benchmarks.all_tables(results, {"a": "python a.py", "b": "python b.py --quick"})
    assert text == (
        "### A title\n\n    python b.py --quick\n\n"
        "| what | speed | n | ratio |\n| --- | --- | --- | --- |\n"
        "| x | 12,346 | 12,345 | 1.235 |\n"
    )


def test_a_part_of_a_page_is_replaced_and_the_rest_kept(benchmarks: ModuleType) -> None:
    start, end = "<!-- x: made by benchmarks/run.py -->", "<!-- end of x -->"
    page = benchmarks.with_part(f"before\n{start}\nold\n{end}\nafter", "x", "new\n")
    assert page == f"before\n{start}\n\nnew\n\n{end}\nafter"
    assert benchmarks.with_part(page, "x", "new\n") == page
    with pytest.raises(LookupError, match="no part 'y'"):
        benchmarks.with_part(page, "y", "new")


def test_the_page_shows_all_goals(benchmarks: ModuleType) -> None:
    goals = importlib.import_module("goals").GOALS
    table = PAGE.partition("<!-- goals")[2].partition("<!-- end of goals")[0]
    shown = [line.split(" | ")[:3] for line in table.splitlines() if line.startswith("| ")][2:]
    expected = benchmarks.goals_table(goals, [{}])
    assert shown == [[f"| {goal['what']}", goal["against"], goal["goal"]] for goal in expected]


def test_goals_are_of_scripts_that_are_run(benchmarks: ModuleType) -> None:
    goals, run = importlib.import_module("goals").GOALS, importlib.import_module("run")
    assert {goal.script for goal in goals} <= set(run.ALL_SCRIPTS)
    assert set(run.WITH_PAGE) <= set(run.ELSEWHERE) <= set(run.ALL_SCRIPTS)
    scripts = {command.split()[0] for command in run.ALL_SCRIPTS.values()}
    assert not [name for name in scripts if not (ROOT / "benchmarks" / name).exists()]

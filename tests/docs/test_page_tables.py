"""Pages with measured tables: how scripts make them, and that they say what the tables do."""

import importlib
import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "speed.md").read_text("utf-8")
GOAL = "For `laplace` nothing but search and noise should take more than 15 %. The largest of the "


@pytest.fixture(scope="module")
def scripts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield


@pytest.fixture(scope="module")
def benchmarks(scripts: None) -> ModuleType:
    importlib.import_module("goals")
    return importlib.import_module("speed_page")


@pytest.fixture(scope="module")
def sizing(scripts: None) -> ModuleType:
    return importlib.import_module("sizing")


@pytest.fixture(scope="module")
def profile(scripts: None) -> ModuleType:
    return importlib.import_module("profile_map")


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


def test_a_part_of_a_page_is_replaced_and_the_rest_kept(
    benchmarks: ModuleType, tmp_path: Path
) -> None:
    name, page = "x: made by benchmarks/run.py", tmp_path / "page.md"
    start, end = f"<!-- {name} -->", "<!-- end of x -->"
    page.write_text(f"before\n{start}\nold\n{end}\nafter", "utf-8")
    for _ in range(2):
        benchmarks.common.write_into(page, name, "new\n")
        assert page.read_text("utf-8") == f"before\n{start}\n\nnew\n\n{end}\nafter"
    with pytest.raises(SystemExit, match="no place for y"):
        benchmarks.common.write_into(page, "y", "new")


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


def measured(words_a_second: float) -> dict[str, object]:
    figures = {"workers": 2, "start, s": 1.5, "run, s": 10.5, "words/s per core": words_a_second}
    return {"through": "`Dataset.map`", "mechanism": "laplace"} | figures


def test_machines_hours_and_cost(sizing: ModuleType) -> None:
    options = Namespace(machine_cores=10, hours=10.0, price=0.1)
    (line,) = sizing.sizes([measured(1000.0)], options)
    # 10⁹ / 1000 / 3600 = 277.8 hours of a core.
    assert line["10⁹ words"] == "3 × 9.3 h, 27.78"
    assert line["10¹¹ words"] == "278 × 10 h, 2,777.78"
    assert line["10¹³ words"] == "27,778 × 10 h, 277,777.78"
    (line,) = sizing.sizes([measured(100_000.0)], options)
    assert line["10⁹ words"] == "1 × 0.28 h, 0.28"


def row(profile: ModuleType, mechanism: str = "laplace", **shares: float) -> dict[str, Any]:
    stages = {stage: 1.0 for _, _, stage in profile.STAGES} | {profile.REST: 1.0}
    return {"data": "MR", "mechanism": mechanism, "words/s": 1234.5} | stages | shares


def test_the_verdict_names_the_largest_stage_beside_search_and_noise(profile: ModuleType) -> None:
    large = {"search or draws": 60.0, "noise": 20.0}
    rows = [row(profile, **large), row(profile, "calibrated, warm", joining=40.0)]
    rows += [row(profile, joining=15.0) | {"data": "IMDB"}]
    assert profile.verdict(rows) == f"{GOAL}rest is joining on IMDB, 15 %: met."
    rows += [row(profile, splitting=15.1)]
    assert profile.verdict(rows) == f"{GOAL}rest is splitting on MR, 15.1 %: **missed**."


def test_a_stage_does_not_count_what_is_within_it(
    profile: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = profile.Profile()
    readings = iter([0.0, 1.0, 4.0, 5.0])
    monkeypatch.setattr(profile, "time", SimpleNamespace(process_time=readings.__next__))
    with clock.stage("joining"), clock.stage("noise"):
        pass
    shares = clock.row(10)
    assert (shares["noise"], shares["joining"], shares["splitting"]) == (60.0, 40.0, 0.0)
    assert (shares["words/s"], shares["µs/word"]) == (2.0, 500_000.0)


def test_all_stages_are_timed_and_put_back(profile: ModuleType) -> None:
    before = [vars(owner)[name] for owner, name, _ in profile.STAGES]
    texts = ["A film of rare beauty.", "Dull."]
    space = profile.common.EmbeddingSpace.from_pretrained("wordnet-gloss")
    for mechanism, unused in (("laplace", {"new words"}), ("calibrated", set())):
        privatizer = profile.DxPrivatizer(space, mechanism, 8.0)
        seconds = profile.Profile.of(lambda p=privatizer: p({"text": texts})).seconds
        assert {stage for stage, took in seconds.items() if took == 0.0} == unused
    assert [vars(owner)[name] for owner, name, _ in profile.STAGES] == before


def test_the_page_says_what_its_table_does(profile: ModuleType) -> None:
    page = profile.PAGE.read_text("utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    table = [dict(zip(lines[0], cells, strict=False)) for cells in lines[2:]]
    stages = {stage for _, _, stage in profile.STAGES} | {profile.REST}
    rows = [
        line | {stage: float(line[stage]) for stage in stages}
        for line in table
        if line["mechanism"] == "laplace"
    ]
    assert {line["data"] for line in rows} == {name for name, _, _ in profile.DATA}
    assert profile.verdict(rows) in page


def test_a_measured_profile_is_put_on_its_page(
    profile: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = {"machine": {"cpu": "one"}, "rows": [row(profile)]}
    after = rendered(profile, results, tmp_path, monkeypatch)
    assert "Measured (cpu one):" in after
    assert "| MR | laplace | 1,234 |" in after
    assert GOAL in after


def test_measured_sizes_are_put_on_their_page(
    sizing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = {"machine": {"cpu": r"one \1"}, "rows": [measured(1234.5)]}
    more = ["--machine-cores", "64", "--hours", "24", "--price", "0.25"]
    after = rendered(sizing, results, tmp_path, monkeypatch, *more)
    assert r"Measured (cpu one \1):" in after
    assert "| `Dataset.map` | laplace | 2 | 1.5 | 10.5 | 1,234 |" in after
    assert "at 0.25 for an hour of a core" in after


def rendered(
    script: ModuleType,
    results: dict[str, Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *more: str,
) -> str:
    """Put results on a copy of a script's page, and check that the rest of the page is kept."""
    page, measured = folder / "page.md", folder / "results.json"
    before = script.PAGE.read_text("utf-8")
    page.write_text(before, "utf-8")
    measured.write_text(json.dumps(results))
    monkeypatch.setattr(script, "PAGE", page)
    monkeypatch.setattr(sys, "argv", [script.__name__, "--page", str(measured), *more])
    script.main()
    after = page.read_text("utf-8")
    assert after.startswith(before.split("made by benchmarks")[0])
    assert after.endswith(before.rpartition("<!-- end of ")[2])
    script.main()
    assert page.read_text("utf-8") == after
    return after

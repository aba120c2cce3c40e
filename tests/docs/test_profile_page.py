"""docs/results/profile.md: how it is made from stored results, and that it is up to date."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOAL = "For `laplace` nothing but search and noise should take more than 15 %. The largest of the "


@pytest.fixture(scope="module")
def profile() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("profile_map")


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


def test_the_page_has_the_table_and_the_verdict(
    profile: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, measured = tmp_path / "profile.md", tmp_path / "profile.json"
    before = profile.PAGE.read_text("utf-8")
    page.write_text(before, "utf-8")
    measured.write_text(json.dumps({"machine": {"cpu": "one"}, "rows": [row(profile)]}))
    monkeypatch.setattr(profile, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["profile_map.py", "--page", str(measured)])
    profile.main()
    after = page.read_text("utf-8")
    assert "Measured (cpu one):" in after
    assert "| MR | laplace | 1,234 |" in after
    assert GOAL in after
    assert after.startswith(before.split("<!-- profile:")[0])
    assert after.endswith(before.split("<!-- end of profile -->")[1])


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

"""The verb compare, as it is called from a shell; its page in a browser."""

import csv
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
from chromium import open_browser, requests_of, scrolls_sideways

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.evaluation.scores import create_learner
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a space and texts, whose words tell label and author."""
    # Anew, since other tests may have worked out levels for the space that they share.
    space = EmbeddingSpace.from_vectors(euclidean_space.words, euclidean_space.vectors)
    space.build_hierarchy("average", False).save_pretrained(tmp_path / "space")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["text", "stars", "who"])
        for row in range(120):
            words = rng.choice(euclidean_space.words[40 * (row % 3) :][:60], 10)
            out.writerow([" ".join(words), "01"[row % 3 == 0], f"user {row % 3}"])
        out.writerow(["", "1", "user 0"])
        out.writerow(["waaa waab 😀 né", "", ""])
    return tmp_path


BASE = ("--space", "space", "--quick", "--pool", "none", "--seed", "1")
COLUMNS = ("--label-column", "stars", "--user-column", "who")
LAWS = ("--mechanism", "hierarchical", "--mechanism", "krr", "--epsilon", "1", "3", "6")


def compare(*arguments: str) -> int:
    return main(["compare", "in.csv", *BASE, *arguments])


@pytest.mark.parametrize("file", ["in.parquet", "in.jsonl"])
def test_labels_that_are_not_a_number_are_missing(folder: Path, file: str) -> None:
    rows = [
        {"text": text, "stars": math.nan if k % 3 == 0 else float(k % 2)}
        for k, text in enumerate(pd.read_csv("in.csv")["text"][:60])
    ]
    if file == "in.parquet":
        # Not by pandas, which writes them as missing.
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    args = [*("compare", file, *BASE), *("--label-column", "stars", "--mechanism", "krr")]
    assert main([*args, "--epsilon", "3", "--output", "out.json"]) == 0
    content = json.loads(Path("out.json").read_text("utf-8"))
    assert "20 rows without a label left out of the accuracy" in content["notes"]
    assert any(line.startswith("2 classes;") for line in content["about"])


def test_the_answer_is_printed_and_the_same_in_every_format(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("out.md", "out.json", "out.csv", "out.parquet"):
        assert compare(*COLUMNS, *LAWS, "--resume", "kept", "--output", name) == 0
    printed = capsys.readouterr().out
    headline = printed.splitlines()[0]
    learned_nothing, answer = headline.split(": its accuracy on releases says nothing. ")
    assert learned_nothing == "The classifier learns nothing from the originals"
    assert answer.startswith("At the same success of the author attack, ")
    assert "1 row without text left out" in printed
    assert "1 row without a label left out of the accuracy" in printed
    content = json.loads(Path("out.json").read_text("utf-8"))
    assert content["headline"] == headline
    assert headline in Path("out.md").read_text("utf-8")
    tables = [pd.read_csv("out.csv"), pd.read_parquet("out.parquet")]
    for table in tables:
        assert table["mechanism"].tolist() == ["none", *["hierarchical"] * 3, *["krr"] * 3]
        values = [row["figures"]["trained"][0] for row in content["rows"]]
        assert table["trained"].tolist() == pytest.approx(values)
    assert sorted(os.listdir()) == [
        *("in.csv", "kept", "out.csv", "out.json", "out.md", "out.parquet", "space")
    ]  # fmt: skip
    assert compare(*COLUMNS, *LAWS, "--output", "out.md") == 2
    assert "exists already" in capsys.readouterr().err


def test_epsilons_and_mechanisms_are_chosen_without_being_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare() == 0
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    named = [line[0] for line in lines if line and line[0] in ("hierarchical", "tem", "krr")]
    assert [named.count(name) for name in ("tem", "krr")] == [4, 4]
    assert named.count("hierarchical") >= 2
    assert "calibrated is left out: the space has no stored levels" in printed
    assert "laplace is left out by --quick" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--text-column", "texts"], 1, "there is no column 'texts'"),
        (["--label-column", "star"], 1, "did you mean 'stars'?"),
        (["--output", "out.txt"], 2, "ends in .md, .json, .csv, .parquet"),
        (["--output", "a.md", "--report", "a.md"], 2, "are the same file"),
        (["--output", "./in.csv", "--overwrite"], 2, "in.csv is read, and never overwritten; name"),
        (["--mechanism", "tems"], 2, "did you mean 'tem'?"),
        (["--epsilon", "0"], 2, "finite number above zero"),
        (["--sample", "0"], 2, "whole number >= 1"),
        (["--pool", "nowhere"], 1, "nowhere"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    reason: str,
) -> None:
    before = sorted(os.listdir())
    base = [word for word in BASE if word not in ("--pool", "none")]
    assert main(["compare", "in.csv", *base, *arguments]) == code
    errors = capsys.readouterr().err
    assert reason in errors
    assert "waaa" not in errors
    assert sorted(os.listdir()) == before


@pytest.mark.cluster
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_stands_alone_and_fits_the_window(folder: Path, width: int) -> None:
    assert compare(*COLUMNS, *LAWS, "--report", "out.html") == 0
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": 800})
        requests = requests_of(page)
        page.goto((folder / "out.html").as_uri())
        assert not scrolls_sideways(page)
        table = page.locator("table.short")
        assert table.bounding_box()["width"] <= width  # type: ignore[index]
        assert page.locator("figure img").count() == 3
        for picture in page.locator("figure img").all():
            assert picture.evaluate("image => image.naturalWidth") > 0
        page.get_by_text("All columns").click()
        assert page.locator("table.full tbody tr").count() == 7
        assert not scrolls_sideways(page)
        assert all(address.startswith(("file:", "data:")) for address in requests)


def test_models_trained_on_originals_and_on_releases_are_two() -> None:
    space = EmbeddingSpace.from_vectors(["a", "b"], [[0.0, 1.0], [1.0, 0.0]])
    learner = create_learner(str(tiny_models.minilm()), space, classes=2, seed=3)
    assert learner.make() is not learner.make()

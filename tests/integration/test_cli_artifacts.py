"""The verbs convert and card: what they make, and what they refuse."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector


@pytest.fixture
def folder(
    tmp_path: Path, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Work in a folder with a file of vectors."""
    lines = (
        f"{word} {' '.join(map(str, vector))}\n"
        for word, vector in zip(euclidean_space.words, euclidean_space.vectors, strict=True)
    )
    with gzip.open(tmp_path / "vectors.txt.gz", "wt") as file:
        file.writelines(lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_vectors_become_a_space(
    folder: Path, euclidean_space: EmbeddingSpace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "vectors.txt.gz", "--output", "new/space", "--license", "mit"]) == 0
    space = EmbeddingSpace.from_pretrained(folder / "new" / "space")
    assert space.words == euclidean_space.words
    np.testing.assert_array_equal(space.vectors, euclidean_space.vectors)
    assert space.provenance["licence"] == "mit"
    card = (folder / "new" / "space" / "README.md").read_text()
    assert "license: mit\n" in card
    assert "500 words x 8 dimensions" in capsys.readouterr().err
    assert sorted(path.name for path in (folder / "new").iterdir()) == ["space"]


def test_limit_unit_step_and_source(folder: Path) -> None:
    arguments = ["--limit", "100", "--unit-step", "--source", "made for a test"]
    assert main(["convert", "vectors.txt.gz", "--output", "space", *arguments]) == 0
    space = EmbeddingSpace.from_pretrained(folder / "space")
    assert len(space) == 100
    assert space.neighbour_distances((1,))[1] == pytest.approx(1.0, rel=1e-6)
    assert space.provenance["source"] == "made for a test"


def test_points_of_a_ball(folder: Path) -> None:
    Path("ball.txt").write_text("a 0.1 0.2\nb -0.9 0.1\n")
    assert main(["convert", "ball.txt", "--output", "ball", "--metric", "poincare"]) == 0
    assert EmbeddingSpace.from_pretrained(folder / "ball").metric == "poincare"
    Path("outside.txt").write_text("a 0.1 0.2\nb -1.9 0.1\n")
    assert main(["convert", "outside.txt", "--output", "out", "--metric", "poincare"]) == 1
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, ["--output", "full"], "full exists and holds no space"),
        (2, ["--output", "old"], "old holds a space already"),
        (2, ["--output", "new", "--license", "mitt"], "'mitt'"),
        (2, ["--output", "new", "--limit", "0"], "expected a whole number >= 1"),
        (2, [], "required: --output"),
    ],
)
def test_wrong_usage_of_convert(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    code: int,
    arguments: list[str],
    message: str,
) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").touch()
    EmbeddingSpace.from_vectors(["a"], [[1.0]]).save_pretrained("old")
    assert main(["convert", "vectors.txt.gz", *arguments]) == code
    assert message in capsys.readouterr().err
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a 1 2\nb 1\n", "line 2"),
        ("a 1 2\nb 1 x\n", "line 2"),
        ("a 1 2\na 1 3\n", "already on line 1"),
    ],
)
def test_malformed_vectors_leave_no_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (folder / "bad.txt").write_text(content)
    assert main(["convert", "bad.txt", "--output", "space"]) == 1
    assert message in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"bad.txt", "vectors.txt.gz"}


def test_an_old_space_is_replaced_when_asked(folder: Path) -> None:
    EmbeddingSpace.from_vectors(["a"], [[1.0]]).save_pretrained("space")
    assert main(["convert", "vectors.txt.gz", "--output", "space", "--overwrite"]) == 0
    assert len(EmbeddingSpace.from_pretrained(folder / "space")) == 500


def test_a_card_is_made_anew_and_the_vectors_stay(folder: Path) -> None:
    assert main(["convert", "vectors.txt.gz", "--output", "space"]) == 0
    vectors = folder / "space" / "vectors.safetensors"
    before = vectors.stat()
    config = json.loads((folder / "space" / "config.json").read_text())
    (folder / "space" / "README.md").write_text("stale")
    assert main(["card", "space", "--license", "cc0-1.0"]) == 0
    card = (folder / "space" / "README.md").read_text()
    assert "license: cc0-1.0\n" in card
    assert "stale" not in card
    assert (vectors.stat().st_ino, vectors.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )
    assert json.loads((folder / "space" / "config.json").read_text()) == config


def test_cards_of_privatizers_and_selectors(folder: Path) -> None:
    assert main(["convert", "vectors.txt.gz", "--output", "space"]) == 0
    plain = DxPrivatizer("./space", "tem", 2.0)
    plain.save_pretrained("plain")
    SlotPrivatizer("./space", "tem", 2.0, selector=ContentWordSelector()).save_pretrained("slots")
    LowTransitionSelector.fit(
        ["waab waac"] * 50, epsilon=None, alphabet=plain.space
    ).save_pretrained("selector")
    for name in ("plain", "slots", "selector"):
        (folder / name / "README.md").write_text("stale")
        assert main(["card", name, "--license", "mit"]) == 0
        assert "license: mit\n" in (folder / name / "README.md").read_text()


@pytest.mark.parametrize("folder_name", ["nowhere", "empty"])
def test_a_card_needs_something_saved(
    folder: Path, capsys: pytest.CaptureFixture[str], folder_name: str
) -> None:
    (folder / "empty").mkdir()
    assert main(["card", folder_name]) == 1
    assert "expected" in capsys.readouterr().err

"""The verb that builds and shows trees."""

from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vectors = np.random.default_rng(0).normal(size=(30, 4))
    EmbeddingSpace.from_vectors([f"w{k}" for k in range(30)], vectors).save_pretrained(
        tmp_path / "space"
    )
    return tmp_path / "space"


def test_a_tree_is_built_in_place_and_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hierarchy", str(folder), "--method", "ward", "--show", "w3"]) == 0
    printed = capsys.readouterr().out
    assert "30 words in 29 clusters (ward linkage)" in printed
    assert "\n  w3\n" in printed
    loaded = EmbeddingSpace.from_pretrained(folder)
    assert loaded.hierarchy is not None
    assert main(["hierarchy", str(folder)]) == 0
    assert "smallest cluster with 10 other words" in capsys.readouterr().out


def test_a_tree_is_saved_elsewhere(folder: Path, tmp_path: Path) -> None:
    grown = tmp_path / "grown"
    assert main(["hierarchy", str(folder), "--method", "average", "--output", str(grown)]) == 0
    assert EmbeddingSpace.from_pretrained(folder).hierarchy is None
    assert EmbeddingSpace.from_pretrained(grown).hierarchy is not None


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 1, "the space has no tree; build one with --method average"),
        (["--output", "elsewhere"], 2, "--output is for a tree that is built"),
        (["--method", "average", "--show", "missing"], 1, "the space lacks a word to --show"),
    ],
)
def test_wrong_use_is_explained(
    folder: Path,
    options: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["hierarchy", str(folder), *options]) == code
    assert message in capsys.readouterr().err


def test_a_built_in_space_needs_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hierarchy", "wordnet-gloss", "--method", "ward"]) == 2
    assert "is no local folder; give --output FOLDER too" in capsys.readouterr().err


def test_convert_builds_a_tree(tmp_path: Path) -> None:
    lines = [f"w{k} {np.cos(k):.4f} {np.sin(k):.4f}" for k in range(20)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    arguments = [str(tmp_path / "vectors.txt"), "--output", str(tmp_path / "space")]
    assert main(["convert", *arguments, "--hierarchy"]) == 0
    tree = EmbeddingSpace.from_pretrained(tmp_path / "space").hierarchy
    assert tree is not None
    assert tree.method == "average linkage"

"""The spaces in artifacts/: complete, small, without slurs, and not part of the package."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.text.slurs import is_slur

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in (ROOT / "artifacts").iterdir() if path.is_dir())

BUILD = """
import sys
from setuptools import build_meta
out = sys.argv[1]
build_meta.build_wheel(out)
build_meta.build_sdist(out)
"""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_folder_is_complete(folder: Path, tmp_path: Path) -> None:
    space = EmbeddingSpace.from_pretrained(folder)
    assert space.hierarchy is not None
    assert not any(map(is_slur, space.words))
    assert space.unit_distance == pytest.approx(1.0, rel=1e-6)
    assert space.provenance["licence"] == "cc-by-nc-4.0"
    licence = (folder / "LICENSE").read_text("utf-8")
    for phrase in ("CC BY-NC 4.0", "Roller", "hearst_counts.txt.gz", "Changes:", "WordNet"):
        assert phrase in licence
    # The card is that of what is stored, and so are its figures.
    shutil.copytree(folder, tmp_path / folder.name)
    EmbeddingSpace.from_pretrained(tmp_path / folder.name).write_card(tmp_path / folder.name)
    card = (folder / "README.md").read_text("utf-8")
    assert card == (tmp_path / folder.name / "README.md").read_text("utf-8")
    assert "\nlicense: cc-by-nc-4.0\n" in card
    assert "privacy.png" in card
    assert "What the mechanisms do to the words" in card


def test_together_they_stay_small() -> None:
    sizes = [path.stat().st_size for path in (ROOT / "artifacts").rglob("*") if path.is_file()]
    assert max(sizes) <= 10_000_000
    assert sum(sizes) <= 12_000_000


def test_the_trained_space_does_what_its_card_says() -> None:
    space = EmbeddingSpace.from_pretrained(ROOT / "artifacts" / "hearst-poincare")
    recorded = json.loads((ROOT / "artifacts/hearst-poincare/config.json").read_text("utf-8"))
    assert recorded["provenance"]["counts"]["counted_pairs"] == 431_684
    for word, near in (("toyota", "carmaker"), ("uganda", "country"), ("soup", "dish")):
        assert near in dict(space.neighbours(word, 10))
    privatizer = DxPrivatizer(space, "hierarchical", 2.0, seed=1 << 100)
    words = privatizer.privatize(" ".join(["toyota"] * 400)).split()
    assert 0.1 < words.count("toyota") / 400 < 0.95


@pytest.mark.slow
def test_no_artifact_is_in_the_package(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    copied = ["hf_dxprivacy", "artifacts", "pyproject.toml", "README.md", "LICENSE"]
    for name in copied:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, tmp_path / "src" / name)
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", BUILD, str(out)]
    done = subprocess.run(command, cwd=tmp_path / "src", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(source) as archive:
        for names in (packed.namelist(), archive.getnames()):
            assert any("builtin/wordnet-poincare/vectors" in name for name in names)
            assert not any("hearst" in name for name in names)

"""The cards in model_cards/: rendered from what ships, with pictures of the same figures."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from hf_dxprivacy.sentences import builtin_pools
from hf_dxprivacy.spaces import builtin_names
from hub_server.cards import check_card
from machine import PATIENCE

ROOT = Path(__file__).parents[2]
CARDS = ROOT / "model_cards"
SCRIPT = Path("scripts", "render_model_cards.py")


def check(root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-X", "utf8", root / SCRIPT, "--check"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def test_cards_are_of_spaces_that_ship() -> None:
    assert sorted(card.stem for card in CARDS.glob("*.md")) == sorted(
        (*builtin_names(), *builtin_pools())
    )


def test_cards_are_what_the_script_renders() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy what the script reads."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    shutil.copytree(CARDS, tmp_path / "model_cards")
    for name in builtin_names():
        folder = tmp_path / "hf_dxprivacy" / "builtin" / name
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "hf_dxprivacy" / "builtin" / name / "config.json", folder)
    for name in builtin_pools():
        pool = Path("hf_dxprivacy", "builtin", name)
        shutil.copytree(ROOT / pool, tmp_path / pool)
    return tmp_path


def test_the_check_finds_a_card_that_was_edited(copied: Path) -> None:
    assert check(copied).returncode == 0
    card = copied / "model_cards" / "wordnet-gloss.md"
    card.write_text(card.read_text("utf-8").replace("24,980 words", "26,000 words"), "utf-8")
    done = check(copied)
    assert done.returncode == 1
    assert done.stderr == "model_cards/wordnet-gloss: run scripts/render_model_cards.py\n"


def test_the_check_finds_a_picture_of_other_figures(copied: Path) -> None:
    pictures = copied / "model_cards"
    shutil.copy(pictures / "wordnet-gloss.png", pictures / "wordnet-poincare.png")
    done = check(copied)
    assert done.returncode == 1
    assert done.stderr == "model_cards/wordnet-poincare: run scripts/render_model_cards.py\n"


def test_the_built_in_pool_has_a_card_that_the_hub_takes() -> None:
    card = (CARDS / "wordnet-sentences.md").read_text("utf-8")
    assert check_card(card) == ([], [])
    assert "license_name: wordnet\n" in card
    for told in ("11,695 public sentences", "| cosine to the nearest sentence |", "`english`"):
        assert told in card


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_space_has_a_card_that_the_hub_takes(name: str) -> None:
    card = (CARDS / f"{name}.md").read_text("utf-8")
    assert check_card(card) == ([], [])
    licence = "license: pddl\n" if name == "english" else "license_name: wordnet\n"
    assert licence in card
    assert "language: en\n" in card
    assert "`calibrated` is not among them" not in card
    (picture,) = re.findall(r"^!\[[^\]]+\]\((.*)\)$", card, re.MULTILINE)
    with Image.open(CARDS / picture) as image:
        assert image.size == (1000, 420)
    # Seven mechanisms take some more than five did.
    assert (CARDS / picture).stat().st_size < 120_000

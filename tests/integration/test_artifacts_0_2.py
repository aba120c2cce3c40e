"""Artifacts that version 0.2 wrote load, with all their parts, and release what they released.

The files below `tests/fixtures/artifacts-0.2` are as that version wrote them, without cards; the
folder of their space reads SPACE. Whatever a later version writes, these must stay readable.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.mechanisms import CalibratedExponential
from hf_dxprivacy.slots import LowTransitionSelector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "artifacts-0.2"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
SEED = 7
TEXTS = EXPECTED["texts"]


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """A copy, in which privatizers refer to the copied space."""
    folder = Path(shutil.copytree(FIXTURES, tmp_path / "artifacts"))
    for path in folder.rglob("privatizer.json"):
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["space"]["name"] = str(folder / "space")
        path.write_text(json.dumps(settings), encoding="utf-8")
    return folder


def test_a_space_with_index_and_lists(artifacts: Path) -> None:
    space = EmbeddingSpace.from_pretrained(artifacts / "space", index="ivf", neighbour_lists=True)
    assert len(space) == 60
    assert space.words[:6] == ("play", "on", "book", "for", "two", "waaa")
    assert [word for word, _ in space.neighbours("waac", 4)] == EXPECTED["neighbours"]
    assert space.neighbour_lists is not None
    for name, options in EXPECTED["options"].items():
        made = DxPrivatizer(space, seed=SEED, **options)
        assert made.privatize(TEXTS) == EXPECTED["space"][name], name


def test_a_poincare_space(artifacts: Path) -> None:
    space = EmbeddingSpace.from_pretrained(artifacts / "ball")
    assert (space.metric, space.scale, space.dim) == ("poincare", 2.0, 3)
    made = DxPrivatizer(space, "calibrated", 2.0, seed=SEED)
    assert made.privatize(TEXTS) == EXPECTED["ball"]


def test_privacy_levels_without_a_digest_are_computed_anew(artifacts: Path) -> None:
    file = artifacts / "space" / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    levels = config["certificates"]["beta=0.001"]
    honest = np.array(list(levels.values()))
    levels |= {step: 1.25 * level for step, level in levels.items()}
    file.write_text(json.dumps(config), encoding="utf-8")
    space = EmbeddingSpace.from_pretrained(artifacts / "space")
    level = CalibratedExponential(space, 2.0).exact_epsilon()
    # It is rounded upward to seven digits now.
    assert np.abs(honest - level).min() < 2e-6


@pytest.mark.parametrize("name", ["privatizer", "privatizer-index"])
def test_a_privatizer(artifacts: Path, name: str) -> None:
    made = DxPrivatizer.from_pretrained(artifacts / name, seed=SEED)
    assert made({"text": TEXTS}) == EXPECTED[name]


def test_a_selector(artifacts: Path) -> None:
    selector = LowTransitionSelector.from_pretrained(artifacts / "selector")
    space = EmbeddingSpace.from_pretrained(artifacts / "space")
    made = SlotPrivatizer(space, "tem", 2.0, selector=selector, mask_column="mask", seed=SEED)
    assert made({"text": TEXTS}) == EXPECTED["selector"]


def test_a_privatizer_of_slots(artifacts: Path) -> None:
    made = SlotPrivatizer.from_pretrained(artifacts / "slots", seed=SEED)
    assert made({"text": TEXTS}) == EXPECTED["slots"]

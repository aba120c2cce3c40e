"""docs/slots.md: what is found in SNIPS, and the sentences with their slots."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector
from hf_dxprivacy.slots.ngram_release import ReleaseConfig
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

PAGE = (Path(__file__).parents[2] / "docs" / "slots.md").read_text("utf-8")
RESULTS = (Path(__file__).parents[2] / "docs" / "results" / "slots.md").read_text("utf-8")
VIEWS: list[dict[str, Any]] = [{"threshold": 0.01}, {"threshold": 0.05}, {"mode": "coverage"}]


def _table() -> dict[str, list[float]]:
    """The six figures of each ε_g."""
    rows = re.findall(r"^\| (\S+) \| [\d,]+ \|((?: \d\.\d+ \|){6})$", PAGE, re.MULTILINE)
    return {epsilon: [float(cell) for cell in cells.split("|")[:-1]] for epsilon, cells in rows}


@pytest.fixture(scope="module")
def alphabet() -> tuple[str, ...]:
    return EmbeddingSpace.from_pretrained("wordnet-gloss").words[:5000]


@pytest.fixture(scope="module")
def snips(data: Path) -> tuple[list[list[str]], NDArray[np.bool_]]:
    reader, words, tags = RowReader(), [], []
    with gzip.open(data / "slots" / "snips.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            example = json.loads(line)
            row = reader.read(example["tokens"])
            assert row is not None
            words.append(row.words)
            tags += [example["slot_tags"][position] != "O" for position in row.positions]
    return words, np.array(tags)


@pytest.mark.realdata
@pytest.mark.parametrize("epsilon", _table())
def test_the_figures_are_those_of_a_release(
    snips: tuple[list[list[str]], NDArray[np.bool_]], alphabet: tuple[str, ...], epsilon: str
) -> None:
    """Exact counts to the last digit, a release with room for its noise."""
    words, tags = snips
    private = None if epsilon == "none" else float(epsilon)
    selector = LowTransitionSelector.fit(words, epsilon=private, alphabet=alphabet)
    measured = []
    for view in VIEWS:
        found = np.concatenate([m for m in selector.replace(**view).masks(words) if m is not None])
        right = (found & tags).sum()
        measured += [right / found.sum(), right / tags.sum()]
    assert measured == pytest.approx(_table()[epsilon], abs=0.0006 if private is None else 0.06)


@pytest.mark.realdata
def test_the_sentences_have_their_slots(
    snips: tuple[list[list[str]], NDArray[np.bool_]], alphabet: tuple[str, ...]
) -> None:
    exact = LowTransitionSelector.fit(snips[0], epsilon=None, alphabet=alphabet)
    part = PAGE[PAGE.index("With exact counts") : PAGE.index("With one release")]
    listed = [line.split() for line in re.findall(r"^- (.*)$", part, re.MULTILINE)]
    assert len(listed) == 5
    for words, mask in zip(
        listed, exact.masks([[w.strip("*") for w in words] for words in listed]), strict=True
    ):
        assert mask is not None
        assert [word.startswith("**") for word in words] == mask.tolist()


def test_the_least_count_is_that_of_the_defaults() -> None:
    config = ReleaseConfig(1.0, 3, 12, 20)
    (stated,) = re.findall(r"more than (\d+)/ε_g times", PAGE)
    assert int(stated) == round(float(config.threshold(config.scale(1 / 3), 5000)))


def _held_back(selector: str, commands: str, epsilon: str) -> tuple[float, float]:
    (row,) = re.findall(
        rf"^\| {commands} \| {epsilon} ?\| {selector} \| (\S+) \| (\S+) \|$", RESULTS, re.MULTILINE
    )
    return float(row[0]), float(row[1])


@pytest.mark.realdata
def test_stop_words_are_shown_beside_low_transitions(data: Path, alphabet: tuple[str, ...]) -> None:
    """The list to the last digit, releases with room for their noise."""
    parts: dict[str, list[list[str]]] = {"train": [], "test": []}
    tags, reader = [], RowReader()
    with gzip.open(data / "slots" / "snips.jsonl.gz", "rt", encoding="utf-8") as lines:
        for example in map(json.loads, lines):
            row = reader.read(example["tokens"])
            assert row is not None
            if example["split"] in parts:
                parts[example["split"]].append(row.words)
            if example["split"] == "test":
                tags += [example["slot_tags"][position] != "O" for position in row.positions]
    low = LowTransitionSelector.fit(parts["train"], epsilon=1.0, alphabet=alphabet)
    content = ContentWordSelector()
    for selector, stated, tolerance in (
        (content, _held_back("stop words", "none", ""), 0.0006),
        (low, _held_back("low transitions", "13,084", "1"), 0.06),
        (low & content, _held_back("both", "13,084", "1"), 0.06),
        (low | content, _held_back("either", "13,084", "1"), 0.06),
    ):
        found = np.concatenate([m for m in selector.masks(parts["test"]) if m is not None])
        right = (found & np.array(tags)).sum()
        assert (right / found.sum(), right / sum(tags)) == pytest.approx(stated, abs=tolerance)
        assert f"| {stated[0]:.3f} | {stated[1]:.3f} |" in PAGE

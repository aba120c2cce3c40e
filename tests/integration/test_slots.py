"""Selectors of slots in `Dataset.map`, and on the Hub."""

from typing import Any

import pytest
from datasets import Dataset

from hf_dxprivacy.hub import fetch
from hf_dxprivacy.slots import LowTransitionSelector, spans
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hub_server import HubServer

TEXTS = [f"play artist{i} on service{i}" for i in range(50)]


@pytest.fixture(scope="module")
def selector() -> LowTransitionSelector:
    return LowTransitionSelector.fit(TEXTS, epsilon=None, alphabet=["play", "on"])


def test_a_selector_goes_to_the_hub_and_back(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, selector: LowTransitionSelector
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    first = selector.push_to_hub("me/selector", license="mit")
    selector.replace(mode="coverage").push_to_hub("me/selector", license="mit")
    assert LowTransitionSelector.from_pretrained("me/selector").mode == "coverage"
    loaded = LowTransitionSelector.from_pretrained("me/selector", revision=first.oid)
    assert loaded.mode == "transition"
    assert loaded.grams.words == selector.grams.words
    assert (loaded.grams.count == selector.grams.count).all()


def test_a_privatizer_brings_its_selector_from_the_hub(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, selector: LowTransitionSelector
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    made = SlotPrivatizer("wordnet-gloss", "tem", 8.0, selector=selector, seed=1)
    made.push_to_hub("me/slots", license="mit")
    loaded = SlotPrivatizer.from_pretrained("me/slots", seed=1)
    assert isinstance(loaded.selector, LowTransitionSelector)
    assert loaded({"text": TEXTS}) == made({"text": TEXTS})
    folder, commit = fetch("me/slots", ("selector/0/selector.json", "privatizer.json"))
    assert (folder / "privatizer.json").is_file()
    assert len(commit.sha) == 40


class Spans:
    """Writes down the slots of each row."""

    def __init__(self, selector: LowTransitionSelector) -> None:
        self._selector = selector

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Add the column "spans"."""
        masks = self._selector.masks([text.split() for text in batch["text"]], batch)
        return {"spans": [None if mask is None else spans(mask) for mask in masks]}


@pytest.mark.parametrize("workers", [None, 2])
def test_a_selector_maps_with_workers_and_keeps_its_fingerprint(
    selector: LowTransitionSelector, workers: int | None
) -> None:
    data = Dataset.from_dict({"text": TEXTS})
    mapped = data.map(Spans(selector), batched=True, batch_size=7, num_proc=workers)
    assert all(row == [[1, 2], [3, 4]] for row in mapped["spans"])
    again = data.map(Spans(selector), batched=True, batch_size=7, num_proc=workers)
    assert again._fingerprint == mapped._fingerprint

"""The examples about slots, run as a user runs them, on rows made here."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_tagger
from example_runs import help_of, run_here, write

from hub_server import HubServer

pytestmark = pytest.mark.slow

NAMES = {"doctor": "PER", "fox": "PER", "hospital": "LOC"}


def shares(line: str) -> list[float]:
    return [float(share) for share in re.findall(r"([\d.]+)%", line)]


@pytest.mark.parametrize("name", ["intent_slots.py", "finetune_ner_slots.py"])
def test_help(name: str) -> None:
    assert "--epsilon" in help_of(name)


def test_intents_of_commands(tmp_path: Path) -> None:
    carriers = {"PlayMusic": "play {} on radio", "GetWeather": "is it cold in {} today"}
    slots = ["jazz", "rock", "paris", "london", "blues"]
    rows: list[dict[str, object]] = []
    for at in range(50):
        intent = list(carriers)[at % 2]
        tokens = carriers[intent].format(slots[at % 5]).split()
        tags = ["B-slot" if token in slots else "O" for token in tokens]
        split = "test" if at < 10 else "train"
        rows.append({"tokens": tokens, "slot_tags": tags, "intent": intent, "split": split})
    data = write(tmp_path / "rows.jsonl", rows)
    output = run_here(
        "intent_slots.py", "--data", data, "--mechanism", "tem", "--epsilon", 0.01, 999
    )
    lines = [shares(line) for line in output.splitlines() if line.startswith("|")][2:]
    plain, slots_noisy, every_noisy, slots_plain, every_plain = lines
    assert plain == slots_plain == every_plain == [100.0, 100.0]
    # Intents are in the carriers alone, which only the perturbation of every word destroys.
    assert slots_noisy[0] == 100.0
    assert slots_noisy[1] <= 30.0
    assert every_noisy[0] < 100.0
    assert "is it cold in rock today" in output


@pytest.mark.skipif(find_spec("accelerate") is None, reason="Trainer needs accelerate")
def test_names_of_sentences(tmp_path: Path, hub: HubServer) -> None:
    tiny_tagger.save(tmp_path / "model", {})
    carriers = ["the {} thank the {}", "a {} reads in the {}", "don't panic the {} , {} !"]
    words = ["doctor", "fox", "hospital", "guide", "dog"]
    rows: list[dict[str, object]] = []
    for at in range(60):
        tokens = carriers[at % 3].format(words[at % 5], words[at % 4]).split()
        tags = [f"B-{NAMES[token]}" if token in NAMES else "O" for token in tokens]
        split = "validation" if at < 10 else "train"
        rows.append({"tokens": tokens, "ner_tags": tags, "split": split})
    output = run_here(
        "finetune_ner_slots.py",
        *("--data", write(tmp_path / "rows.jsonl", rows), "--model", tmp_path / "model"),
        *("--epochs", 20, "--learning_rate", 0.01, "--batch_size", 8, "--mechanism", "tem"),
        *("--epsilon", 0.01, 50, "--output", tmp_path / "out", "--push_to_hub", "me/tagger"),
        HF_TOKEN=hub.token,
    )
    (f1,) = re.findall(r"F1 of whole names on 10 sentences: ([\d.]+)", output)
    assert float(f1) > 0.9
    lines = [shares(line) for line in output.splitlines() if line.startswith("|")][3:]
    (low, missed, _), (high, *_) = lines
    assert missed <= 10.0
    assert low <= missed + 10.0
    assert high == 100.0
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(
        hub.repo("me/tagger").files()
    )

"""The short examples: map, chats, Trainer, run as a user runs them, on rows made here."""

import csv
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_models
from datasets import load_from_disk
from example_runs import EXAMPLES, run, run_here, write

pytestmark = pytest.mark.slow

SHORT = ("map_dataset.py", "privatize_chats.py", "train_classifier.py")
GUARANTEE = "ε·d-private per word: ε = "


def write_table(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", SHORT)
def test_it_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text("utf-8").splitlines()) < 40


def test_a_table_becomes_a_publishable_dataset(tmp_path: Path) -> None:
    said = "The soup was cold and Ferreira paid 4071."
    table = write_table(tmp_path / "in.csv", [{"review": said, "stars": "1"}] * 5)
    cache = {"HF_DATASETS_CACHE": str(tmp_path / "cache")}
    folder = tmp_path / "released"
    output = run("map_dataset.py", table, folder, "--column", "review", **cache)
    released = load_from_disk(folder)
    assert f"{GUARANTEE}1.5 " in output
    assert released["stars"] == [1] * 5
    assert output.splitlines()[-3:] == [f"- {text}" for text in released["review"][:3]]
    assert all("4071" not in text and "Ferreira" not in text for text in released["review"])
    assert str(tmp_path) not in (folder / "dataset_info.json").read_text("utf-8")


def test_the_words_of_users_alone_are_privatized(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Zanzibarian soups, please."},
        {"role": "assistant", "content": "Zanzibarian soups it is."},
    ]
    chats = write(tmp_path / "chats.jsonl", [{"messages": messages}] * 3)
    output = run_here("privatize_chats.py", chats, tmp_path / "released.jsonl")
    rows = list(map(json.loads, (tmp_path / "released.jsonl").read_text("utf-8").splitlines()))
    assert len(rows) == 3
    for row in rows:
        user, assistant = row["messages"]
        assert assistant == messages[1]
        assert user["role"] == "user"
        assert "zanzibarian" not in user["content"].lower()
    assert f"{GUARANTEE}1.5 " in output
    assert output.splitlines()[-2:] == [f"{m['role']}: {m['content']}" for m in rows[0]["messages"]]


@pytest.mark.skipif(find_spec("accelerate") is None, reason="Trainer needs accelerate")
def test_a_model_learns_from_released_texts(tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny_models.save_classifier(model, "bert", tiny_models.word_pieces(), pad_token="[PAD]")
    nouns = {"animal": "dog", "human": "doctor"}
    rows = [{"text": f"the {noun} reads", "label": label} for label, noun in nouns.items()] * 30
    arguments = ("--epsilon", 9, "--epochs", 6, "--learning-rate", 0.02)
    # It writes its checkpoints to where it runs.
    output = run_here(
        "train_classifier.py",
        *(write_table(tmp_path / "rows.csv", rows), model, *arguments),
        folder=tmp_path,
    )
    assert f"{GUARANTEE}9 " in output
    assert output.endswith("accuracy on plain texts: 1.00\n")

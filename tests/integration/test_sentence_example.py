"""The example of a pool of sentences, run as a user runs it, on rows made here."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_models
from example_runs import help_of, run_here, write

from hf_dxprivacy import SentencePool

pytestmark = pytest.mark.slow

# Tokens of the tiny tokenizer.
WORDS = {"human": ["doctor", "patients"], "animal": ["fox", "dog"]}


def test_help() -> None:
    assert "--local_dp" in help_of("sentence_pool.py")


@pytest.mark.skipif(find_spec("accelerate") is None, reason="Trainer needs accelerate")
def test_training_on_released_sentences(tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny_models.save_classifier(model, "bert", tiny_models.word_pieces(), pad_token="[PAD]")
    public: list[dict[str, object]] = [
        {"text": f"{start} {noun} {verb} it.", "label": label}
        for label, nouns in WORDS.items()
        for noun in nouns
        for start in ("The", "A quick", "The lazy")
        for verb in ("read", "treats", "barks at")
    ]
    private: list[dict[str, object]] = [
        {"text": f"the {WORDS[label][at % 2]} barks", "label": label, "split": split}
        for split, count in (("train", 24), ("test", 6))
        for label in WORDS
        for at in range(count)
    ]
    output = run_here(
        "sentence_pool.py",
        *("--public", write(tmp_path / "public.jsonl", public)),
        *("--data", write(tmp_path / "private.jsonl", private), "--model", model),
        *("--local_dp", 0.001, 400, "--epochs", 8, "--learning_rate", 0.02, "--batch_size", 8),
        *("--save_pool", tmp_path / "pool", "--seed", 1, "--shown", 2),
    )
    pool = SentencePool.from_pretrained(tmp_path / "pool")
    assert set(pool.sentences) == {str(row["text"]) for row in public}
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([\d.]+)% \|$", output, re.MULTILINE)
    (_, infinite, plain), (_, small, _), (_, large, near) = rows
    assert (infinite, plain, near) == ("∞", "100.0", "100.0")
    assert float(small) <= 0.001 < float(large) <= 400
    released = re.findall(r"^  → (.*)$", output, re.MULTILINE)
    assert len(released) == 4
    assert set(released) <= set(pool.sentences)

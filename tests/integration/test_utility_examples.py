"""The examples that measure what a task loses, run as a user runs them, on rows made here."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_models
from example_runs import help_of, run, run_here, write

from hub_server import HubServer

pytestmark = pytest.mark.slow

FIGURES = dict[tuple[str, str], list[float]]

needs_trainer = pytest.mark.skipif(
    find_spec("accelerate") is None, reason="Trainer needs accelerate"
)


def tables(output: str) -> list[FIGURES]:
    """Read the figures of each table by mechanism and ε."""
    found: list[FIGURES] = []
    for line in output.splitlines():
        if not line.startswith("| "):
            continue
        name, epsilon, *cells = (cell.strip() for cell in line[1:-1].split("|"))
        if name == "mechanism":
            found.append({})
        else:
            found[-1][name, epsilon] = [float(cell.split(" ±")[0] or "nan") for cell in cells]
    return found


def reviews(path: Path) -> Path:
    """Write 60 texts whose label is in one word, a fifth of them for testing."""
    words = {"good": ["wonderful", "lovely", "great"], "bad": ["terrible", "awful", "horrid"]}
    rows: list[dict[str, object]] = []
    for at in range(60):
        label = list(words)[at % 2]
        word = words[label][at // 2 % 3]
        split = "test" if at < 12 else "train"
        rows.append({"text": f"The soup is {word}.", "label": label, "split": split})
    return write(path, rows)


@pytest.mark.parametrize("name", ["tradeoff.py", "finetune_classifier.py", "language_model.py"])
def test_help(name: str) -> None:
    output = help_of(name)
    assert "--epsilon" in output
    assert "--runs" in output


def test_tradeoff_of_labels_and_scores(tmp_path: Path) -> None:
    pairs: list[dict[str, object]] = [
        {"text1": "a cheap hotel", "text2": second, "score": score}
        for second, score in (("an expensive hotel", 3.5), ("a cheap hotel", 5.0), ("iron", 0.5))
        for _ in range(20)
    ]
    arguments = (
        *("--data", reviews(tmp_path / "soups.jsonl"), write(tmp_path / "stays.jsonl", pairs)),
        *("--mechanism", "laplace", "--epsilon", 0.01, 999, "--repeats", 2, "--privacy"),
        *("--attack_words", 5, "--runs", tmp_path / "runs.jsonl", "--privatize", "both"),
        *("--save", tmp_path / "results.jsonl"),
    )
    output = run("tradeoff.py", *arguments, "--plot", tmp_path / "plot")
    (found,) = tables(output)
    (accuracy, *_, correlation, _, _) = found["original", ""]
    assert accuracy == 1.0
    assert correlation > 0.8
    noisy, plain = found["laplace", "0.01"], found["laplace", "999"]
    assert plain == pytest.approx([1.0, 1.0, 1.0, correlation, 1.0, 1.0], abs=0.05)
    for each in (noisy, found["random", ""]):
        assert each[0] < 0.9
        assert each[1] < 0.001
        assert each[3] < 0.7
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert {"plot-accuracy.png", "plot-soups-accuracy-top-1.png", "plot-stays-Pearson-N_w.png"} <= (
        pictures
    )
    done = (tmp_path / "runs.jsonl").read_text("utf-8")
    assert run_here("tradeoff.py", *arguments) == output
    assert (tmp_path / "runs.jsonl").read_text("utf-8") == done


@needs_trainer
def test_fine_tuning_in_three_setups(tmp_path: Path, hub: HubServer) -> None:
    tiny_models.save_classifier(
        tmp_path / "model", "bert", tiny_models.word_pieces(), pad_token="[PAD]"
    )
    words = {"human": ["doctor", "patients"], "animal": ["fox", "dog"]}
    rows: list[dict[str, object]] = [
        {"text": f"the {words[label][at % 2]} barks", "label": label, "split": split}
        for split, count in (("train", 20), ("test", 6))
        for label in words
        for at in range(count)
    ]
    output = run_here(
        "finetune_classifier.py",
        *("--data", write(tmp_path / "rows.jsonl", rows), "--model", tmp_path / "model"),
        *("--mechanism", "tem", "--epsilon", 999, "--setup", "train", "test", "both"),
        *("--epochs", 6, "--learning_rate", 0.02, "--batch_size", 8, "--output", tmp_path / "out"),
        *("--push_to_hub", "me/classifier", "--runs", tmp_path / "runs.jsonl"),
        HF_TOKEN=hub.token,
    )
    assert "fine-tuning, both privatized:" in output
    for found in tables(output):
        assert found["original", ""][0] == found["tem", "999"][0] == 1.0
        assert found["random", ""][0] < 1.0
    assert {"config.json", "model.safetensors"} <= set(hub.repo("me/classifier").files())


@needs_trainer
def test_fine_tuning_on_scores_of_pairs(tmp_path: Path) -> None:
    tokenizer = tiny_models.byte_level()
    tiny_models.save_classifier(tmp_path / "model", "gpt2", tokenizer, eos_token="<|endoftext|>")
    rows: list[dict[str, object]] = [
        {"text1": "the fox", "text2": ["the fox", "a dog"][at % 2], "score": 4.5 - 4.0 * (at % 2)}
        for at in range(50)
    ]
    output = run_here(
        "finetune_classifier.py",
        *("--data", write(tmp_path / "rows.jsonl", rows), "--model", tmp_path / "model"),
        *("--mechanism", "--setup", "test", "--epochs", 10, "--learning_rate", 0.02),
        *("--output", tmp_path / "out"),
    )
    (found,) = tables(output)
    assert found["original", ""][0] > 0.9
    assert found["random", ""][0] < found["original", ""][0]


@needs_trainer
def test_perplexity_of_released_texts(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": f"the doctor reads the {['guide', 'book'][at % 2]} again"} for at in range(50)
    ]
    output = run_here(
        "language_model.py",
        *("--data", write(tmp_path / "rows.jsonl", rows)),
        *("--mechanism", "laplace", "--epsilon", 999),
        *("--epochs", 5, "--batch_size", 8, "--block", 16, "--width", 32, "--layers", 1),
        *("--learning_rate", 0.03, "--vocabulary", 400, "--output", tmp_path / "out"),
    )
    for found in tables(output):
        (original,), (random,) = found["original", ""], found["random", ""]
        assert original < 10.0
        assert random > 3 * original
        assert found["laplace", "999"][0] == pytest.approx(original, rel=0.01)

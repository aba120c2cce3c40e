"""What the examples that measure a task share: baselines, features, scores, tables, data."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import (
    averaged_vectors,
    classification_scores,
    correlation_scores,
    cosines,
    make_selector,
    pair_features,
    pivot,
    random_words,
    read_parts,
    read_task,
    versions,
)
from hf_dxprivacy.results import Result, Results
from hf_dxprivacy.slots import ContentWordSelector, LowTransitionSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_every_word_is_as_likely_whatever_it_replaces(euclidean_space: EmbeddingSpace) -> None:
    draws = 40_000
    word = euclidean_space.words[3]
    data = Dataset.from_dict({"text": [" ".join([word] * 100)] * (draws // 100)})
    released = data.map(random_words(euclidean_space), batched=True)["text"][:]
    counts = np.bincount(
        euclidean_space.ids(" ".join(released).split()), minlength=len(euclidean_space)
    )
    expected = draws / len(euclidean_space)
    # χ² with 499 degrees of freedom: mean 499, standard deviation 31.6; six of them.
    assert ((counts - expected) ** 2 / expected).sum() < 690
    law = random_words(euclidean_space).mechanism
    assert np.ptp(law.probabilities(np.array([0, 499, -1]))) < 1e-9  # type: ignore[attr-defined]


def test_random_words_of_slots_alone(euclidean_space: EmbeddingSpace) -> None:
    privatizer = random_words(euclidean_space, selector=ContentWordSelector())
    assert isinstance(privatizer, SlotPrivatizer)
    first, *rest = privatizer.privatize("the waaa of the waab").split()
    assert (first, rest[1:3]) == ("the", ["of", "the"])


def test_versions_come_in_order_with_each_lambda(euclidean_space: EmbeddingSpace) -> None:
    found = list(
        versions(euclidean_space, ["tem", "mahalanobis"], [1.0, 2.0], lams=[0.0, 0.5], oov="drop")
    )
    assert [(v.name, v.epsilon) for v in found] == [
        ("none", None),
        ("random", None),
        ("tem", 1.0),
        ("tem", 2.0),
        ("mahalanobis, λ=0", 1.0),
        ("mahalanobis, λ=0", 2.0),
        ("mahalanobis, λ=0.5", 1.0),
        ("mahalanobis, λ=0.5", 2.0),
    ]
    assert found[0].privatizer is None
    last = found[-1].privatizer
    assert last is not None
    assert last.oov == "drop"
    assert last.mechanism.parameters["lam"] == 0.5
    assert found[-1].options == {"lam": 0.5}


def test_an_unknown_baseline_is_refused(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="baseline to be one of 'none', 'random'"):
        list(versions(euclidean_space, [], [], baselines=["nothing"]))


def test_selectors_by_name() -> None:
    texts = ["play jazz"] * 40
    assert make_selector("every-word", texts, 1.0) is None
    content = make_selector("content-words", texts, 1.0)
    assert isinstance(content, ContentWordSelector)
    selector = make_selector("low-transition", texts, None)
    assert isinstance(selector, LowTransitionSelector)
    assert [mask.tolist() for mask in selector.masks([["play", "rock"]]) if mask is not None] == [
        [False, True]
    ]
    with pytest.raises(InvalidValueError, match="selector to be one of 'every-word'"):
        make_selector("nouns", texts, 1.0)


def test_vectors_are_averaged_over_known_words(euclidean_space: EmbeddingSpace) -> None:
    found = averaged_vectors(["Waaa, waab unknown!", "", "nothing known"], euclidean_space)
    assert found[0] == pytest.approx(euclidean_space.vectors[:2].mean(axis=0), abs=1e-6)
    assert not found[1:].any()


def test_vectors_in_a_ball_have_no_mean(poincare_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="expected a space with the metric 'euclidean'"):
        averaged_vectors(["waaa"], poincare_space)


def test_relations_of_pairs() -> None:
    first, second = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[2.0, 4.0], [1.0, 0.0]])
    assert pair_features(first, second).tolist() == [[1.0, 2.0, 2.0, 8.0], [1.0, 0.0, 0.0, 0.0]]
    assert cosines(first, second) == pytest.approx([1.0, 0.0])


def test_scores_are_means_over_labels() -> None:
    found = classification_scores([0, 0, 0, 1], [0, 0, 1, 1])
    assert found == pytest.approx(
        {"accuracy": 3 / 4, "precision": 3 / 4, "recall": 5 / 6, "F1": (4 / 5 + 2 / 3) / 2}
    )


def test_correlations_are_means_over_groups() -> None:
    truth, predicted = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], [10.0, 20.0, 30.0, 1.0, -8.0, -27.0]
    assert correlation_scores(truth[:3], predicted[:3])["Pearson"] == pytest.approx(1.0)
    found = correlation_scores(truth, predicted, ["a"] * 3 + ["b"] * 3)
    assert found["Spearman"] == pytest.approx(0.0)
    # Of b: the products of deviations sum to −28, their squares to 2 and to 1226/3.
    assert found["Pearson"] == pytest.approx((1.0 - 28.0 / (2 * 1226 / 3) ** 0.5) / 2)
    assert correlation_scores([1.0, 2.0], [3.0, 3.0]) == {"Pearson": 0.0, "Spearman": 0.0}


def test_a_table_has_a_column_for_each_dataset() -> None:
    results = Results(
        [
            Result("t", "mr", "none", None, "accuracy", 0.75, 0.749, 0.751),
            Result("t", "mr", "tem", 2.0, "accuracy", 0.5, 0.4, 0.6, 5),
            Result("t", "sts", "tem", 2.0, "Pearson", 0.25, 0.25, 0.25),
        ]
    )
    assert pivot(results, digits=2).splitlines() == [
        "| mechanism | ε | mr, accuracy | sts, Pearson |",
        "|---|---:|---:|---:|",
        "| original |  | 0.75 |  |",
        "| tem | 2 | 0.50 ± 0.10 | 0.25 |",
    ]
    assert pivot(results, "Pearson").splitlines()[0] == "| mechanism | ε | sts |"


def test_rows_are_split_as_the_file_says(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": f"text {at}", "label": "ab"[at % 2], "split": split}
        for at, split in enumerate(["test"] * 2 + ["validation"] * 3 + ["train"] * 5)
    ]
    task = read_task(write(tmp_path / "small.name.jsonl", rows))
    assert (task.name, task.labels, task.text_columns) == ("small", ("a", "b"), ("text",))
    train, test = task.parts(0)
    assert [task.rows["text"][at] for at in test] == ["text 0", "text 1"]
    assert [task.rows["text"][at] for at in train] == [f"text {at}" for at in range(5, 10)]
    assert task.targets[test].tolist() == [0, 1]
    options = {"rows": 2, "splits": ["train", "validation"]}
    small = read_task(str(tmp_path / "small.name.jsonl"), **options)
    assert small.rows["text"][:] == ["text 5", "text 9", "text 2", "text 4"]
    assert small.texts == [f"text {at}" for at in (5, 6, 7, 8, 9, 2, 3, 4)]


def test_without_a_test_part_each_repeat_chooses_one(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl.gz"
    rows = [
        {"text1": "a", "text2": None, "score": at / 4, "subset": "xy"[at % 2]} for at in range(40)
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    task = read_task(str(path))
    assert (task.text_columns, task.labels) == (("text1", "text2"), ())
    assert task.groups == ("x", "y") * 20
    assert task.texts == ["a"] * 40 + [""] * 40
    (train, test), (_, other) = task.parts(0), task.parts(1)
    assert sorted([*train, *test]) == list(range(40))
    assert len(test) == 8
    assert test.tolist() != other.tolist()
    assert test.tolist() == task.parts(0)[1].tolist()


def test_labels_of_a_folder_keep_their_names(tmp_path: Path) -> None:
    features = Features({"sentence": Value("string"), "class": ClassLabel(names=["no", "yes"])})
    for split in ("train", "validation"):
        data = Dataset.from_dict({"sentence": ["a", "b"], "class": [1, 0]}, features=features)
        data.to_parquet(tmp_path / f"{split}.parquet")
    task = read_task(str(tmp_path), text_columns=["sentence"], target_column="class")
    assert task.labels == ("no", "yes")
    assert task.targets.tolist() == [1, 0, 1, 0]
    assert task.is_test is not None
    assert task.is_test.tolist() == [False, False, True, True]


def test_missing_columns_are_named(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl", [{"text": "a", "stars": 1}])
    with pytest.raises(InvalidValueError, match="got columns text, stars; name them"):
        read_task(data)


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.xls").touch()
    with pytest.raises(InvalidValueError, match="ending to be one of 'json'"):
        read_parts(str(tmp_path / "rows.xls"))

"""Membership inference: finds what a classifier learned by heart, and nothing else."""

import os

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import membership_inference
from hf_dxprivacy.evaluation.shadow import train_classifier
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import THREAD_VARIABLES

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def reviews(euclidean_space: EmbeddingSpace) -> tuple[list[str], list[str]]:
    """Return texts whose labels follow from a few words, and by chance otherwise."""
    rng = RNG(0)
    texts = [" ".join(rng.choice(euclidean_space.words[:300], 8)) for _ in range(320)]
    good = set(euclidean_space.words[:60])
    labels = []
    for text in texts:
        share = np.mean([word in good for word in text.split()])
        labels.append("good" if share + rng.normal(0, 0.15) > 0.2 else "bad")
    return texts, labels


def area(originals: list[str], released: list[str], labels: list[str]) -> float:
    found = membership_inference(originals, released, labels, repeats=2, rng=RNG(1))
    return found.where(metric="AUC")[0].value


def test_members_are_found_in_originals_and_less_the_smaller_epsilon(
    reviews: tuple[list[str], list[str]], euclidean_space: EmbeddingSpace
) -> None:
    texts, labels = reviews
    released = {
        epsilon: [
            str(text)
            for text in DxPrivatizer(euclidean_space, "tem", epsilon, seed=2).privatize(texts)
        ]
        for epsilon in (8.0, 0.1)
    }
    plain = area(texts, texts, labels)
    assert plain > 0.75
    assert area(texts, released[8.0], labels) > 0.7
    assert area(texts, released[0.1], labels) == pytest.approx(0.5, abs=0.1)


def test_members_whose_release_is_somebody_elses_are_not_found(
    reviews: tuple[list[str], list[str]],
) -> None:
    texts, labels = reviews
    order = RNG(3).permutation(len(texts))
    others, theirs = [texts[i] for i in order], [labels[i] for i in order]
    assert area(texts, others, theirs) == pytest.approx(0.5, abs=0.1)


def test_results_tell_the_accuracy_of_the_target_too(reviews: tuple[list[str], list[str]]) -> None:
    texts, labels = reviews
    found = membership_inference(texts, texts, labels, repeats=2, rng=RNG(0))
    assert [(r.metric, r.repeats) for r in found] == [("AUC", 2), ("target accuracy", 2)]
    assert 0.5 < found[1].value < 0.95
    assert found[0].low < found[0].value < found[0].high


def test_the_classifier_learns_and_takes_texts_of_unknown_words() -> None:
    texts = ["red apple", "red cherry", "blue sky", "blue sea"] * 3
    labels = np.array([0, 0, 1, 1] * 3)
    classify = train_classifier(texts, labels, 2, seed=0)
    said = classify(["RED", "blue", "", "zzz"])
    assert said.argmax(axis=1)[:2].tolist() == [0, 1]
    assert said[2] == pytest.approx(said[3], rel=1e-5)
    assert np.exp(said).sum(axis=1) == pytest.approx(1.0)
    again = train_classifier(texts, labels, 2, seed=0)
    np.testing.assert_allclose(again(texts), classify(texts), rtol=1e-4)


def test_training_in_a_test_has_one_thread() -> None:
    """As many tests run at once as there are cores, so that more threads would wait for others."""
    torch = pytest.importorskip("torch")
    assert torch.get_num_threads() == 1
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="same length, got originals: 2, released: 1"):
        membership_inference(["a", "b"], ["a"], [0, 1])
    with pytest.raises(InvalidValueError, match="classes >= 2, got classes=1"):
        membership_inference(["a"] * 40, ["a"] * 40, [0] * 40)
    with pytest.raises(InvalidValueError, match="texts >= 40, got texts=39; the attacker has"):
        membership_inference(["a"] * 39, ["a"] * 39, [0] * 39)
    with pytest.raises(InvalidValueError, match="repeats"):
        membership_inference(["a"] * 40, ["a"] * 40, [0, 1] * 20, repeats=0)


def test_forty_texts_are_enough() -> None:
    texts, labels = [f"word{i} other{i}" for i in range(40)], [0, 1] * 20
    found = membership_inference(texts, texts, labels, repeats=1, rng=RNG(0))
    assert 0.0 <= found[0].value <= 1.0

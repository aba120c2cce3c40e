"""User-level audit: finds whose texts a model was trained on, by how it ranks their words."""

import numpy as np
import pytest
from made_up_texts import texts_by_author

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import user_audit
from hf_dxprivacy.evaluation.shadow import train_next_word
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

USERS = 16
RNG = np.random.default_rng


def area(originals: list[str], released: list[str], users: list[str]) -> float:
    found = user_audit(originals, released, users, repeats=2, vocabulary=300, rng=RNG(0))
    return found.where(metric="AUC")[0].value


def test_users_are_found_in_originals_and_not_at_a_small_epsilon(
    euclidean_space: EmbeddingSpace,
) -> None:
    texts, users = texts_by_author(euclidean_space.words[:200], USERS, 4, 80, seed=1)
    released = DxPrivatizer(euclidean_space, "tem", 0.1, seed=2).privatize(texts)
    assert area(texts, texts, users) > 0.95
    assert area(texts, [str(text) for text in released], users) == pytest.approx(0.5, abs=0.25)


def test_users_whose_texts_are_somebody_elses_are_not_found(
    euclidean_space: EmbeddingSpace,
) -> None:
    texts, users = texts_by_author(euclidean_space.words[:200], USERS, 4, 80, seed=1)
    mixed = [texts[i] for i in RNG(4).permutation(len(texts))]
    assert area(texts, mixed, users) == pytest.approx(0.5, abs=0.25)


def test_all_figures_are_there(euclidean_space: EmbeddingSpace) -> None:
    texts, users = texts_by_author(euclidean_space.words[:100], 8, 2, 40, seed=1)
    found = user_audit(texts, texts, users, repeats=1, vocabulary=100, rng=RNG(0))
    assert [r.metric for r in found] == ["precision", "recall", "accuracy", "AUC"]
    assert all(0.0 <= r.value <= 1.0 for r in found)


def test_a_model_ranks_what_it_has_read_first() -> None:
    rows = [["red", "apple", "green", "pear", "blue", "sky"]] * 30
    ranks = train_next_word(rows, 100, seed=0)
    assert ranks(rows[:1]).tolist() == [0] * 6
    assert ranks([["pear", "red"]]).max() > 0
    # What it does not know has no rank.
    assert ranks([["zzz", "apple"]]).shape == (1,)
    assert ranks([[]]).shape == (0,)


def test_too_few_users_and_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="users >= 4, got users=2"):
        user_audit(["a", "b"], ["a", "b"], ["x", "y"])
    with pytest.raises(InvalidValueError, match="same length"):
        user_audit(["a", "b"], ["a", "b"], ["x"])
    with pytest.raises(InvalidValueError, match="vocabulary"):
        user_audit(["a"] * 4, ["a"] * 4, list("wxyz"), vocabulary=1)

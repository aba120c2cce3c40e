"""Bounds, arguments and calls that used to be answered wrongly, or not at all."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer, TokenPrivatizer
from hf_dxprivacy.errors import DxPrivacyError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers import keyed_noise
from hf_dxprivacy.slots import ContentWordSelector, TagColumnSelector

WORDS = ["ice-cream", "cream", "milk", "ice", "a"]
VECTORS = np.array([[9, 0], [0, 0], [0.1, 0], [5, 5], [1, 1]], np.float32)


@pytest.fixture(scope="module")
def few() -> EmbeddingSpace:
    return EmbeddingSpace.from_vectors(WORDS, VECTORS)


def tokenizer(space: EmbeddingSpace) -> Tokenizer:
    vocabulary = {word: at for at, word in enumerate((*space.words, "[UNK]"))}
    return Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))


# Bounds


@pytest.mark.parametrize("split", [None, True])
def test_the_bound_of_token_lists_is_reached_by_their_law(
    few: EmbeddingSpace, split: bool | None
) -> None:
    """A token is one word whatever it holds: "ice-cream" is not "ice" and "cream"."""
    privatizer = DxPrivatizer(few, "tem", 2.0, is_split_into_words=split)
    bound = privatizer.guarantee.bound(["ice-cream"], ["ice-milk"])
    law = privatizer.mechanism.probabilities(np.array([0, -1]))  # type: ignore[attr-defined]
    reached = float(np.abs(np.log(law[0] / law[1])).max())
    assert 7.0 < reached <= bound < 2.0 * reached
    assert privatizer.guarantee.bound(["milk", "!"], ["cream", "!"]) == pytest.approx(0.2)
    assert privatizer.guarantee.bound(["milk", "!"], ["cream", "?"]) == np.inf
    assert privatizer.guarantee.bound(["milk"], ["cream", "milk"]) == np.inf


def test_a_text_has_no_bound_where_tokens_are_words(few: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(few, "tem", 2.0, is_split_into_words=True)
    with pytest.raises(InvalidTypeError, match="expected lists of tokens, got a text"):
        privatizer.guarantee.bound("ice-cream", "ice-milk")
    slots = SlotPrivatizer(
        few, "tem", 2.0, selector=ContentWordSelector(set()), is_split_into_words=True
    )
    with pytest.raises(InvalidTypeError, match="expected lists of tokens, got a text"):
        slots.guarantee.bound("ice-cream", "ice-milk")
    assert slots.guarantee.bound(["ice-cream"], ["ice-milk"]) > 7.0


def test_texts_and_token_lists_differ_for_certain(few: EmbeddingSpace) -> None:
    bound = DxPrivatizer(few, "tem", 2.0).guarantee.bound
    assert bound("milk", ["milk"]) == np.inf
    assert bound("milk", "milk") == bound(["milk"], ["milk"]) == 0.0


@pytest.mark.parametrize("wrong", [None, 5, b"milk", {"text": "milk"}, [["milk"]], float("nan")])
def test_what_has_no_bound_is_refused(few: EmbeddingSpace, wrong: Any) -> None:
    made = (
        DxPrivatizer(few, "tem", 2.0),
        SlotPrivatizer(few, "tem", 2.0, selector=TagColumnSelector("tags")),
        TokenPrivatizer(few, tokenizer(few), "tem", 2.0),
    )
    for each in made:
        with pytest.raises(DxPrivacyError, match=r"expected|not in the data|column 'tags'"):
            each.guarantee.bound(wrong, wrong)


def test_printed_assumptions_of_seeds_name_splits_and_files(few: EmbeddingSpace) -> None:
    printed = str(DxPrivatizer(few, "tem", 2.0, seed=2**70).guarantee)
    assert "the same index, or none" in printed
    assert "in two splits, files, tables" in printed
    assert "whatever stands between them" in printed


# Arguments


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: DxPrivatizer(s, 5.0), r"number 5\.0; did you mean epsilon=5\.0\?"),
        (lambda s: DxPrivatizer(s, "tem", 5.0, column="a"), "did you mean text_column="),
        (lambda s: DxPrivatizer(s, "tem", 5.0, text_columns="a"), "did you mean text_column="),
        (lambda s: DxPrivatizer(s, "tem", 5.0, betta=0.1), "did you mean beta="),
        (lambda s: DxPrivatizer(s, "madlib", 5.0), "did you mean 'laplace'"),
        (lambda s: DxPrivatizer(s, "lapalce", 5.0), "did you mean 'laplace'"),
        (lambda s: DxPrivatizer(s, "tem", 5.0, selector=None), "argument of SlotPrivatizer"),
        (lambda s: DxPrivatizer("wordnet_gloss", "tem", 5.0), "did you mean 'wordnet-gloss'"),
        (lambda s: SlotPrivatizer(s, "tem", 5.0), "expected selector= to be a selector"),
        (
            lambda s: SlotPrivatizer(s, "tem", 5.0, selector=ContentWordSelector(), text_colum="a"),
            "did you mean text_column=",
        ),
        (lambda s: TokenPrivatizer(s), "tokenizer is missing"),
        (lambda s: TokenPrivatizer(s, tokenizer(s), 5.0), "did you mean epsilon="),
        (lambda s: TokenPrivatizer(s, tokenizer(s), "tem", 5.0, id_column="a"), "mean ids_column="),
    ],
)
def test_what_was_probably_meant_is_said(
    few: EmbeddingSpace, make: Callable[[EmbeddingSpace], Any], message: str
) -> None:
    with pytest.raises(DxPrivacyError, match=message):
        make(few)


def test_a_seed_that_can_be_guessed_is_warned_of_once(
    few: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    keyed_noise._warn_of_guessable_seed.cache_clear()
    DxPrivatizer(few, "tem", 2.0, seed=2**64)
    assert "below 2**64" not in caplog.text
    for _ in range(3):
        DxPrivatizer(few, "tem", 2.0, seed=2**64 - 1)
    assert caplog.text.count("the seed is below 2**64") == 1


@pytest.mark.parametrize("batched", [False, True])
def test_a_privatizer_is_no_condition(few: EmbeddingSpace, batched: bool) -> None:
    """It would keep the original rows, since a released row is true."""
    data = Dataset.from_dict({"text": ["milk", "cream"], "input_ids": [[1], [2]]})
    for privatizer in (
        DxPrivatizer(few, "tem", 2.0),
        SlotPrivatizer(few, "tem", 2.0, selector=ContentWordSelector()),
        TokenPrivatizer(few, tokenizer(few), "tem", 2.0),
    ):
        with pytest.raises(InvalidTypeError, match=r"a privatizer is no condition"):
            data.filter(privatizer, batched=batched)
        with pytest.raises(InvalidTypeError, match=r"a privatizer is no condition"):
            list(data.to_iterable_dataset().filter(privatizer, batched=batched))


# Words that the space lacks


def test_the_share_of_unknown_words_is_kept_and_reported_once(
    few: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    privatizer = DxPrivatizer(few, "tem", 2.0, stopwords={"the"})
    assert privatizer.unknown_share is None
    with caplog.at_level(logging.WARNING):
        privatizer.privatize("the milk the " * 99)
        assert privatizer.unknown_share == 0.0
        privatizer({"text": ["der Kaffee ist kalt"] * 9})
        assert privatizer.unknown_share == pytest.approx(36 / 135)
        assert not caplog.records
        for _ in range(3):
            privatizer({"text": ["der Kaffee ist kalt"] * 9})
    (record,) = caplog.records
    assert "more than 30 % of the words are not in the space" in record.getMessage()
    assert "Kaffee" not in caplog.text


def test_counts_come_beside_a_release(few: EmbeddingSpace) -> None:
    seen: list[Any] = []
    privatizer = DxPrivatizer(few, "tem", 2.0, text_column=["a", "b"])
    privatizer({"a": ["milk Kaffee"], "b": ["ice"]}, on_counts=seen.append)
    assert [counts.out_of_vocabulary for counts in seen] == [1, 0]


def test_an_unknown_space_is_still_refused() -> None:
    with pytest.raises(InvalidValueError, match="expected the name of a built-in space"):
        DxPrivatizer("qqqq", "tem", 5.0)

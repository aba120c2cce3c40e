"""Cells taken apart and put together."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.segmentation import TextRow, TokenRow

READER = RowReader()


def text_row(text: str) -> TextRow:
    row = READER.read(text)
    assert isinstance(row, TextRow)
    return row


def token_row(tokens: object) -> TokenRow:
    row = READER.read(tokens)
    assert isinstance(row, TokenRow)
    return row


def test_a_text_comes_apart_and_together() -> None:
    row = text_row("  Hello,\tworld! ")
    assert (row.words, row.separators) == (["Hello", "world"], ["  ", ",\t", "! "])
    assert row.detokenize(["bye", "moon"]) == "  bye,\tmoon! "


def test_a_dropped_word_leaves_a_gap() -> None:
    assert text_row("a b, c").detokenize(["x", None, "z"]) == "x , z"


@pytest.mark.parametrize("text", ["", " ", "\n\t", "...", "\u2028", "\x00"])
def test_a_text_without_words_stays(text: str) -> None:
    row = text_row(text)
    assert row.words == []
    assert row.detokenize([]) == text


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_any_text_filled_with_its_own_words_is_itself_normalized(text: str) -> None:
    row = text_row(text)
    assert len(row.separators) == len(row.words) + 1
    readable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if readable == text:
        assert row.detokenize(row.words) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pd.NA])
def test_missing_cells(missing: object) -> None:
    assert READER.read(missing) is None
    assert token_row(["a", missing]).tokens == ["a", None]


@pytest.mark.parametrize(
    "tokens",
    [
        ["The", "cat", ".", None, "It's", "", " "],
        ("The", "cat", ".", None, "It's", "", " "),
        np.array(["The", "cat", ".", None, "It's", "", " "], dtype=object),
        pd.Series(["The", "cat", ".", None, "It's", "", " "], dtype=object),
    ],
)
def test_tokens_without_content_stay(tokens: object) -> None:
    row = token_row(tokens)
    assert (row.words, row.positions) == (["The", "cat", "It's"], [0, 1, 4])
    assert row.detokenize(["x", "y", "z"]) == ["x", "y", ".", None, "z", "", " "]


def test_dropped_tokens_are_removed_and_missing_ones_stay() -> None:
    row = token_row(["a", None, "b", "!", "c"])
    assert row.detokenize([None, "y", None]) == [None, "y", "!"]


def test_a_token_is_one_word_whatever_is_in_it() -> None:
    row = token_row(["New York", "(x)", "well-known", "e\u0301", "\ud800"])
    assert row.words == ["New York", "(x)", "well-known", "é", "\ufffd"]


def test_a_kept_token_is_normalized() -> None:
    assert token_row(["\u037e"]).detokenize([]) == [";"], "NFC of the Greek question mark"


@pytest.mark.parametrize("cells", [[], (), np.array([])])
def test_an_empty_token_list_stays(cells: Sequence[str]) -> None:
    assert token_row(cells).detokenize([]) == []


def test_numpy_strings_are_texts() -> None:
    assert text_row(np.str_("a é")).words == ["a", "é"]


@pytest.mark.parametrize("cell", [3, 2.5, True, b"secret", {"secret": 1}, object(), np.int64(3)])
def test_other_cells_are_refused_by_type_alone(cell: object) -> None:
    kind = type(cell).__name__
    with pytest.raises(InvalidTypeError, match=rf"list of tokens or None, got an? {kind}(;|$)"):
        READER.read(cell)


@pytest.mark.parametrize("token", [3, 2.5, ["secret"], b"secret", {"secret": 1}])
def test_other_tokens_are_refused_by_type_alone(token: object) -> None:
    with pytest.raises(InvalidTypeError, match=rf"one that holds an? {type(token).__name__}(;|$)"):
        READER.read(["a", token])


@pytest.mark.parametrize("cell", [{"en": "secret"}, [{"role": "user", "content": "secret"}]])
def test_what_to_do_with_chats_and_translations(cell: object) -> None:
    with pytest.raises(InvalidTypeError, match=r"a dict; name the path .*content.*privatize\(\)"):
        READER.read(cell)


def test_a_row_is_the_sequence_of_its_words() -> None:
    for cell in ("One, two-three!", ["One", ",", "two", "three"]):
        row = RowReader().read(cell)
        assert row is not None
        assert list(row) == row.words == ["One", "two", "three"]
        assert (len(row), row[1], row[1:]) == (3, "two", ["two", "three"])


def test_places_of_the_words_of_a_text() -> None:
    row = RowReader().read_text(" One, two!")
    for words in (["One", "two"], ["x", "longer"], ["", "y"]):
        text = row.detokenize(words)
        assert [text[slice(*place)] for place in row.offsets(words)] == words
    # What is dropped is nowhere, and what comes after it moves.
    assert row.offsets([None, "y"]) == [(3, 4)]
    assert row.detokenize([None, "y"])[3:4] == "y"


def test_places_of_the_words_of_tokens() -> None:
    row = RowReader().read(["One", ",", "two", None, "three"])
    assert row is not None
    assert row.offsets(["a", "b", "c"]) == [(0, 1), (2, 3), (4, 5)]
    words = [None, "b", None]
    assert row.detokenize(words) == [",", "b", None]
    assert row.offsets(words) == [(1, 2)]

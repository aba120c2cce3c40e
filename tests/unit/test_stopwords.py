"""Words that a caller may choose to keep."""

import re
from collections.abc import Iterable

import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text import stop_words
from hf_dxprivacy.text.segmentation import RowReader
from hf_dxprivacy.text.stopwords import ENGLISH


def test_none_is_the_default_meaning() -> None:
    assert stop_words(None) == frozenset()
    assert stop_words(set()) == frozenset()


def test_english_is_short_and_free_of_content() -> None:
    assert stop_words("english") is ENGLISH
    assert 150 < len(ENGLISH) < 200
    assert {"the", "of", "don't", "not"} <= ENGLISH
    # Published lists hold these; each would be a word of content released unchanged.
    assert not ENGLISH & {"bill", "computer", "fire", "cry", "interest", "sincere", "system"}


def test_every_english_one_can_occur() -> None:
    reader = RowReader()
    for word in ENGLISH:
        assert word == word.lower()
        assert [found for found, _ in reader.words(word)] == [word]


@pytest.mark.parametrize(
    "words",
    [
        {"The", "DON'T", "é"},
        ["the", "don’t", "É"],
        ("THE", "don't", "e\u0301", "the"),
        {"the": 1, "don't": 2, "é": 3},
        (word for word in ("the", "don't", "é")),
    ],
)
def test_words_are_brought_to_the_form_that_they_are_compared_in(words: Iterable[str]) -> None:
    assert stop_words(words, tokens=False) == {"the", "don't", "é"}


@pytest.mark.parametrize("word", ["ice cream", "Well-known", "the ", "", "!", "a.b"])
def test_what_no_text_has_as_a_word_is_refused(word: str) -> None:
    with pytest.raises(InvalidValueError, match=f"never one word of a text: {word!r}; .* one word"):
        stop_words({"the", word}, tokens=False)
    assert len(stop_words({"the", word})) == 2


def test_few_of_many_are_shown() -> None:
    with pytest.raises(InvalidValueError, match="'a 0', 'a 1', 'a 2', 'a 3', 'a 4', …; texts"):
        stop_words([f"a {number}" for number in range(9)], tokens=False)


def test_another_language_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=re.escape("'english' or words; got 'de'")):
        stop_words("de")


@pytest.mark.parametrize("words", [["the", 1], {1}, 5, {"a", None}, b"the"])
def test_other_types_are_refused(words: object) -> None:
    kind = type(words).__name__
    with pytest.raises(InvalidTypeError, match=f"or strings, as in .* got a {kind}"):
        stop_words(words)  # type: ignore[arg-type]

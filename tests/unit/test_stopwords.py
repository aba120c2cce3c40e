"""Words that a caller may choose to keep."""

import re

import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text import stop_words
from hf_dxprivacy.text.stopwords import ENGLISH
from hf_dxprivacy.text.words import Splitter


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
    splitter = Splitter()
    for word in ENGLISH:
        assert word == word.lower()
        assert [found for found, _ in splitter.split(word)] == [word]


@pytest.mark.parametrize(
    "words", [{"The", "DON'T", "é"}, frozenset({"the", "don’t", "É"}), {"THE", "don't", "e\u0301"}]
)
def test_a_set_is_brought_to_the_form_that_words_are_compared_in(words: set[str]) -> None:
    assert stop_words(words) == {"the", "don't", "é"}


def test_another_language_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=re.escape("'english' or a set of words; got 'de'")):
        stop_words("de")


@pytest.mark.parametrize("words", [["the"], ("the",), {"the": 1}, {1}, 5, {"a", None}])
def test_other_types_are_refused(words: object) -> None:
    kind = type(words).__name__
    with pytest.raises(InvalidTypeError, match=f"a set of strings; got a {kind}"):
        stop_words(words)  # type: ignore[arg-type]

"""Letter case, read and put on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_dxprivacy.text import apply_case, case_pattern


@pytest.mark.parametrize(
    ("word", "pattern"),
    [
        *((word, "lower") for word in ("cat", "iPhone", "5", "", "'tis", "日本", "5G", "ß", "😀")),
        *((word, "title") for word in ("Cat", "A", "McDonald", "I'm", "É", "CATs", "A1", "Ⅷ")),
        *((word, "upper") for word in ("CAT", "USA", "A1B", "ÉT", "I'M", "ΑΒ", "3D-TV")),
    ],
)
def test_pattern(word: str, pattern: str) -> None:
    assert case_pattern(word) == pattern


@pytest.mark.parametrize(
    ("word", "lower", "title", "upper"),
    [
        ("dog", "dog", "Dog", "DOG"),
        ("iPhone", "iPhone", "IPhone", "IPHONE"),
        ("don't", "don't", "Don't", "DON'T"),
        ("été", "été", "Été", "ÉTÉ"),
        ("ß", "ß", "SS", "SS"),
        ("5", "5", "5", "5"),
        ("日本", "日本", "日本", "日本"),
    ],
)
def test_apply(word: str, lower: str, title: str, upper: str) -> None:
    assert apply_case(word, "lower") == lower
    assert apply_case(word, "title") == title
    assert apply_case(word, "upper") == upper


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2), st.text(min_size=1))
def test_the_pattern_survives_on_words_of_letters(word: str, original: str) -> None:
    pattern = case_pattern(original)
    assert case_pattern(apply_case(word, pattern)) == pattern

"""Letter case: read from one word, put on another."""

from typing import Literal

CasePattern = Literal["lower", "title", "upper"]


def case_pattern(word: str) -> CasePattern:
    """Return the letter case of a word: all capitals, a capital first, or neither.

    One capital letter alone counts as "title".
    """
    if word.isupper() and sum(character.isalpha() for character in word) > 1:
        return "upper"
    return "title" if word[:1].isupper() else "lower"


def apply_case(word: str, pattern: CasePattern) -> str:
    """Return the word in a letter case; "lower" leaves it as the vocabulary has it."""
    if pattern == "upper":
        return word.upper()
    return word[:1].upper() + word[1:] if pattern == "title" else word

"""Shapes of words that a vocabulary lacks: numbers become numbers, names become names.

A vocabulary may have entries such as "<number:3>" that stand for all words of a shape. An unknown
word is looked up by its shape, which is a function of the word and of what stands before it; two
words of one shape are one input. An entry that is drawn is rendered: as digits, letters or a name
drawn uniformly from a public list, from noise of its own. No character of a word survives in its
rendering except by chance, and rendering is post-processing, so that no guarantee changes.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from hf_dxprivacy.errors import InvalidValueError

Uniforms = Sequence[float]

LONGEST_NUMBER = 12
NUMBERS = tuple(f"<number:{digits}>" for digits in range(1, LONGEST_NUMBER + 1))
# Shapes by their kin: those of one family are near to each other.
FAMILIES: dict[str, tuple[str, ...]] = {
    "numbers": (*NUMBERS, "<decimal>", "<amount>", "<ordinal>", "<year>"),
    "times": ("<time>", "<date>"),
    "codes": ("<phone>", "<code>", "<email>", "<url>", "<handle>"),
    "names": ("<name>",),
}
SHAPES = tuple(shape for family in FAMILIES.values() for shape in family)

# Uniform numbers that rendering one entry takes at the most.
UNIFORMS = 12

# In this order: the first that matches a whole word is its shape.
_PATTERNS = tuple(
    (shape, re.compile(pattern, re.IGNORECASE))
    for shape, pattern in (
        ("<year>", r"(?:19|20)\d\d(?:['’]?s)?"),
        ("<ordinal>", r"\d+(?:st|nd|rd|th)"),
        ("<time>", r"\d\d?(?::\d\d){1,2}(?:[ap]m)?|\d\d?[ap]m"),
        ("<date>", r"(?:\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2(?:\d\d){1,2})"),
        ("<amount>", r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
        ("<decimal>", r"\d+[.,]\d+"),
        ("<phone>", r"(?=(?:\D*\d){7})\d+(?:[-./:,]\d+)+"),
        ("<url>", r"(?:https?://|www\.).*"),
        ("<email>", r".*@.*"),
        ("<code>", r"(?=.*\d).*"),
    )
)
_SENTENCE_END = re.compile(r"[.!?:;…\n\r\"“”„«»(\[。！？：；（「『]")

_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_NAMES = Path(__file__).with_name("names.txt")


def shape_of(word: str, before: str, first: bool) -> str | None:
    """Return the shape of a word; None for a word of letters that seems to be no name.

    Args:
        word: A word that the vocabulary lacks.
        before: What stands between the word before it and itself.
        first: Whether it is the first word.
    """
    if before.endswith("@"):
        return "<handle>"
    if word.isdecimal():
        if len(word) == 4 and word.isascii() and word[:2] in ("19", "20"):
            return "<year>"
        return NUMBERS[min(len(word), LONGEST_NUMBER) - 1]
    for shape, pattern in _PATTERNS:
        if pattern.fullmatch(word):
            return shape
    if "_" in word:
        return "<handle>"
    if word[:1].isupper() and not first and not _SENTENCE_END.search(before):
        return "<name>"
    return None


def render(shape: str, uniforms: Uniforms) -> str:
    """Return a random word of a shape.

    Args:
        shape: One of `SHAPES`.
        uniforms: `UNIFORMS` independent numbers, uniform on [0, 1).

    Raises:
        InvalidValueError: If there is no such shape.
    """
    if shape not in _RENDERERS:
        raise InvalidValueError(f"there is no shape {shape!r}; shapes are {', '.join(SHAPES)}")
    return _RENDERERS[shape](uniforms)


@cache
def public_names() -> tuple[str, ...]:
    """Return the given names and surnames that "<name>" is rendered as; they are public."""
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _drawn(characters: str, uniforms: Uniforms) -> str:
    return "".join(characters[int(u * len(characters))] for u in uniforms)


def _number(digits: int, u: Uniforms) -> str:
    """Return a number of so many digits, the first of which is not 0 if there are others."""
    first = _DIGITS if digits == 1 else _DIGITS[1:]
    return _drawn(first, u[:1]) + _drawn(_DIGITS, u[1:digits])


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _date(u: Uniforms) -> str:
    return f"{1 + int(u[0] * 28):02d}/{1 + int(u[1] * 12):02d}/{1950 + int(u[2] * 80)}"


_RENDERERS: dict[str, Callable[[Uniforms], str]] = {
    **{shape: partial(_number, k) for k, shape in enumerate(NUMBERS, start=1)},
    "<decimal>": lambda u: f"{int(u[0] * 100)}.{int(u[1] * 10)}",
    "<amount>": lambda u: f"{1 + int(u[0] * 999)},{int(u[1] * 1000):03d}",
    "<ordinal>": lambda u: _ordinal(1 + int(u[0] * 31)),
    "<year>": lambda u: str(1900 + int(u[0] * 130)),
    "<time>": lambda u: f"{int(u[0] * 24)}:{int(u[1] * 60):02d}",
    "<date>": _date,
    "<phone>": lambda u: f"{_number(3, u)}-{_drawn(_DIGITS, u[3:6])}-{_drawn(_DIGITS, u[6:10])}",
    "<code>": lambda u: _drawn(_LETTERS, u[:2]).upper() + _drawn(_DIGITS, u[2:6]),
    # Addresses that are reserved for examples, and belong to no person (RFC 2606).
    "<email>": lambda u: f"{_drawn(_LETTERS, u[:6])}@example.com",
    "<url>": lambda u: f"https://example.com/{_drawn(_LETTERS, u[:6])}",
    "<handle>": lambda u: _drawn(_LETTERS, u[:8]),
    "<name>": lambda u: public_names()[int(u[0] * len(public_names()))],
}

"""Shapes of words that a vocabulary lacks: numbers become numbers, names become names.

A vocabulary may have entries such as "<number:3>" that stand for all words of a shape. An unknown
word is looked up by its shape, which is a function of the word and of what stands before it; two
words of one shape are one input. An entry that is drawn is rendered: as digits, letters or a name
drawn uniformly from a public list, from noise of its own. No character of a word survives in its
rendering except by chance, and rendering is post-processing, so that no guarantee changes.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache
from math import prod
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
        ("<email>", r"[^@\n]*@.*"),
        ("<code>", r"(?=.*\d).*"),
    )
)
_SENTENCE_END = re.compile(r"[.!?:;…\n\r\"“”„«»(\[。！？：；（「『]")

# How "I" and "I'm" begin.
_I = ("I", "I'", "I’")

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
    return "<name>" if _within_sentence(word, before, first) else None


def seems_name(word: str, before: str, first: bool) -> bool:
    """Tell whether a word has a capital first, starts no sentence, and is not "I"."""
    return word[:2] not in _I and _within_sentence(word, before, first)


def _within_sentence(word: str, before: str, first: bool) -> bool:
    return word[:1].isupper() and not first and not _SENTENCE_END.search(before)


def render(shape: str, uniforms: Uniforms) -> str:
    """Return a random word of a shape.

    Args:
        shape: One of `SHAPES`.
        uniforms: `UNIFORMS` independent numbers, uniform on [0, 1).

    Raises:
        InvalidValueError: If there is no such shape.
    """
    if shape not in _forms():
        raise InvalidValueError(f"there is no shape {shape!r}; shapes are {', '.join(SHAPES)}")
    left = iter(uniforms)
    return "".join(
        part[int(next(left) * len(part)) if len(part) > 1 else 0] for part in _forms()[shape]
    )


def is_rendered(word: str, shapes: Collection[str], any_case: bool = False) -> bool:
    """Tell whether `render` can draw a word for one of several shapes, in its letters or any."""
    return bool(chances(word, shapes, any_case))


def chances(word: str, shapes: Collection[str], any_case: bool = False) -> dict[str, float]:
    """Return with what probability `render` draws a word for each shape that has it."""
    found = [shape for shape in shapes if _pattern(shape, any_case).fullmatch(word)]
    return {shape: 1.0 / prod(map(len, _forms()[shape])) for shape in found}


@cache
def public_names() -> tuple[str, ...]:
    """Return the given names and surnames that "<name>" is rendered as; they are public."""
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _numbers(start: int, stop: int, form: str = "") -> tuple[str, ...]:
    return (*(format(number, form) for number in range(start, stop)),)


def _digits(count: int) -> tuple[str, ...]:
    """Return the form of a number, the first digit of which is not 0 if there are others."""
    return (_DIGITS[count > 1 :], *[_DIGITS] * (count - 1))


@cache
def _forms() -> dict[str, Sequence[Sequence[str]]]:
    """Return the parts of each shape's words, each one of some strings, as likely as another."""
    return {
        **{shape: _digits(k) for k, shape in enumerate(NUMBERS, start=1)},
        "<decimal>": (_numbers(0, 100), ".", _DIGITS),
        "<amount>": (_numbers(1, 1000), ",", _numbers(0, 1000, "03d")),
        "<ordinal>": ([_ordinal(day) for day in range(1, 32)],),
        "<year>": (_numbers(1900, 2030),),
        "<time>": (_numbers(0, 24), ":", _numbers(0, 60, "02d")),
        "<date>": (_numbers(1, 29, "02d"), "/", _numbers(1, 13, "02d"), "/", _numbers(1950, 2030)),
        "<phone>": (*_digits(3), "-", *[_DIGITS] * 3, "-", *[_DIGITS] * 4),
        "<code>": (*[_LETTERS.upper()] * 2, *[_DIGITS] * 4),
        # Addresses that are reserved for examples, and belong to no person (RFC 2606).
        "<email>": (*[_LETTERS] * 6, ["@example.com"]),
        "<url>": (["https://example.com/"], *[_LETTERS] * 6),
        "<handle>": [_LETTERS] * 8,
        "<name>": (public_names(),),
    }


@cache
def _pattern(shape: str, any_case: bool) -> re.Pattern[str]:
    parts = ("|".join(map(re.escape, part)) for part in _forms()[shape])
    return re.compile("".join(f"(?:{part})" for part in parts), re.IGNORECASE * any_case)

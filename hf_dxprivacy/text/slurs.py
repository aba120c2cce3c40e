"""Slurs and the coarsest obscenities, which no public vocabulary should hold.

Every word of a vocabulary may come out in any text, so the built-in spaces are made without
them. The list is `slurs.txt`, which states its rule; it is not a filter for texts.
"""

import re
from functools import cache
from importlib import resources

from hf_dxprivacy.text.segmentation import without_accents


def is_slur(word: str) -> bool:
    """Whether a word, in any letter case, is on the list or a regular form of an entry."""
    listed, exceptions = _patterns()
    plain = without_accents(word)
    return listed.fullmatch(plain) is not None and exceptions.fullmatch(plain) is None


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the entries and the exceptions, each as one pattern."""
    text = resources.files(__package__).joinpath("slurs.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line and not line.startswith("#")]
    exceptions = [word for line in lines if line.startswith("!") for word in line[1:].split()]
    entries = [line for line in lines if line and not line.startswith("!")]
    return _either(entries), _either(exceptions)


def _either(entries: list[str]) -> re.Pattern[str]:
    forms = "|".join(re.escape(entry).replace(r"\*", r"[\w'-]*") for entry in entries)
    return re.compile(rf"(?:{forms})(?:s|(?<=[hosxz])es|'s|s')?")

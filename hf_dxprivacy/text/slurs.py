"""Words that a public vocabulary should not hold, since any of them may come out in any text.

Slurs and the coarsest obscenities are on `slurs.txt`, and no built-in space has them. `harsh.txt`
is stricter, and kept out of `english` and `wordnet-sentences`. Each list states its rule; neither
is a filter for texts.
"""

import re
from functools import cache
from importlib import resources

from hf_dxprivacy.text.segmentation import without_accents


def is_slur(word: str) -> bool:
    """Whether a word, in any letter case, is on the list or a regular form of an entry."""
    return _is_listed(word, "slurs.txt")


def is_harsh(word: str) -> bool:
    """Whether a word is a slur, or on the list of sex, violence, drugs, hate and insults."""
    return is_slur(word) or _is_listed(word, "harsh.txt")


def _is_listed(word: str, name: str) -> bool:
    listed, exceptions = _patterns(name)
    plain = without_accents(word)
    # Of any other word the patterns try each place where an entry may begin with each other one.
    if _CHARACTERS.fullmatch(plain) is None:
        return False
    return listed.fullmatch(plain) is not None and exceptions.fullmatch(plain) is None


# What entries, and the words that they stand for, consist of.
_CHARACTERS = re.compile(r"[\w'-]*")


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the entries and the exceptions of a list, each as one pattern."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line and not line.startswith("#")]
    exceptions = [word for line in lines if line.startswith("!") for word in line[1:].split()]
    entries = [line for line in lines if line and not line.startswith("!")]
    return _either(entries), _either(exceptions)


def _either(entries: list[str]) -> re.Pattern[str]:
    forms = "|".join(re.escape(entry).replace(r"\*", r"[\w'-]*") for entry in entries)
    return re.compile(rf"(?:{forms})(?:s|(?<=[hosxz])es|'s|s')?")

"""What a word is.

The rule is chosen so that nothing with content escapes: every character is part of a word unless it
is white space, a control character, punctuation, or a currency, mathematical or modifier symbol.
What remains between the words (the carrier) is released as it is. Numbers, e-mail addresses, URLs,
user names, hashtags (without their sign), emoji and any script are words; a run of characters
without a space between them, as in Chinese, is one word. Two words never touch, and replacing each
of them by a word of letters keeps their number.
"""

import re
import unicodedata

from tokenizers import Regex, pre_tokenizers

Span = tuple[int, int]

# Skin tones are modifier symbols by category, but part of an emoji.
_CHARACTER = r"[[^\s\p{Cc}\p{Z}\p{P}\p{Sc}\p{Sm}\p{Sk}]\x{1F3FB}-\x{1F3FF}]"
# Quantifiers are possessive (no backtracking): time stays linear in the length of any text. The
# regex library aborts the process after ten million steps in one match, so the number of parts of
# a word is bounded too; what comes after that many is a further word.
_PARTS = "{1,1000}"
_URL = rf"(?:https?://|www\.)(?>(?:\p{{P}}*+[^\s\p{{P}}]++){_PARTS})"
# Apostrophes and underscores join; between digits so do the separators of numbers, dates, times.
_NUMBER_JOINER = r"(?<=\p{N})[.,:/\-](?=\p{N})"
_WORD = rf"{_CHARACTER}++(?>(?:(?:['’]|_++|{_NUMBER_JOINER}){_CHARACTER}++){_PARTS})?+"
# All that joins a word is part of an address too. Otherwise what is replaced word by word, as in
# "it's@b.c", could be read as one address, and so as fewer words.
_EMAIL = (
    rf"(?>{_CHARACTER}(?:{_CHARACTER}|['’_.%+\-]|{_NUMBER_JOINER}){{0,63}})"
    rf"@{_CHARACTER}++(?>(?:(?:[_.%+\-@]++|['’]|{_NUMBER_JOINER}){_CHARACTER}++){_PARTS})"
)
WORD_PATTERN = "|".join((_URL, _EMAIL, _WORD))

_SURROGATES = re.compile("[\ud800-\udfff]")


class Splitter:
    """Finds the words of a text, with the `tokenizers` library."""

    def __init__(self) -> None:
        self._split = pre_tokenizers.Split(Regex(WORD_PATTERN), "removed", invert=True)

    def split(self, text: str) -> list[tuple[str, Span]]:
        """Return the words with their character offsets, in order.

        Args:
            text: A text as returned by `normalize`.
        """
        words: list[tuple[str, Span]] = self._split.pre_tokenize_str(text)
        return words

    @staticmethod
    def normalize(text: str) -> str:
        """Bring a text to Unicode NFC; lone surrogates, which no encoding can hold, become U+FFFD.

        Offsets always refer to the normalized text.
        """
        if text.isascii():
            return text
        return unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", text))


def plain_apostrophes(word: str) -> str:
    """Return the word in lower case with typewriter apostrophes, as vocabularies have them."""
    return word.lower().replace("’", "'")


# How a word that a vocabulary lacks is looked up again, in order.
OTHER_FORMS = (str.lower, plain_apostrophes)

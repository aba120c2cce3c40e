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

# The same words, several times faster, in texts of these characters only, without an address:
# Python's own `re` knows no properties of characters, so they are written out. All of ASCII, and
# most of what else is usual in texts of Latin letters.
_LETTERS = "A-Za-zÀ-ÖØ-öø-ɏ"
_PLAIN = rf"\x00-\x7f\xa0¡«»¿×÷‐-‧€{_LETTERS}"
_PLAIN_CHARACTER = f"[0-9{_LETTERS}]"
_PLAIN_WORD = re.compile(
    rf"({_PLAIN_CHARACTER}+(?:(?:['’]|_+|(?<=[0-9])[.,:/\-](?=[0-9])){_PLAIN_CHARACTER}+){{0,1000}})"
)
# From the first character that makes a text another one to the next space, and all that begins
# with such a character after it, as in a script that is not Latin.
_NOT_PLAIN = re.compile(rf"(?:[^{_PLAIN}]|@|://|www\.)[^ ]*(?: [^{_PLAIN}][^ ]*)*")

_ACCENTS = re.compile("[\u0300-\u036f]")
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

    def cut(self, text: str) -> list[str]:
        """Return a text in pieces: what lies between its words, and the words, in turn.

        The words are those of `split`, found faster in what is plain.

        Args:
            text: A text as returned by `normalize`.

        Returns:
            Twice as many pieces as words, and one more.
        """
        # No word holds a space or depends on what is beyond one, so a text may be cut there.
        pieces, end = [""], 0
        for found in _NOT_PLAIN.finditer(text):
            start = text.rfind(" ", end, found.start()) + 1 or end
            _append(pieces, _PLAIN_WORD.split(text[end:start]))
            end = found.end()
            _append(pieces, self._cut(text[start:end]))
        if not end:
            return _PLAIN_WORD.split(text)
        _append(pieces, _PLAIN_WORD.split(text[end:]))
        return pieces

    def _cut(self, text: str) -> list[str]:
        pieces, end = [], 0
        for word, (start, stop) in self.split(text):
            pieces += [text[end:start], word]
            end = stop
        return [*pieces, text[end:]]

    @staticmethod
    def normalize(text: str) -> str:
        """Bring a text to Unicode NFC; lone surrogates, which no encoding can hold, become U+FFFD.

        Offsets always refer to the normalized text.
        """
        if text.isascii():
            return text
        return unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", text))


def _append(pieces: list[str], more: list[str]) -> None:
    """Append the pieces of the text that follows."""
    pieces[-1] += more[0]
    pieces += more[1:]


def plain_apostrophes(word: str) -> str:
    """Return the word in lower case with typewriter apostrophes, as vocabularies have them."""
    return word.lower().replace("’", "'")


def without_accents(word: str) -> str:
    """Return the word as `plain_apostrophes` does, and its letters without accents.

    These are the combining marks of Latin, Greek and Cyrillic. Letters of their own, such as ø, and
    the vowel signs of other scripts stay.
    """
    plain = plain_apostrophes(word)
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


# How a word that a vocabulary lacks is looked up again, in order.
OTHER_FORMS = (str.lower, plain_apostrophes, without_accents)

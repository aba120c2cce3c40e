"""Words of texts and of token lists: segmentation, normalization and letter case.

The rule is chosen so that nothing with content escapes: every character is part of a word unless it
is white space, a control character, punctuation, or a currency, mathematical or modifier symbol.
What remains between the words (the separators) is released as it is. Numbers, e-mail addresses,
URLs, user names, hashtags (without their sign), emoji and any script are words; a run of characters
without a space between them, as in Chinese, is one word, unless a segmenter splits it further (see
`segmenters`), whose words touch. No other words do, and replacing each
of them by a word of letters keeps them and the separators when the text is segmented again. Words
that end in digits, "www", or addresses may join with what is beside them: "pg-13" can become
"1837-13", which is one word. Privacy loses nothing by that, since separators and words are what is
released; who pairs the words of a release with those of its original has to look.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from typing import Literal, overload

from tokenizers import Regex, pre_tokenizers

from hf_dxprivacy.errors import InvalidTypeError, a_kind
from hf_dxprivacy.text.segmenters import WORDS, splitter

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
# All that joins a word is part of an address too, and an "@" joins whatever is before and after it.
# Otherwise what is replaced word by word, as in "it's@b.c" or "noon@ten", could be read as one
# address, and so as fewer words.
_AT = r"['’_.%+\-]*+@"
_WORD = rf"{_CHARACTER}++(?>(?:(?:['’]|_++|{_AT}|{_NUMBER_JOINER}){_CHARACTER}++){_PARTS})?+"
_EMAIL = (
    rf"(?>{_CHARACTER}(?:{_CHARACTER}|['’_.%+\-]|{_NUMBER_JOINER}){{0,63}})"
    rf"@{_CHARACTER}++(?>(?:(?:[_.%+\-@]++|['’]|{_NUMBER_JOINER}){_CHARACTER}++){_PARTS})?+"
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

# Characters after which a text that is not plain is cut at the next space.
PART = 1 << 16

_ACCENTS = re.compile("[\u0300-\u036f]")
# Only characters from U+0300 on are combining marks. Runs of so many in a row take no time to sort.
_MAYBE_MARKS = re.compile("[^\x00-\u02ff]{64,}")
_SURROGATES = re.compile("[\ud800-\udfff]")


Cell = str | list[str | None] | None


@dataclass(frozen=True, repr=False, slots=True)
class _Words(Sequence[str]):
    """The words of a cell, which stands for the sequence of them."""

    words: list[str]

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.words[index]


@dataclass(frozen=True, repr=False, slots=True)
class TextRow(_Words):
    """A text: its words, and the strings around them (one more than words)."""

    separators: list[str]

    def detokenize(self, words: Sequence[str | None]) -> str:
        """Return the text with other words in the places of its own; None leaves a gap."""
        parts = [""] * (2 * len(words) + 1)
        parts[0::2] = self.separators
        parts[1::2] = [word or "" for word in words]
        return "".join(parts)

    def before(self, at: int) -> str:
        """Return the text between a word and the word before it."""
        return self.separators[at]

    def offsets(self, words: Sequence[str | None]) -> list[Span]:
        """Return the character offsets of the words in `detokenize(words)`; None has none."""
        lengths = [0] * (2 * len(words))
        lengths[0::2] = map(len, self.separators[: len(words)])
        lengths[1::2] = [len(word or "") for word in words]
        ends = [*accumulate(lengths)]
        places = zip(ends[0::2], ends[1::2], words, strict=True)
        return [(start, end) for start, end, word in places if word is not None]


@dataclass(frozen=True, repr=False, slots=True)
class TokenRow(_Words):
    """A token list: its words, their positions, and all tokens (punctuation, None) as they came."""

    positions: list[int]
    tokens: list[str | None]

    def detokenize(self, words: Sequence[str | None]) -> list[str | None]:
        """Return the tokens with other words in the places of its own; None drops a token."""
        new = dict(zip(self.positions, words, strict=True))
        tokens = enumerate(self.tokens)
        return [new.get(at, token) for at, token in tokens if new.get(at, "") is not None]

    def before(self, at: int) -> str:
        """Return the text between a word and the word before it."""
        start = self.positions[at - 1] + 1 if at else 0
        return " ".join(token or "" for token in self.tokens[start : self.positions[at]])

    def offsets(self, words: Sequence[str | None]) -> list[Span]:
        """Return the positions of the words in `detokenize(words)`; None has none."""
        left = list(accumulate((word is None for word in words), initial=0))
        moved = zip(self.positions, words, left, strict=False)
        return [(p - gone, p - gone + 1) for p, word, gone in moved if word is not None]


Row = TextRow | TokenRow


class RowReader:
    """Finds the words of texts and of lists of tokens, with the `tokenizers` library.

    Args:
        segmenter: What splits texts in scripts without spaces further; see `segmenters.identity`.
    """

    def __init__(self, segmenter: str = WORDS) -> None:
        self._split = _usual_split()
        self._further = splitter(segmenter)

    def read(self, cell: object) -> Row | None:
        """Return the words of a cell, or None for a missing one.

        Args:
            cell: A string, a sequence of strings (tokens; None among them is left alone), or a
                missing value.

        Raises:
            InvalidTypeError: If it is anything else.
        """
        if isinstance(cell, str):
            return self.read_text(cell)
        if is_missing(cell):
            return None
        if isinstance(cell, (bytes, dict)) or not isinstance(cell, Iterable):
            raise InvalidTypeError(
                f"expected a text (str), a list of tokens or None, got {a_kind(cell)}"
                f"{_remedy(cell)}"
            )
        row = TokenRow([], [], [])
        for position, token in enumerate(cell):
            if isinstance(token, str):
                normal = self.normalize(token)
                row.tokens.append(normal)
                if len(self._plain(normal)) > 1:
                    row.words.append(normal)
                    row.positions.append(position)
            elif is_missing(token):
                row.tokens.append(None)
            else:
                raise InvalidTypeError(
                    "expected a list of tokens (str), got one that holds "
                    f"{a_kind(token)}{_remedy(token, within=True)}"
                )
        return row

    def read_text(self, text: str) -> TextRow:
        """Return the words of a text (after normalization) and its separators."""
        pieces = self.segment(self.normalize(text))
        return TextRow(pieces[1::2], pieces[0::2])

    def words(self, text: str) -> list[tuple[str, Span]]:
        """Return the words of a normalized text with their character offsets, in order."""
        words: list[tuple[str, Span]] = self._split.pre_tokenize_str(text)
        return words

    def segment(self, text: str) -> list[str]:
        """Return the separators and the words of a normalized text, in turn.

        The words are those of `words`, found faster in plain text, and split by the segmenter.
        There is one piece more than twice the words.
        """
        pieces = self._plain(text)
        return pieces if self._further is None else self._further(pieces)

    def _plain(self, text: str) -> list[str]:
        # No word holds a space or depends on what is beyond one, so a text may be cut there.
        pieces, end = [""], 0
        for found in _NOT_PLAIN.finditer(text):
            start = text.rfind(" ", end, found.start()) + 1 or end
            _append(pieces, _PLAIN_WORD.split(text[end:start]))
            end = found.end()
            _append(pieces, self._segment(text[start:end]))
        if not end:
            return _PLAIN_WORD.split(text)
        _append(pieces, _PLAIN_WORD.split(text[end:]))
        return pieces

    def _segment(self, text: str) -> list[str]:
        # In parts that end at a space: a signal is not heeded before a call of the library returns.
        pieces, end = [""], 0
        while end < len(text):
            start, end = end, text.find(" ", end + PART) + 1 or len(text)
            part, after = text[start:end], 0
            for word, (first, last) in self.words(part):
                pieces[-1] += part[after:first]
                pieces += [word, ""]
                after = last
            pieces[-1] += part[after:]
        return pieces

    @staticmethod
    def normalize(text: str) -> str:
        """Bring a text to Unicode NFC; lone surrogates, which no encoding can hold, become U+FFFD.

        Offsets always refer to the normalized text.
        """
        if text.isascii():
            return text
        return unicodedata.normalize("NFC", _ordered(_SURROGATES.sub("\ufffd", text)))


@cache
def _usual_split() -> pre_tokenizers.Split:
    # To compile the pattern takes as long as to read fifty texts.
    return pre_tokenizers.Split(Regex(WORD_PATTERN), "removed", invert=True)


def _ordered(text: str) -> str:
    return _MAYBE_MARKS.sub(_in_canonical_order, text)


def _in_canonical_order(found: re.Match[str]) -> str:
    """Return decomposed text with every run of combining marks in canonical order.

    `unicodedata.normalize` orders a run by insertion, which takes time quadratic in its length.
    Ordering it before (a stable sort by combining class, UAX #15) changes no normal form.
    """
    text = found[0]
    # Linear: text that is out of order is found to be no normal form without ordering it.
    if unicodedata.is_normalized("NFC", text):
        return text
    pieces = []
    characters = "".join(unicodedata.normalize("NFD", character) for character in text)
    for starters, run in groupby(characters, lambda c: not unicodedata.combining(c)):
        pieces.append("".join(run))
        if not starters:
            pieces[-1] = "".join(sorted(pieces[-1], key=unicodedata.combining))
    return "".join(pieces)


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
    the vowel signs of other scripts stay; ß becomes ss, as it is written in Switzerland.
    """
    plain = plain_apostrophes(word).replace("ß", "ss")
    if plain.isascii():
        return plain
    apart = unicodedata.normalize("NFD", _ordered(plain))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


def without_possessive(word: str) -> str:
    """Return the word as `plain_apostrophes` does, and without a closing "'s"."""
    return plain_apostrophes(word).removesuffix("'s")


def _without_both(word: str) -> str:
    return without_accents(without_possessive(word))


# How a word that a vocabulary lacks is looked up again, in order. The second is for vocabularies
# with capitals, such as those of German.
LOOKUP_FORMS = (
    *(str.lower, str.capitalize),
    *(plain_apostrophes, without_accents, without_possessive, _without_both),
)


def _remedy(value: object, within: bool = False) -> str:
    """Say what to do about a cell, or an entry of one, that is no text."""
    if isinstance(value, dict):  # as in chats and translations
        return (
            "; name the path to the texts within, as in text_column='messages[].content', or map a "
            "function of your own that hands them to privatizer.privatize(), as docs/columns.md "
            "shows"
        )
    if within and isinstance(value, int):
        return "; token ids are for TokenPrivatizer"
    return "; name a column of texts, or turn the values into texts with str()"


def is_missing(value: object) -> bool:
    """Tell whether a value is missing: None, NaN or `pandas.NA`."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ == "NAType"


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

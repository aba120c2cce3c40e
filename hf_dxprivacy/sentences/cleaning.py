"""Public texts for a pool: read from files and data sets, split into sentences, and cleaned."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text import RowReader, is_missing, shape_of
from hf_dxprivacy.text.slurs import is_slur

# Characters that are split into sentences at once; a longer sentence is cut.
LONGEST = 1 << 13
# Words of a sentence of a pool: fewer say too little, more are seldom one sentence.
WORDS = (3, 40)

# Shapes of words that may name a person, who did not agree to be in a pool that is published.
_PERSONAL = {"<email>", "<phone>", "<handle>"}
# Seven digits or more in a row, whatever stands between them: most telephone and account numbers.
_LONG_NUMBER = re.compile(r"\d(?:[ ()/.-]{0,3}\d){6}")
_SPACES = re.compile(r"\s+")


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text into its sentences.

    A piece without a letter, such as the number of an item of a list, belongs to the sentence that
    follows; at the end, to the one before.

    Args:
        text: Any text.
        language: Its language, as a code of ISO 639-1; decides on abbreviations.

    Returns:
        The sentences without the spaces around them; none for a text of spaces only.

    Raises:
        MissingExtraError: If sentencex is not installed.
    """
    sentences: list[str] = []
    start: list[str] = []
    # Half of a character, which no text in UTF-8 has, becomes a question mark.
    for piece in _segmented(text.encode("utf-8", "replace").decode(), language):
        start.append(piece)
        if any(map(str.isalpha, piece)):
            sentences.append("".join(start).strip())
            start = []
    if left := "".join(start).strip():
        sentences[-1:] = [" ".join([*sentences[-1:], left])]
    return sentences


def _segmented(text: str, language: str) -> Iterator[str]:
    """Yield what sentencex cuts a text into, in time that is linear in its length.

    Its own time is quadratic in runs of quotation marks and in paragraphs of many quotations.
    """
    segment, left = require("sentencex", "sentences").segment, ""
    for start in range(0, len(text), LONGEST):
        # The last sentence may go on in the next part.
        *whole, left = segment(language, left + text[start : start + LONGEST])
        yield from whole
        if len(left) > LONGEST:
            end = left.rfind(" ", LONGEST // 2) + 1 or len(left)
            yield left[:end]
            left = left[end:]
    yield left


def plain(sentence: str) -> str:
    """Return a sentence with one space for each run of white space."""
    return _SPACES.sub(" ", sentence.encode("utf-8", "replace").decode()).strip()


def clean_sentences(
    sentences: Iterable[str], words: tuple[int, int] = WORDS, segmenter: str = "words"
) -> tuple[list[str], dict[str, int]]:
    """Leave out what a pool should not hold.

    Args:
        sentences: Public sentences; line breaks and runs of spaces become one space.
        words: The least and the largest number of words of a sentence.
        segmenter: What splits them into words, as for `DxPrivatizer`.

    Returns:
        Those that stay, each once, in order; and how many were left out by reason: "length",
        "duplicates", "slurs", "personal data" (an e-mail address, a handle, or a telephone or
        other number of seven digits or more).

    Raises:
        InvalidTypeError: If it is a single string, or an entry is no string.
    """
    if isinstance(sentences, str):
        raise InvalidTypeError("expected a sequence of sentences, got one string; pass a list")
    reader, kept, reasons = RowReader(segmenter), dict[str, None](), Counter[str]()
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise InvalidTypeError(f"expected sentences, got a {type(sentence).__name__}")
        text = plain(sentence)
        row = reader.read_text(text)
        shapes = (shape_of(word, row.before(at), at == 0) for at, word in enumerate(row.words))
        if not words[0] <= len(row.words) <= words[1]:
            reasons["length"] += 1
        elif text in kept:
            reasons["duplicates"] += 1
        elif any(map(is_slur, row.words)):
            reasons["slurs"] += 1
        elif _LONG_NUMBER.search(text) or not _PERSONAL.isdisjoint(shapes):
            reasons["personal data"] += 1
        else:
            kept[text] = None
    return list(kept), dict(reasons)


def lines_of(path: str | Path) -> Iterator[str]:
    """Yield the lines of a text file in UTF-8, or of one that gzip has compressed.

    Raises:
        InvalidValueError: If it cannot be read, is truncated or in another encoding; names the
            line.
    """
    number = 0
    try:
        with open(path, "rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{path}, line {number}: expected text in UTF-8, got the byte "
            f"0x{error.object[error.start]:02x}; convert it, for instance with iconv -t UTF-8"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidValueError(
            f"{path}: truncated or damaged after line {number}; fetch it again"
        ) from error
    except OSError as error:
        raise InvalidValueError(f"{path}: cannot be read ({error.strerror})") from error


def cells_of(rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> Iterator[list[Any]]:
    """Yield the cells of rows in some columns; the first holds texts, None where one is missing.

    Raises:
        InvalidValueError: If there is no such column.
        InvalidTypeError: If a row is no mapping, or a cell of the first column no text.
    """
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidTypeError(
                f"expected rows with columns, got a {type(row).__name__}; pass one split of a "
                "DatasetDict, and lists of sentences to SentencePool.from_sentences"
            )
        for name in columns:
            if name not in row:
                raise InvalidValueError(
                    f"there is no column {name!r}; columns are {', '.join(map(repr, row))}"
                )
        text, *others = (row[name] for name in columns)
        text = None if is_missing(text) else text
        if text is not None and not isinstance(text, str):
            raise InvalidTypeError(
                f"row {number}, column {columns[0]!r}: expected a text, got a {type(text).__name__}"
            )
        yield [text, *others]

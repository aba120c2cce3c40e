"""Texts as rows of symbols: the words of a public alphabet, and four marks."""

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text import RowReader, plain_apostrophes

# Codes of the marks; the words come after them. START and CUT (the end of a record that was cut)
# never follow a word, so that what may follow has the codes from UNKNOWN on.
START, CUT, UNKNOWN, END = range(4)
FIRST_WORD = 4

# "<" is no part of any word, so that no word is taken for a mark.
MARKS = ("<start>", "<cut>", "<unknown>", "<end>")

_BATCH_ROWS = 1000

Symbols = NDArray[np.int32]


def fold(words: Iterable[str]) -> tuple[str, ...]:
    """Return an alphabet: the distinct words in the form in which words are compared.

    Args:
        words: Public words. Those that are not one word in a text, such as "new york", are left
            out.

    Raises:
        InvalidTypeError: If they are not strings.
        InvalidValueError: If no word is left.
    """
    reader = RowReader()
    folded: dict[str, None] = {}
    if isinstance(words, str):
        raise InvalidTypeError("expected an alphabet of several words, got one string")
    for word in words:
        if not isinstance(word, str):
            raise InvalidTypeError(f"expected words (str), got a {type(word).__name__}")
        row = reader.read_text(word)
        if len(row.words) == 1 and not any(row.carrier):
            folded[plain_apostrophes(row.words[0])] = None
    _validate.at_least(1, "no word of the alphabet is one word in a text", alphabet=len(folded))
    return tuple(folded)


def codes(words: Sequence[str]) -> dict[str, int]:
    """Return the code of each word."""
    return {word: code for code, word in enumerate(words, FIRST_WORD)}


def encode(words: Iterable[str], known: Mapping[str, int]) -> list[int]:
    """Return the codes of words; `UNKNOWN` for those that are not known."""
    return [known.get(plain_apostrophes(word), UNKNOWN) for word in words]


def read_symbols(
    texts: Any, alphabet: Sequence[str], l_max: int, text_column: str = "text"
) -> Symbols:
    """Read a corpus, one pass, four bytes for each word.

    Args:
        texts: Texts or token lists; or a `Dataset` or `IterableDataset`. Missing rows, and rows
            without a word, are left out.
        alphabet: As `fold` returns it.
        l_max: A record keeps this many symbols, `START` among them.
        text_column: The column of a dataset.

    Returns:
        (N,) codes: for each record `START`, its words, and `END`, or `CUT` if it was longer.

    Raises:
        InvalidTypeError: If a row is neither text, tokens nor missing; does not show it.
        InvalidValueError: If the dataset has no such column.
    """
    reader, known = RowReader(), codes(alphabet)
    symbols = array("i")
    for position, cell in enumerate(_cells(texts, text_column)):
        try:
            row = reader.read(cell)
        except InvalidTypeError as error:
            raise InvalidTypeError(f"row {position} of the corpus: {error}") from None
        if row is not None and row.words:
            kept = row.words[: l_max - 1]
            end = END if len(kept) == len(row.words) else CUT
            symbols.extend([START, *encode(kept, known), end])
    return np.frombuffer(symbols, dtype=np.int32) if symbols else np.empty(0, np.int32)


def _cells(texts: Any, column: str) -> Iterator[object]:
    if _is_dataset(texts):
        yield from _column(texts, column)
        return
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
        raise InvalidTypeError(
            "expected texts, token lists, a Dataset or an IterableDataset, got a "
            f"{type(texts).__name__}"
        )
    yield from texts


def _column(dataset: Any, column: str) -> Iterator[object]:
    names = dataset.column_names
    try:
        # A stream may not know its columns before it is read.
        if names is not None and column not in names:
            raise KeyError(column)
        for batch in dataset.select_columns([column]).iter(batch_size=_BATCH_ROWS):
            yield from batch[column]
    except KeyError as error:
        if error.args != (column,):
            raise
        has = "" if names is None else f" (it has {', '.join(map(repr, names))})"
        raise InvalidValueError(
            f"the dataset has no column {column!r}{has}; pass text_column="
        ) from None


def _is_dataset(texts: object) -> bool:
    # Whoever has a dataset has imported its library; importing it here would cost a second.
    library = sys.modules.get("datasets")
    return library is not None and isinstance(texts, (library.Dataset, library.IterableDataset))

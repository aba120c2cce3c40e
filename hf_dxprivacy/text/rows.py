"""A cell of a text column, taken apart into words and what lies between them, and put together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.text.words import Span, Splitter

Cell = str | list[str | None] | None


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class TextRow(_Words):
    """A text: its words, and the strings around them (one more than words)."""

    carrier: list[str]

    def filled(self, words: Sequence[str | None]) -> str:
        """Return the text with other words in the places of its own; None leaves a gap."""
        parts = [""] * (2 * len(words) + 1)
        parts[0::2] = self.carrier
        parts[1::2] = [word or "" for word in words]
        return "".join(parts)

    def places(self, words: Sequence[str | None]) -> list[Span]:
        """Return the character offsets of the words in `filled(words)`; None has none."""
        lengths = [len(word or "") for word in words]
        before = zip(self.carrier, [0, *lengths], strict=True)
        starts = accumulate(len(carrier) + length for carrier, length in before)
        places = zip(starts, lengths, words, strict=False)
        return [(start, start + length) for start, length, word in places if word is not None]


@dataclass(frozen=True)
class TokenRow(_Words):
    """A token list: its words, their positions, and all tokens (punctuation, None) as they came."""

    positions: list[int]
    tokens: list[str | None]

    def filled(self, words: Sequence[str | None]) -> list[str | None]:
        """Return the tokens with other words in the places of its own; None drops a token."""
        filled = list(self.tokens)
        for position, word in zip(self.positions, words, strict=True):
            filled[position] = word
        dropped = {p for p, word in zip(self.positions, words, strict=True) if word is None}
        return [token for i, token in enumerate(filled) if i not in dropped] if dropped else filled

    def places(self, words: Sequence[str | None]) -> list[Span]:
        """Return the positions of the words in `filled(words)`; None has none."""
        left = list(accumulate((word is None for word in words), initial=0))
        moved = zip(self.positions, words, left, strict=False)
        return [(p - gone, p - gone + 1) for p, word, gone in moved if word is not None]


Row = TextRow | TokenRow


def fill(rows: Sequence[Row | None], words: Sequence[Sequence[str | None]]) -> list[Cell]:
    """Return rows with other words in the places of their own; None for a missing row."""
    return [None if r is None else r.filled(w) for r, w in zip(rows, words, strict=True)]


class RowReader:
    """Takes cells apart."""

    def __init__(self) -> None:
        self._splitter = Splitter()

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
        if isinstance(cell, (bytes, dict)) or not hasattr(cell, "__iter__"):
            raise InvalidTypeError(
                f"expected a text (str), a list of tokens or None, got a {_kind(cell)}"
            )
        return self._tokens(iter(cell))

    def read_column(
        self, cells: Sequence[object], column: str, keys: Sequence[int] | None
    ) -> list[Row | None]:
        """Return the words of each cell of a column.

        Args:
            cells: As for `read`.
            column: The column's name, for messages.
            keys: The index of each row, for messages, if known.

        Raises:
            InvalidTypeError: If a cell is neither text, tokens nor missing; names column and row.
        """
        rows = []
        for position, cell in enumerate(cells):
            try:
                rows.append(self.read(cell))
            except InvalidTypeError as error:
                where = f"{position} of the batch" if keys is None else str(keys[position])
                raise InvalidTypeError(f"column {column!r}, row {where}: {error}") from None
        return rows

    def read_text(self, text: str) -> TextRow:
        """Return the words of a text (after normalization) and what lies between them."""
        pieces = self._splitter.cut(self._splitter.normalize(text))
        return TextRow(pieces[1::2], pieces[0::2])

    def _tokens(self, cell: Iterator[object]) -> TokenRow:
        words: list[str] = []
        positions: list[int] = []
        tokens: list[str | None] = []
        for position, token in enumerate(cell):
            if isinstance(token, str):
                normal = self._splitter.normalize(token)
                tokens.append(normal)
                if len(self._splitter.cut(normal)) > 1:
                    words.append(normal)
                    positions.append(position)
            elif is_missing(token):
                tokens.append(None)
            else:
                raise InvalidTypeError(
                    f"expected a list of tokens (str), got one that holds a {_kind(token)}"
                )
        return TokenRow(words, positions, tokens)


def _kind(value: object) -> str:
    """Return the name of a type, and for what chats and translations consist of the remedy."""
    remedy = (
        "; map a function that takes the texts out of it, hands them to privatizer.privatize(), "
        "and puts the released ones in their places, as docs/columns.md shows for chats"
    )
    return type(value).__name__ + remedy * isinstance(value, dict)


def is_missing(value: object) -> bool:
    """Tell whether this is None, or pandas' way of saying so."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ == "NAType"

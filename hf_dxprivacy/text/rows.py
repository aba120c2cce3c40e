"""A cell of a text column, taken apart into words and what lies between them, and put together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.text.words import Splitter

Cell = str | list[str | None] | None


@dataclass(frozen=True)
class TextRow:
    """A text: its words, and the strings around them (one more than words)."""

    words: list[str]
    carrier: list[str]

    def filled(self, words: Sequence[str | None]) -> str:
        """Return the text with other words in the places of its own; None leaves a gap."""
        parts = [""] * (2 * len(words) + 1)
        parts[0::2] = self.carrier
        parts[1::2] = [word or "" for word in words]
        return "".join(parts)


@dataclass(frozen=True)
class TokenRow:
    """A token list: its words, their positions, and all tokens (punctuation, None) as they came."""

    words: list[str]
    positions: list[int]
    tokens: list[str | None]

    def filled(self, words: Sequence[str | None]) -> list[str | None]:
        """Return the tokens with other words in the places of its own; None drops a token."""
        filled = list(self.tokens)
        for position, word in zip(self.positions, words, strict=True):
            filled[position] = word
        dropped = {p for p, word in zip(self.positions, words, strict=True) if word is None}
        return [token for i, token in enumerate(filled) if i not in dropped] if dropped else filled


Row = TextRow | TokenRow


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
                f"expected a text (str), a list of tokens or None, got a {type(cell).__name__}"
            )
        return self._tokens(iter(cell))

    def read_text(self, text: str) -> TextRow:
        """Return the words of a text (after normalization) and what lies between them."""
        text = self._splitter.normalize(text)
        words, carrier, end = [], [], 0
        for word, (start, stop) in self._splitter.split(text):
            carrier.append(text[end:start])
            words.append(word)
            end = stop
        carrier.append(text[end:])
        return TextRow(words, carrier)

    def _tokens(self, cell: Iterator[object]) -> TokenRow:
        words: list[str] = []
        positions: list[int] = []
        tokens: list[str | None] = []
        for position, token in enumerate(cell):
            if isinstance(token, str):
                normal = self._splitter.normalize(token)
                tokens.append(normal)
                if self._splitter.split(normal):
                    words.append(normal)
                    positions.append(position)
            elif is_missing(token):
                tokens.append(None)
            else:
                raise InvalidTypeError(
                    f"expected a list of tokens (str), got one that holds a {type(token).__name__}"
                )
        return TokenRow(words, positions, tokens)


def is_missing(value: object) -> bool:
    """Tell whether this is None, or pandas' way of saying so."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ == "NAType"

"""Texts as rows of symbols, and released n-grams as a tree in one sorted table."""

import json
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_at_least
from hf_dxprivacy.text import RowReader, plain_apostrophes

# Codes of the marks; the words come after them. START and CUT (the end of a record that was cut)
# never follow a word, so that what may follow has the codes from UNKNOWN on.
START, CUT, UNKNOWN, END = range(4)
FIRST_WORD = 4

# "<" is no part of any word, so that no word is taken for a mark.
MARKS = ("<start>", "<cut>", "<unknown>", "<end>")

_BATCH_ROWS = 1000

Symbols = NDArray[np.int32]
Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

# Parent of a single symbol.
ROOT = -1


def fold(words: Iterable[str]) -> tuple[str, ...]:
    """Return an alphabet: the distinct words in the form in which words are compared.

    Args:
        words: Public words. Those that are not one word in a text, such as "new york", are left
            out.

    Raises:
        InvalidTypeError: If they are not strings.
        InvalidValueError: If no word is left.
    """
    reader, folded = RowReader(), dict[str, None]()
    if isinstance(words, str):
        raise InvalidTypeError("expected an alphabet of several words, got one string")
    for word in words:
        if not isinstance(word, str):
            raise InvalidTypeError(f"expected words (str), got a {type(word).__name__}")
        row = reader.read_text(word)
        if len(row.words) == 1 and not any(row.separators):
            folded[plain_apostrophes(row.words[0])] = None
    require_at_least(1, "no word of the alphabet is one word in a text", alphabet=len(folded))
    return tuple(folded)


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
    reader, known = RowReader(), {word: code for code, word in enumerate(alphabet, FIRST_WORD)}
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
    # A dataset comes with its library imported; importing it here would cost a second.
    library = sys.modules.get("datasets")
    if library is None or not isinstance(texts, (library.Dataset, library.IterableDataset)):
        if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
            raise InvalidTypeError(
                "expected texts, token lists, a Dataset or an IterableDataset, got a "
                f"{type(texts).__name__}"
            )
        yield from texts
        return
    names = texts.column_names
    try:
        # A stream may not know its columns before it is read.
        if names is not None and column not in names:
            raise KeyError(column)
        for batch in texts.select_columns([column]).iter(batch_size=_BATCH_ROWS):
            yield from batch[column]
    except KeyError as error:
        if error.args != (column,):
            raise
        has = "" if names is None else f" (it has {', '.join(map(repr, names))})"
        raise InvalidValueError(
            f"the dataset has no column {column!r}{has}; pass text_column="
        ) from None


@dataclass(frozen=True, eq=False)
class Grams:
    """N-grams with their counts.

    Node i is a gram: the gram of its parent, and one more symbol. The nodes are in the order of
    (length, parent, symbol), so that the children of a node lie side by side, and node i of length
    1 is the symbol with the code i. The four marks among them have no count of their own.

    Attributes:
        words: The words with a released count, in the order of their codes.
        parent: (m,) node of the gram without its last symbol; `ROOT` for a single symbol.
        symbol: (m,) code of the last symbol.
        count: (m,) released counts, whole numbers > 0; 0 for the marks.
        share: (m,) what part of ε_g went into the count: its noise is Laplace(l_max/(share·ε_g)).
    """

    words: tuple[str, ...]
    parent: Ids
    symbol: Ids
    count: Floats
    share: Floats

    def __getstate__(self) -> dict[str, Any]:
        # Without what is computed from the fields: a fingerprint must not depend on its presence.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_words(cls, words: Sequence[str], count: Floats, share: float) -> "Grams":
        """Make the first level: the marks and the words."""
        size = FIRST_WORD + len(words)
        counts = np.concatenate([np.zeros(FIRST_WORD), count])
        parent = np.full(size, ROOT, dtype=np.int64)
        return cls(tuple(words), parent, np.arange(size), counts, np.full(size, share))

    def extended(self, keys: Ids, count: Floats, share: Floats) -> "Grams":
        """Add a level: the keys (ascending) of children of the last level, and their values."""
        return replace(
            self,
            parent=np.concatenate([self.parent, keys // self.width]),
            symbol=np.concatenate([self.symbol, keys % self.width]),
            count=np.concatenate([self.count, count]),
            share=np.concatenate([self.share, share]),
        )

    def __len__(self) -> int:
        """Number of grams that have a count."""
        return len(self.parent) - FIRST_WORD

    @property
    def width(self) -> int:
        """Number of symbols; ``parent * width + symbol`` is the key of a node."""
        return FIRST_WORD + len(self.words)

    @lazy_property
    def codes(self) -> dict[str, int]:
        """The code of each word."""
        return {word: code for code, word in enumerate(self.words, FIRST_WORD)}

    @lazy_property
    def keys(self) -> Ids:
        """The keys of all nodes, ascending."""
        return self.parent * self.width + self.symbol

    @lazy_property
    def levels(self) -> list[slice]:
        """The nodes of each length."""
        bounds = [0, int(np.searchsorted(self.parent, 0))]
        while bounds[-1] < len(self.parent):
            bounds.append(int(np.searchsorted(self.parent, bounds[-1])))
        return [slice(start, stop) for start, stop in pairwise(bounds)]

    def child(self, nodes: Ids, symbols: Ids) -> Ids:
        """Return the nodes that symbols lead to from nodes; −1 where there is none."""
        wanted = nodes * self.width + symbols
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[found] == wanted, found, -1)

    def followers(self, nodes: Ids) -> tuple[Ids, Ids]:
        """Return the first child of each node and the end of its children; equal without any.

        The children of the root are whatever may follow something: not `START`, not `CUT`.
        """
        first = np.searchsorted(self.parent, nodes, side="left")
        stop = np.searchsorted(self.parent, nodes, side="right")
        return np.where(nodes == ROOT, UNKNOWN, first), stop

    @lazy_property
    def suffix(self) -> Ids:
        """(m,) node of the gram without its first symbol; `ROOT` for a single symbol."""
        suffix = np.full(len(self.parent), ROOT, dtype=np.int64)
        for level in self.levels[1:]:
            suffix[level] = self.child(suffix[self.parent[level]], self.symbol[level])
        return suffix

    @lazy_property
    def spent(self) -> Floats:
        """(m,) part of ε_g that went into a gram and all its beginnings together."""
        spent = self.share.copy()
        for level in self.levels[1:]:
            spent[level] += spent[self.parent[level]]
        return spent

    @lazy_property
    def probability(self) -> Floats:
        """(m,) probability of the last symbol after the symbols before it.

        The count, divided by the count of the parent, or by the sum over the parent's children
        where that is larger or the only one.
        """
        sums = np.bincount(self.parent + 1, self.count, minlength=len(self.parent) + 1)
        totals = np.maximum(sums, np.concatenate([[0.0], self.count]))[self.parent + 1]
        result: Floats = np.divide(self.count, totals, out=np.zeros(len(totals)), where=totals > 0)
        return result

    @lazy_property
    def expanded(self) -> NDArray[np.bool_]:
        """(m,) whether a continuation of the gram was released."""
        return np.bincount(self.parent + 1, minlength=len(self.parent) + 1)[1:] > 0

    def spelled(self, node: int) -> list[str]:
        """Return a gram as strings, with `MARKS` for the marks."""
        codes = []
        while node != ROOT:
            codes.append(int(self.symbol[node]))
            node = int(self.parent[node])
        return [MARKS[c] if c < FIRST_WORD else self.words[c - FIRST_WORD] for c in codes[::-1]]

    def serialized(self) -> bytes:
        """Return one JSON object a line for each gram with a count, in the order of the nodes."""
        entries = (
            {"gram": self.spelled(n), "count": float(self.count[n]), "share": float(self.share[n])}
            for n in range(FIRST_WORD, len(self.parent))
        )
        return "".join(f"{json.dumps(e, ensure_ascii=False)}\n" for e in entries).encode()

    @classmethod
    def from_serialized(cls, content: bytes) -> "Grams":
        """Read what `serialized` wrote; ValueError, LookupError or TypeError if it is none."""
        entries = [json.loads(line) for line in content.decode().rstrip("\n").split("\n")]
        spelled = [tuple(entry["gram"]) for entry in entries]
        values = np.array([[entry["count"], entry["share"]] for entry in entries], dtype=np.float64)
        words = [gram[0] for gram in spelled if len(gram) == 1]
        codes = {name: code for code, name in enumerate((*MARKS, *words))}
        nodes: dict[tuple[str, ...], int] = {(): ROOT}
        nodes |= {(name,): code for name, code in codes.items()}
        nodes |= {gram: node for node, gram in enumerate(spelled, FIRST_WORD)}
        grams = cls(
            words=tuple(words),
            parent=np.array([ROOT] * FIRST_WORD + [nodes[gram[:-1]] for gram in spelled]),
            symbol=np.array([*range(FIRST_WORD), *(codes[gram[-1]] for gram in spelled)]),
            count=np.concatenate([np.zeros(FIRST_WORD), values[:, 0]]),
            share=np.concatenate([np.full(FIRST_WORD, values[0, 1]), values[:, 1]]),
        )
        if not words or not all(isinstance(word, str) for word in words):
            raise ValueError("there are no words, or one is no string")
        if not (np.isfinite(values) & (values > 0)).all() or (np.diff(grams.keys) <= 0).any():
            raise ValueError("counts and shares have to be positive, and in the order of a tree")
        return grams

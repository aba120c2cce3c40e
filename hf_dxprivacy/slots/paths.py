"""Counting n-grams level by level: only continuations of what was released."""

from collections.abc import Iterator

import numpy as np

from hf_dxprivacy.slots.grams import Floats, Grams, Ids
from hf_dxprivacy.slots.symbols import CUT, END, FIRST_WORD, UNKNOWN, Symbols

# Positions looked at together; what a chunk needs beside the corpus stays below 200 MB.
_CHUNK = 1 << 22

_DEAD = -1


def word_counts(symbols: Symbols, size: int) -> Floats:
    """Return how often each of `size` words occurs, (size,)."""
    counts = np.zeros(FIRST_WORD + size, dtype=np.int64)
    for start in range(0, len(symbols), _CHUNK):
        counts += np.bincount(symbols[start : start + _CHUNK], minlength=len(counts))
    return counts[FIRST_WORD:].astype(np.float64)


def recoded(symbols: Symbols, size: int, kept: Ids) -> Symbols:
    """Return the symbols with words renumbered; those that are not kept become `UNKNOWN`.

    Args:
        symbols: (N,) codes over an alphabet of `size` words.
        size: Of the alphabet.
        kept: Positions in the alphabet of the words that stay, ascending.
    """
    table = np.full(FIRST_WORD + size, UNKNOWN, dtype=np.int32)
    table[:FIRST_WORD] = np.arange(FIRST_WORD)
    table[FIRST_WORD + kept] = FIRST_WORD + np.arange(len(kept))
    return table[symbols]


class Paths:
    """For each position of a corpus, the node that the gram from there stands at.

    Eight bytes for each symbol: the codes, and the nodes. A path ends at a mark that ends a record,
    so that no gram crosses two records, and where its gram was not released.

    Args:
        symbols: (N,) codes; each record ends with `END` or `CUT`.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._nodes = np.where((symbols == END) | (symbols == CUT), _DEAD, symbols)
        self._length = 1

    def continuations(self, width: int) -> tuple[Ids, Floats]:
        """Return the distinct keys that the paths go on to, ascending, and how many do."""
        parts = [np.unique(k, return_counts=True) for _, k in self._chunks(width)]
        if not parts:
            return np.empty(0, np.int64), np.empty(0)
        keys, part_of = np.unique(np.concatenate([k for k, _ in parts]), return_inverse=True)
        # Sums of whole numbers are exact in float64.
        return keys, np.bincount(part_of, np.concatenate([n for _, n in parts])).astype(float)

    def advance(self, grams: Grams) -> None:
        """Go on by one symbol where that leads to a released gram."""
        for positions, keys in self._chunks(grams.width):
            nodes = grams.child(keys // grams.width, keys % grams.width)
            self._nodes[positions] = np.where(keys % grams.width == END, _DEAD, nodes)
        self._length += 1

    def _chunks(self, width: int) -> Iterator[tuple[Ids, Ids]]:
        for start in range(0, len(self._nodes), _CHUNK):
            positions = start + np.flatnonzero(self._nodes[start : start + _CHUNK] != _DEAD)
            following = self._symbols[positions + self._length]
            yield positions, self._nodes[positions].astype(np.int64) * width + following

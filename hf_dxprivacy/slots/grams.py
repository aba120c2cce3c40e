"""Released n-grams as one sorted table, a tree in which a gram is the child of its beginning."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.slots.symbols import FIRST_WORD, MARKS, UNKNOWN, codes

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

ROOT = -1


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

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each word."""
        return codes(self.words)

    @cached_property
    def keys(self) -> Ids:
        """The keys of all nodes, ascending."""
        return self.parent * self.width + self.symbol

    @cached_property
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

    @cached_property
    def suffix(self) -> Ids:
        """(m,) node of the gram without its first symbol; `ROOT` for a single symbol."""
        suffix = np.full(len(self.parent), ROOT, dtype=np.int64)
        for level in self.levels[1:]:
            suffix[level] = self.child(suffix[self.parent[level]], self.symbol[level])
        return suffix

    @cached_property
    def spent(self) -> Floats:
        """(m,) part of ε_g that went into a gram and all its beginnings together."""
        spent = self.share.copy()
        for level in self.levels[1:]:
            spent[level] += spent[self.parent[level]]
        return spent

    @cached_property
    def probability(self) -> Floats:
        """(m,) probability of the last symbol after the symbols before it.

        The count, divided by the count of the parent, or by the sum over the parent's children
        where that is larger or the only one.
        """
        sums = np.bincount(self.parent + 1, self.count, minlength=len(self.parent) + 1)
        totals = np.maximum(sums, np.concatenate([[0.0], self.count]))[self.parent + 1]
        result: Floats = np.divide(self.count, totals, out=np.zeros(len(totals)), where=totals > 0)
        return result

    @cached_property
    def expanded(self) -> NDArray[np.bool_]:
        """(m,) whether a continuation of the gram was released."""
        return np.bincount(self.parent + 1, minlength=len(self.parent) + 1)[1:] > 0

    def spelled(self, node: int) -> list[str]:
        """Return a gram as strings, with `MARKS` for the marks."""
        names = (*MARKS, *self.words)
        symbols = []
        while node != ROOT:
            symbols.append(names[self.symbol[node]])
            node = int(self.parent[node])
        return symbols[::-1]

"""Contract of a selector, which marks the words of a text that are perturbed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError

Mask = NDArray[np.bool_]
Words = Sequence[Sequence[str] | None]
Rows = Mapping[str, Sequence[Any]]


class Selector(ABC):
    """Marks the slots of a text, which are perturbed; the rest, its carrier phrase, is kept.

    Selectors combine: ``a | b`` are the words that either selects, ``a & b`` those that both do,
    ``~a`` those that a leaves.
    """

    @abstractmethod
    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """Find the slots of a batch of rows.

        Args:
            words: The words of each row: a list of them, or what `text.RowReader` reads, which
                also knows what stands between them; None for a missing row.
            rows: The other columns of the batch, for selectors that read one.

        Returns:
            For each row a bool for each of its words, True where it is a slot; None for a missing
            row.
        """

    @property
    @abstractmethod
    def disclosures(self) -> tuple[str, ...]:
        """Sentences on what the choice of slots rests on or releases by itself."""

    @property
    def parts(self) -> tuple["Selector", ...]:
        """The selectors that this one is made of."""
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The other columns that `masks` needs."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    def to_dict(self) -> dict[str, Any]:
        """Return what this is made again from, beside its parts, as JSON-ready values.

        Raises:
            InvalidValueError: If it cannot be stored.
        """
        raise InvalidValueError(
            f"a {type(self).__name__} cannot be stored with a privatizer; make the privatizer "
            "anew where it is used"
        )

    def __or__(self, other: "Selector") -> "Selector":
        return _Combined("|", self, other) if isinstance(other, Selector) else NotImplemented

    def __and__(self, other: "Selector") -> "Selector":
        return _Combined("&", self, other) if isinstance(other, Selector) else NotImplemented

    def __invert__(self) -> "Selector":
        return _Inverted(self)


def spans(mask: Mask) -> list[tuple[int, int]]:
    """Return the runs of slots of a row as (start, stop) word positions, stop excluded.

    Args:
        mask: (n,) bools.
    """
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


_OPERATORS = {"|": np.logical_or, "&": np.logical_and}


class _Combined(Selector):
    def __init__(self, operator: str, first: Selector, second: Selector) -> None:
        self._operator = operator
        self._parts = (first, second)

    def __repr__(self) -> str:
        return f"({self._parts[0]!r} {self._operator} {self._parts[1]!r})"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        combine = _OPERATORS[self._operator]
        pairs = zip(*(part.masks(words, rows) for part in self._parts), strict=True)
        return [None if a is None or b is None else combine(a, b) for a, b in pairs]

    @property
    def disclosures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for part in self._parts for s in part.disclosures))

    @property
    def parts(self) -> tuple[Selector, ...]:
        return self._parts

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self._operator}


class _Inverted(Selector):
    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def __repr__(self) -> str:
        return f"~{self._selector!r}"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        masks = self._selector.masks(words, rows)
        return [None if mask is None else ~mask for mask in masks]

    @property
    def disclosures(self) -> tuple[str, ...]:
        return self._selector.disclosures

    @property
    def parts(self) -> tuple[Selector, ...]:
        return (self._selector,)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "~"}

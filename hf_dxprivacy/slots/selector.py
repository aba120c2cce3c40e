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

    Attributes:
        parts: The selectors that this one is made of.
    """

    parts: tuple["Selector", ...] = ()

    @abstractmethod
    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """Find the slots of a batch of rows.

        Args:
            words: The words of each row: a list of them, or what `text.RowReader` reads, which
                also knows what stands between them; None for a missing row.
            rows: The other columns of the batch, for selectors that read one.

        Returns:
            For each row (n,) bools, True where a word is a slot; None for a missing row.
        """

    @property
    @abstractmethod
    def disclosures(self) -> tuple[str, ...]:
        """Sentences on what the choice of slots rests on or releases by itself."""

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
        return _Combined("~", self)


def spans(mask: Mask) -> list[tuple[int, int]]:
    """Return the runs of slots of a row as (start, stop) word positions, stop excluded.

    Args:
        mask: (n,) bools.
    """
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


_OPERATORS: dict[str, np.ufunc] = {"|": np.logical_or, "&": np.logical_and, "~": np.logical_not}


class _Combined(Selector):
    """The words that an operator leaves of the masks of one or two selectors."""

    def __init__(self, operator: str, *parts: Selector) -> None:
        self._operator = operator
        self.parts = parts

    def __repr__(self) -> str:
        if self._operator == "~":
            return f"~{self.parts[0]!r}"
        return f"({self.parts[0]!r} {self._operator} {self.parts[1]!r})"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        combine = _OPERATORS[self._operator]
        found = zip(*(part.masks(words, rows) for part in self.parts), strict=True)
        return [None if any(mask is None for mask in row) else combine(*row) for row in found]

    @property
    def disclosures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for part in self.parts for s in part.disclosures))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self._operator}

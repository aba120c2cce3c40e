"""Selectors, which mark the words that are perturbed; their combinations; selectors by words."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, require_within
from hf_dxprivacy.guarantee import Disclosure
from hf_dxprivacy.text import plain_apostrophes, stop_words

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
    def disclosures(self) -> tuple[Disclosure | str, ...]:
        """What the choice of slots rests on or releases by itself, as records or sentences."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The other columns that `masks` needs."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    @property
    def corpora(self) -> dict[int, float]:
        """ε_g of each private corpus that was fitted on, by the identity of what it released."""
        return {key: value for part in self.parts for key, value in part.corpora.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the selector without those of its parts, as JSON-ready values.

        Raises:
            InvalidValueError: If it cannot be stored.
        """
        raise InvalidValueError(
            f"a {type(self).__name__} cannot be stored with a privatizer; make the privatizer "
            "anew where it is used"
        )

    def require_public(self) -> None:
        """Raise InvalidValueError if it, or a part, cannot be made on another machine."""
        for part in self.parts:
            part.require_public()

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
    """Union, intersection or complement of selectors."""

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
    def disclosures(self) -> tuple[Disclosure | str, ...]:
        return tuple(dict.fromkeys(s for part in self.parts for s in part.disclosures))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self._operator}


class ContentWordSelector(Selector):
    """Selects every word but stop words.

    Args:
        stopwords: "english", or words. They are public.

    Raises:
        InvalidTypeError: If it is neither.
        InvalidValueError: If the name is another one.
    """

    def __init__(self, stopwords: str | Iterable[str] = "english") -> None:
        # Sorted, because a set iterates in another order in every process, and the fingerprint
        # of `Dataset.map` would follow.
        self.stopwords = tuple(sorted(stop_words(stopwords)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.stopwords)} stop words)"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`."""
        del rows
        kept = frozenset(self.stopwords)

        def mask(row: Sequence[str]) -> Mask:
            return np.array([plain_apostrophes(word) not in kept for word in row], dtype=np.bool_)

        return [None if row is None else mask(row) for row in words]

    @property
    def disclosures(self) -> tuple[Disclosure | str, ...]:
        """See `Selector.disclosures`."""
        count = len(self.stopwords)
        return (Disclosure(f"Slots are all words but {count} stop words, a public list."),)

    def to_dict(self) -> dict[str, Any]:
        """See `Selector.to_dict`."""
        return {"kind": "content-words", "stopwords": list(self.stopwords)}

    @classmethod
    def from_dict(cls, stopwords: Any) -> "ContentWordSelector":
        """Make a selector of what `to_dict` returned; ArtifactError if that was altered."""
        if not isinstance(stopwords, list) or not all(isinstance(word, str) for word in stopwords):
            raise ArtifactError("expected the stop words of a selector to be a list of strings")
        return cls(stopwords)


class ShareSelector(Selector):
    """Bounds the share of words that another selector selects.

    Words are left out, or added, at even distances. Which ones depends on their positions alone,
    so that the mask says no more about a text than the mask of the other selector does, and is the
    same at every release. Words left out are not protected, parts of names included.

    Args:
        selector: The other selector.
        minimum: Least share of the words of a row, rounded up to whole words.
        maximum: Largest share, rounded down; where a row is too short for both, `minimum` holds.

    Raises:
        InvalidTypeError: If `selector` is none.
        InvalidValueError: If not 0 ≤ minimum ≤ maximum ≤ 1.
    """

    def __init__(self, selector: Selector, *, minimum: float = 0.0, maximum: float = 1.0) -> None:
        if not isinstance(selector, Selector):
            raise InvalidTypeError(f"expected a selector, got a {type(selector).__name__}")
        require_within(0, 1, "it is a share of words", minimum=minimum, maximum=maximum)
        if minimum > maximum:
            raise InvalidValueError(f"expected minimum <= maximum, got {minimum} and {maximum}")
        self.selector = selector
        self.parts = (selector,)
        self.minimum = float(minimum)
        self.maximum = float(maximum)

    def __repr__(self) -> str:
        bounds = f"minimum={self.minimum:g}, maximum={self.maximum:g}"
        return f"{type(self).__name__}({self.selector!r}, {bounds})"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`."""
        masks = self.selector.masks(words, rows)
        return [None if mask is None else self._bounded(mask) for mask in masks]

    @property
    def disclosures(self) -> tuple[Disclosure | str, ...]:
        """See `Selector.disclosures`."""
        own = (
            f"At least {self.minimum:g} and at most {self.maximum:g} of the words of a row are "
            "slots; those added or left out follow from the number of words and the other slots."
        )
        return (*self.selector.disclosures, Disclosure(own))

    def to_dict(self) -> dict[str, Any]:
        """See `Selector.to_dict`."""
        return {"kind": "share", "minimum": self.minimum, "maximum": self.maximum}

    def _bounded(self, mask: Mask) -> Mask:
        # Rounded first, because 0.3 · 10 is a little more than 3.
        least = math.ceil(round(self.minimum * len(mask), 9))
        most = max(least, math.floor(round(self.maximum * len(mask), 9)))
        slots = int(np.count_nonzero(mask))
        if slots > most:
            return _spread(mask, most)
        return mask | _spread(~mask, max(0, least - slots))


def _spread(mask: Mask, count: int) -> Mask:
    """Return a mask of `count` of the words of a mask, evenly spaced."""
    positions, spread = np.flatnonzero(mask), np.zeros_like(mask)
    spread[positions[np.arange(count) * len(positions) // max(count, 1)]] = True
    return spread

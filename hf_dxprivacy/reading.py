"""A column of a batch as it was read: its rows, whose they are, and what becomes of their words."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import columns
from hf_dxprivacy.budget import EVERYBODY, Account, BudgetUnit, Expense, PrivacyBudget
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.base import METRIC_NAMES
from hf_dxprivacy.memo import Memoize
from hf_dxprivacy.plan import OutOfVocabulary, Plan
from hf_dxprivacy.randomness import RowStreams, row_streams
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Row
from hf_dxprivacy.text.rows import is_missing

Mask = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True)
class RowKeys:
    """What the rows of a batch are known by.

    Attributes:
        indices: The index of each row, if known.
        users: Whose each row is, if known.
    """

    indices: Sequence[int] | None = None
    users: Sequence[str] | None = None

    @classmethod
    def of(
        cls, batch: columns.Columns, indices: Sequence[int] | None, user_column: str | None
    ) -> "RowKeys":
        """Read whose rows these are, if a column says so.

        Raises:
            InvalidValueError: If a row is nobody's.
            InvalidTypeError: If a user is neither a string nor a whole number.
        """
        users = None if user_column is None else _users(batch[user_column], user_column, indices)
        return cls(indices, users)


@dataclass(frozen=True)
class Reading:
    """The rows of a column, and what is to become of their words.

    Attributes:
        column: Name of the column.
        keys: What its rows are known by.
        rows: The rows; None for a missing one.
        masks: For each row which of its words may be drawn; None if all may.
        words: (m,) the words of all rows.
        plan: What is to become of each.
    """

    column: str
    keys: RowKeys
    rows: list[Row | None]
    masks: Sequence[Mask | None] | None
    words: list[str]
    plan: Plan

    @classmethod
    def of(
        cls,
        column: str,
        keys: RowKeys,
        rows: list[Row | None],
        masks: Sequence[Mask | None] | None,
        space: EmbeddingSpace,
        stopwords: AbstractSet[str],
        oov: OutOfVocabulary,
    ) -> "Reading":
        """Look up the words of rows; see `Plan.of`."""
        words = list(chain.from_iterable(row for row in rows if row is not None))
        slots = None
        if masks is not None:
            slots = np.concatenate([np.empty(0, np.bool_), *(m for m in masks if m is not None)])
        return cls(column, keys, rows, masks, words, Plan.of(words, space, stopwords, oov, slots))

    def by_row(self, words: list[T]) -> list[list[T]]:
        """Return what belongs to each word, (m,), as a list for each row."""
        return [words[start:end] for start, end in pairwise(self._ends)]

    @property
    def inputs(self) -> list[NDArray[np.int64]]:
        """For each row the inputs of the words that are drawn anew."""
        ids = self.plan.ids[self.plan.drawn]
        return [ids[start:end] for start, end in pairwise(self._drawn_ends)]

    def streams(self, seed: int | None, settings: str) -> RowStreams:
        """Return the noise of the words that are drawn anew.

        Args:
            seed: None for fresh noise.
            settings: What a seed is used for, beside the column.
        """
        # Which words are drawn is a part of what a stream is for: two releases that choose others
        # of one text, with the same noise, would cancel it out.
        drawn = self.plan.drawn.tobytes()
        places = zip(self.rows, pairwise(self._ends), strict=True)
        contents = ((*(row or ()), drawn[start:end].hex()) for row, (start, end) in places)
        return row_streams(seed, (settings, self.column), contents, self.keys.indices, self._counts)

    def expense(self, mechanism: Mechanism, unit: BudgetUnit) -> Expense:
        """Return what the release of this column costs.

        Args:
            mechanism: What draws the words.
            unit: What is protected: any one word, or all words of a user, who must be known then.
        """
        if unit == "word":
            return expense(mechanism, self.column, once_each(len(self.rows), self.keys.indices))
        uses: Counter[Account] = Counter()
        for user, count in zip(self.keys.users or (), self._counts, strict=True):
            uses[user] += count
        return expense(mechanism, self.column, uses)

    @cached_property
    def _ends(self) -> list[int]:
        """Where the words of each row end; 0 before the first."""
        return [*accumulate((len(row or ()) for row in self.rows), initial=0)]

    @cached_property
    def _drawn_ends(self) -> list[int]:
        """Where the words of each row end among those that are drawn anew; 0 before the first."""
        ends: list[int] = np.concatenate([[0], np.cumsum(self.plan.drawn)])[self._ends].tolist()
        return ends

    @property
    def _counts(self) -> list[int]:
        """How many words of each row are drawn anew."""
        return [end - start for start, end in pairwise(self._drawn_ends)]


def expense(mechanism: Mechanism, column: str, uses: Counter[Account]) -> Expense:
    """Return what it costs to draw words of a column.

    Args:
        mechanism: What draws them.
        column: Name of the column.
        uses: How many words of each account are drawn.
    """
    space = mechanism.space
    return Expense(
        purpose=f"column {column!r} by {mechanism.name!r}",
        epsilon=mechanism.space_epsilon,
        metric=f"{METRIC_NAMES[space.metric]} in the space {space.digest[:12]}",
        uses=+uses,
    )


def once_each(rows: int, indices: Sequence[int] | None) -> Counter[Account]:
    """Return the uses of a budget of words: one of each row.

    Rows without words count too. Every pass over any part of the data has to be charged to row 0,
    or a pass in another order could hide that a row was released again.

    Args:
        rows: How many rows there are.
        indices: The index of each, if known.
    """
    if indices is None:
        return Counter({EVERYBODY: min(1, rows)})
    return Counter(int(index) for index in indices)


def checked_user_column(
    name: str | None, memoize: Memoize | None, budget: PrivacyBudget | None
) -> str | None:
    """Check a name of a column of users against what it is for.

    Raises:
        InvalidTypeError: If it is of the wrong type.
        InvalidValueError: If it is missing, or for nothing.
    """
    needed = memoize == "user" or (budget is not None and budget.unit == "user")
    if needed != (name is not None):
        raise InvalidValueError(
            'memoize="user" and a budget of users need user_column=, the column that says whose a '
            "row is, and nothing else does"
        )
    return None if name is None else columns.names("user_column", name, 1)[0]


def _users(values: Sequence[Any], column: str, indices: Sequence[int] | None) -> list[str]:
    """Return whose each row is, so that 7 and "7" are one."""
    result = []
    for position, value in enumerate(values):
        where = f"{position} of the batch" if indices is None else str(indices[position])
        if is_missing(value):
            raise InvalidValueError(
                f"column {column!r}, row {where}: there is no user, and every row needs one; give "
                "each row without a user one of its own, or leave it out"
            )
        if isinstance(value, bool) or not isinstance(value, (str, Integral)):
            raise InvalidTypeError(
                f"column {column!r}, row {where}: expected a user to be a string or a whole "
                f"number, got a {type(value).__name__}"
            )
        result.append(str(value))
    return result

"""Privacy budget: a limit on the summed ε of all releases."""

import os
import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy.errors import (
    BudgetExceededError,
    InvalidValueError,
    require_one_of,
    require_positive,
)
from hf_dxprivacy.guarantee import upward

BudgetUnit = Literal["word", "user"]
Account = Hashable

# Stands for every account: a release whose rows are not known.
EVERYBODY: Account = None


@dataclass(frozen=True)
class Expense:
    """Cost of the release of one column of a batch.

    Attributes:
        purpose: Column and mechanism.
        epsilon: ε of one release of one word.
        metric: Metric of which ε is per unit. Only expenses in one metric add up; None for one
            that is paid at any distance, and adds to those of every metric.
        uses: How many words of each account are released; for the unit "word", one a row.
    """

    purpose: str
    epsilon: float
    metric: str | None
    uses: Mapping[Account, int]


class PrivacyBudget(ReprHTML):
    """Counts the cost of releases, and refuses those that would exceed a limit.

    Bounds of independent releases add up, also if later ones are chosen by what earlier ones have
    shown. Give one budget to all privatizers that touch the same data. A release that it refuses
    is not made; one that was begun is charged whole, though it may have been interrupted.

    With unit "word", neighbours are two data sets that differ in one word at one place, and all
    releases together are spent·d-private: their log-ratio is at most `spent` times the distance of
    the two words. A row is known by its index (use ``with_indices=True``, with which the same
    index of several splits counts as the same row); a call without indices is charged to all rows.
    All columns of a row are taken for copies of one text. A row that comes several times in one
    pass (``repeat``, ``concatenate_datasets`` before ``map``) has several indices, and is
    undercounted: number the rows beforehand, and take unit "user" with that column.

    With unit "user", neighbours differ in any words of one user, who is known by the privatizer's
    ``user_column``, and the log-ratio is at most `spent` times the largest distance of a pair of
    words: each word that is released costs ε. A column of row numbers makes each row a user.

    `LowTransitionSelector.fit` charges a budget of words with what another word in one record
    costs, 2·ε_g, at any distance: the log-ratio is at most that plus the rest times the distance.

    Neither depends on words, only on how many there are, which shows anyway: so nothing can be
    learned from a refusal. A release with a seed or a key is charged each time, as if it were new.

    It counts in one process, as long as that lives. A copy in another process (``num_proc=``,
    workers of a data loader) refuses every release rather than count on its own. Results that
    `Dataset.map` finds in its cache are no release and cost nothing.

    Args:
        epsilon: The limit, ε > 0, per unit of one metric: the space's, or a mechanism's own.
        unit: "word" or "user".

    Raises:
        InvalidTypeError: If ε is not a number.
        InvalidValueError: If ε is not finite and above zero, or the unit is unknown.
    """

    def __init__(self, epsilon: float, unit: BudgetUnit = "word") -> None:
        require_positive(epsilon=epsilon)
        require_one_of(("word", "user"), unit=unit)
        self.epsilon = float(epsilon)
        self.unit: BudgetUnit = unit
        self._metric: str | None = None
        self._uses: dict[tuple[str, Fraction], Counter[Account]] = {}
        self._spent = Fraction(0)
        self._process: int | None = os.getpid()
        self._lock = threading.Lock()

    def __reduce__(self) -> "tuple[object, tuple[()]]":
        # Nothing of it travels, so that a fingerprint does not depend on what was spent.
        return _copied, ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, unit={self.unit!r})"

    def __str__(self) -> str:
        spent = upward(self.spent, 6)
        lines = [f"spent {spent} of ε = {self.epsilon:g} for any one {self.unit}"]
        if self._metric is not None:
            lines[0] += f", per unit of {self._metric}"
        for (purpose, price), uses in self._uses.items():
            everybody = uses[EVERYBODY]
            most = everybody + max((n for who, n in uses.items() if who != EVERYBODY), default=0)
            one, all_ = upward(float(price), 6), upward(float(most * price), 6)
            lines.append(f"  - {purpose}: {most} × {one} = {all_}")
        return "\n".join(lines)

    @property
    def spent(self) -> float:
        """ε spent on the word, or user, on which most was spent."""
        return float(self._spent)

    @property
    def remaining(self) -> float:
        """ε left for every word, or user."""
        return float(_exact(self.epsilon) - self._spent)

    def charge(self, expenses: Sequence[Expense]) -> None:
        """Charge the columns of a batch, all or none of them.

        Raises:
            BudgetExceededError: If too little is left.
            InvalidValueError: If they are in another metric than what was charged before, or this
                is the copy of a budget.
        """
        if self._process != os.getpid():
            raise InvalidValueError(
                "a PrivacyBudget counts only where it was made, and this is a copy of it, or "
                "another process: leave num_proc= out, and release before data loaders start"
            )
        with self._lock:
            metrics = {self._metric, *(each.metric for each in expenses)} - {None}
            if len(metrics) > 1:
                raise InvalidValueError(
                    "ε of different distances do not add up, and a budget was given to privatizers "
                    f"of several: {', '.join(sorted(map(str, metrics)))}; use a budget for each"
                )
            total = self._total_with(expenses)
            if total > _exact(self.epsilon):
                blind = any(EVERYBODY in each.uses for each in expenses)
                raise BudgetExceededError(
                    f"this release would bring what is spent on a {self.unit} to "
                    f"ε = {float(total):g}; nothing was released"
                    + ("; every call without with_indices=True costs all rows" if blind else "")
                    + f". The budget: {self}"
                )
            self._metric, self._spent = next(iter(metrics), None), max(self._spent, total)
            for each in filter(lambda each: each.uses, expenses):
                key = each.purpose, _exact(each.epsilon)
                self._uses.setdefault(key, Counter()).update(each.uses)

    def charge_record(self, purpose: str, epsilon: float) -> None:
        """Charge another word in one record of a corpus whose release is ε-DP for a record.

        Args:
            purpose: What is released.
            epsilon: ε for a record that is added or removed; one that is replaced costs 2·ε.

        Raises:
            BudgetExceededError: If too little is left.
            InvalidValueError: If the budget is one of users, whose records have not been counted.
        """
        require_one_of(("word",), budget_unit=self.unit)
        self.charge([Expense(purpose, 2 * epsilon, None, {EVERYBODY: 1})])

    def _total_with(self, expenses: Sequence[Expense]) -> Fraction:
        """Return the largest total of those that these expenses change."""
        added: dict[Account, Fraction] = {}
        for each in expenses:
            for account, count in each.uses.items():
                more = count * _exact(each.epsilon)
                added[account] = added.get(account, Fraction(0)) + more
        for_all = added.pop(EVERYBODY, None)
        totals = [] if for_all is None else [self._spent]
        for account, total in added.items():
            for (_, price), uses in self._uses.items():
                total += (uses[account] + uses[EVERYBODY]) * price
            totals.append(total)
        return max(totals, default=Fraction(0)) + (for_all or 0)


def _exact(epsilon: float) -> Fraction:
    """Return the decimal fraction that a number is written as, so that 3 × 0.1 = 0.3."""
    return Fraction(repr(float(epsilon)))


def _copied() -> PrivacyBudget:
    """Return the copy of a pickled budget, which refuses every release."""
    budget = PrivacyBudget(1.0)
    budget.epsilon, budget._process = 0.0, None
    return budget

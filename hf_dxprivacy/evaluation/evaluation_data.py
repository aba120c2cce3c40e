"""Texts of a comparison: which rows are released, and what is measured on which of them."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind, describe_columns
from hf_dxprivacy.evaluation.comparison import NO_ACCURACY
from hf_dxprivacy.text import RowReader, TextRow

if TYPE_CHECKING:
    from datasets import Dataset

# Texts of a user that the author attack looks at, and the least of them: some are known.
USER_TEXTS = (4, 20)
# Labels that are not classes: more different ones than this, or than rows by this.
MOST_CLASSES, ROWS_OF_CLASS = 100, 5
# Below this, intervals say little.
FEW_ROWS = 200

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Texts that are released, and what is measured on which of them, by their positions."""

    texts: list[str]
    sample: Ids
    classes: Ids  # (len(texts),) of the sample; −1 where there is none
    labels: tuple[str, ...]  # names of the classes; empty if no task is measured
    known: Ids  # texts whose authors the attacker knows
    asked: Ids  # texts that the attacker attributes
    owners: tuple[str, ...]  # who wrote each text, for those of `known` and `asked`
    notes: tuple[str, ...]  # what was left out, and why

    @property
    def labelled(self) -> Ids:
        """Positions of texts that have a class."""
        return np.flatnonzero(self.classes >= 0)

    @property
    def digest(self) -> str:
        """SHA-256 of all that figures depend on; as private as the texts."""
        parts = (self.texts, self.classes.tolist(), self.labels, self.owners)
        places = (self.sample.tolist(), self.known.tolist(), self.asked.tolist())
        return hashlib.sha256(json.dumps([*parts, *places]).encode()).hexdigest()


def prepare(
    dataset: "Dataset",
    text_column: str,
    label_column: str | None,
    user_column: str | None,
    *,
    rows: int,
    words: int,
    users: int,
    rng: np.random.Generator,
) -> EvaluationData:
    """Choose at most so many rows, with about so many words, and others of so many users.

    Raises:
        InvalidValueError: If a column or every text is missing.
        InvalidTypeError: If a text is no string, or the data no `Dataset`.
    """
    columns = _columns(dataset, (text_column, label_column, user_column))
    cells, notes = columns[text_column], list[str]()
    wrong = next((c for c in cells if c is not None and not isinstance(c, str)), None)
    if wrong is not None:
        raise InvalidTypeError(f"expected texts in column {text_column!r}, got {a_kind(wrong)}")
    present = np.array([k for k, cell in enumerate(cells) if cell and cell.strip()], dtype=np.int64)
    if not len(present):
        raise InvalidValueError(f"column {text_column!r} has no text in {len(cells)} rows")
    if missing := len(cells) - len(present):
        notes.append(f"{_rows(missing)} without text left out")
    order = rng.permutation(present)[:rows]
    lengths = np.cumsum([1 + cells[k].count(" ") for k in order.tolist()])
    chosen = order[: max(1, int(np.searchsorted(lengths, words, side="right")))]
    if len(chosen) < len(present):
        notes.append(f"a random sample of {len(chosen):,} of {len(present):,} rows")
    if len(chosen) < FEW_ROWS:
        notes.append(f"only {_rows(len(chosen))}: mind the intervals")
    given = None if label_column is None else columns[label_column]
    labels, classes = _classes(given, chosen, notes)
    writers = () if user_column is None else columns[user_column]
    known, asked = _authors(writers, present, users, rng, notes)
    if label_column is None:
        notes.append("no accuracy and no membership attack: no label column was named")
    if user_column is None:
        notes.append("no author attack: no user column was named")
    union = np.unique(np.concatenate([chosen, known, asked]))
    sample, known, asked = (np.searchsorted(union, ids) for ids in (chosen, known, asked))
    of_texts = np.full(len(union), -1)
    of_texts[sample] = classes
    return EvaluationData(
        texts=[cells[k] for k in union.tolist()],
        sample=np.sort(sample),
        classes=of_texts,
        labels=labels,
        known=known,
        asked=asked,
        owners=tuple(str(writers[k]) for k in union.tolist()) if len(known) else (),
        notes=tuple(notes),
    )


def _columns(dataset: Any, named: Sequence[str | None]) -> dict[str, list[Any]]:
    """Return the columns that are named, all of the same length."""
    if isinstance(dataset, Mapping) or not hasattr(dataset, "column_names"):
        hint = "; name one of its splits" if isinstance(dataset, Mapping) else ""
        raise InvalidTypeError(f"expected a datasets.Dataset, got a {type(dataset).__name__}{hint}")
    names = [name for name in named if name is not None]
    for name in names:
        if name not in dataset.column_names:
            described = describe_columns(dataset.column_names, name)
            raise InvalidValueError(f"there is no column {name!r}; {described}")
    return {name: list(dataset[name]) for name in names}


def _classes(
    cells: Sequence[Any] | None, chosen: Ids, notes: list[str]
) -> tuple[tuple[str, ...], Ids]:
    """Return names of classes, and the class of each chosen row, −1 where it is missing or rare."""
    none = np.full(len(chosen), -1)
    if cells is None:
        return (), none
    given = [None if _is_missing(cells[k]) else str(cells[k]) for k in chosen.tolist()]
    counts = Counter(label for label in given if label is not None)
    if lacking := given.count(None):
        notes.append(f"{_rows(lacking)} without a label left out of the accuracy")
    total = sum(counts.values())
    if len(counts) > max(2, min(MOST_CLASSES, total // ROWS_OF_CLASS)):
        notes.append(
            f"{NO_ACCURACY}the label column has {len(counts):,} different values in {total:,} "
            "rows; expected classes"
        )
        return (), none
    names = tuple(sorted(label for label, count in counts.items() if count > 1))
    if rare := total - sum(counts[name] for name in names):
        notes.append(f"{_rows(rare)} left out of the accuracy whose class has no other row")
    if len(names) < 2:
        notes.append(f"{NO_ACCURACY}two classes or more are needed, the sample has {len(names)}")
        return (), none
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(label or "", -1) for label in given], dtype=np.int64)


def _authors(
    cells: Sequence[Any], present: Ids, users: int, rng: np.random.Generator, notes: list[str]
) -> tuple[Ids, Ids]:
    """Return rows whose authors are known, and rows that are asked about: half of each user's."""
    least, most = USER_TEXTS
    nothing = np.empty(0, dtype=np.int64)
    if not cells:
        return nothing, nothing
    owned = defaultdict[str, list[int]](list)
    for row in rng.permutation(present).tolist():
        if not _is_missing(cells[row]):
            owned[str(cells[row])].append(row)
    writing = sorted((rows for rows in owned.values() if len(rows) >= least), key=len)[::-1][:users]
    if len(writing) < 2:
        notes.append(
            f"no author attack: it needs two users with {least} texts each, there are "
            f"{len(writing)} of {len(owned):,}"
        )
        return nothing, nothing
    parts = [(rows[:most][::2], rows[:most][1::2]) for rows in writing]
    known, asked = (np.array([k for p in parts for k in p[side]]) for side in (0, 1))
    notes.append(
        f"the author attack is on {len(asked):,} texts of the {len(writing)} users with the most; "
        f"the attacker knows {len(known):,} others of theirs"
    )
    return known, asked


def _is_missing(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _rows(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''}"


def rows_of(texts: Iterable[str]) -> list[TextRow]:
    """Return the words of each text."""
    return [*map(RowReader().read_text, texts)]

"""Encoded columns: words, vocabulary ids and per-word actions of the rows of a batch."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from itertools import accumulate, chain, compress, pairwise
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.base import METRIC_NAMES
from hf_dxprivacy.privatizers.budget import EVERYBODY, Account, BudgetUnit, Expense
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import (
    LOOKUP_FORMS,
    Row,
    TextRow,
    apply_case,
    case_pattern,
    is_missing,
    plain_apostrophes,
    shape_of,
)

OutOfVocabulary = Literal["centroid", "drop", "keep"]
Case = Literal["lower", "preserve"]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class WordCounts:
    """Number of words per action. Computed from private text: do not release it.

    Attributes:
        replaced: Perturbed, and another word came out.
        unchanged: Perturbed, and the same word came out.
        out_of_vocabulary: Not in the space; treated as ``oov=`` says.
        kept: Released as they are because the caller asked for it (stop words, words of no slot).
    """

    replaced: int = 0
    unchanged: int = 0
    out_of_vocabulary: int = 0
    kept: int = 0

    def __add__(self, other: "WordCounts") -> "WordCounts":
        names = [field.name for field in fields(self)]
        return WordCounts(**{n: getattr(self, n) + getattr(other, n) for n in names})


@dataclass(frozen=True)
class RowIds:
    """Indices and users of the rows of a batch, as far as they are known.

    Attributes:
        indices: The index of each row.
        users: The user of each row.
    """

    indices: Sequence[int] | None = None
    users: Sequence[str] | None = None

    def place(self, position: int) -> str:
        """Return how messages name a row: by its index, or by its position in the batch."""
        return f"{position} of the batch" if self.indices is None else str(self.indices[position])

    def with_users(self, values: Sequence[Any], column: str) -> "RowIds":
        """Return the same rows with the users that a column names; 7 and "7" are one user.

        Raises:
            InvalidValueError: If a row has no user.
            InvalidTypeError: If a user is neither a string nor a whole number.
        """
        for position, value in enumerate(values):
            where = f"column {column!r}, row {self.place(position)}"
            if is_missing(value):
                raise InvalidValueError(
                    f"{where}: there is no user, and every row needs one; give each row without a "
                    "user one of its own, or leave it out"
                )
            if isinstance(value, bool) or not isinstance(value, (str, Integral)):
                raise InvalidTypeError(
                    f"{where}: expected a user to be a string or a whole number, "
                    f"got a {type(value).__name__}"
                )
        return RowIds(self.indices, [str(value) for value in values])


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """The words or tokens of a column of a batch, row after row.

    Attributes:
        name: Name of the column.
        row_ids: Indices and users of its rows.
        offsets: (r + 1) where the words of each row start, and where the last one ends.
        ids: (m,) int64 rows of the vocabulary; −1 for a word that it lacks.
        perturbed: (m,) whether the mechanism draws another word.
    """

    name: str
    row_ids: RowIds
    offsets: Sequence[int]
    ids: Ids
    perturbed: Mask

    @abstractmethod
    def contents(self) -> Iterator[Sequence[str]]:
        """Return for each row all that seeded noise is bound to, but its index."""

    @property
    def inputs(self) -> Ids:
        """Inputs of the mechanism: the ids of the words that it perturbs."""
        return self.ids[self.perturbed]

    @property
    def row_lengths(self) -> list[int]:
        """Number of perturbed words of each row."""
        before = np.concatenate([[0], np.cumsum(self.perturbed)])[np.asarray(self.offsets)]
        lengths: list[int] = np.diff(before).tolist()
        return lengths

    def row_inputs(self) -> list[Ids]:
        """Return the inputs of the mechanism, row by row."""
        return np.split(self.inputs, np.cumsum(self.row_lengths)[:-1]) if self.rows_count else []

    @property
    def rows_count(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    def expense(self, mechanism: Mechanism, unit: BudgetUnit) -> Expense:
        """Return what the release of this column costs.

        With unit "word" each row costs one use. Rows without words count too: every pass over any
        part of the data has to be charged to row 0, or a pass in another order could hide that a
        row was released again.

        Args:
            mechanism: What perturbs the words.
            unit: What is protected: any one word, or all words of a user, who must be known then.
        """
        uses: Counter[Account] = Counter()
        if unit == "user":
            for user, count in zip(self.row_ids.users or (), self.row_lengths, strict=True):
                uses[user] += count
        elif self.row_ids.indices is None:
            uses[EVERYBODY] = min(1, self.rows_count)
        else:
            uses.update(int(index) for index in self.row_ids.indices)
        space = mechanism.space
        return Expense(
            purpose=f"column {self.name!r} by {mechanism.name!r}",
            epsilon=mechanism.space_epsilon,
            metric=f"{METRIC_NAMES[space.metric]} in the space {space.digest[:12]}",
            uses=+uses,
        )


@dataclass(frozen=True, eq=False)
class EncodedText(EncodedColumn):
    """A column of texts or token lists.

    Attributes:
        rows: The segmented cells; None for a missing one.
        words: (m,) the words of all rows.
        passed_through: (m,) whether a word is released as it is because the caller asked for it.
        masks: For each row which of its words are of slots; None if all words may be perturbed.
        oov: Treatment of words out of vocabulary.
        case: "lower", or "preserve" to copy the letter case of the original.
        by_shape: Whether ids follow from what lies between the words too.
    """

    rows: Sequence[Row | None]
    words: Sequence[str]
    passed_through: Mask
    masks: Sequence[Mask | None] | None
    oov: OutOfVocabulary
    case: Case
    by_shape: bool = False

    @classmethod
    def encode(
        cls,
        name: str,
        rows: Sequence[Row | None],
        row_ids: RowIds,
        space: EmbeddingSpace,
        *,
        stopwords: AbstractSet[str] = frozenset(),
        oov: OutOfVocabulary = "centroid",
        case: Case = "lower",
        masks: Sequence[Mask | None] | None = None,
    ) -> "EncodedText":
        """Look up the words of segmented cells and choose what happens to each."""
        by_row: list[list[str]] = [[] if row is None else row.words for row in rows]
        words = list(chain.from_iterable(by_row))
        offsets = [*accumulate(map(len, by_row), initial=0)]
        ids = look_up_rows(rows, space)
        passed = np.zeros(len(words), dtype=np.bool_)
        if masks is not None:
            passed = ~np.concatenate([passed[:0], *(mask for mask in masks if mask is not None)])
        if stopwords:
            passed |= np.array([plain_apostrophes(w) in stopwords for w in words], dtype=np.bool_)
        perturbed = ~passed if oov == "centroid" else ~passed & (ids >= 0)
        return cls(
            name=name,
            row_ids=row_ids,
            offsets=offsets,
            ids=ids,
            perturbed=perturbed,
            rows=rows,
            words=words,
            passed_through=passed,
            masks=masks,
            oov=oov,
            case=case,
            by_shape=bool(space.shapes),
        )

    def contents(self) -> Iterator[Sequence[str]]:
        """Return for each row its words and which of them are perturbed.

        Two releases that perturb other words of one text, with the same noise, would cancel it out.
        """
        perturbed = self.perturbed.tobytes()
        for start, stop in pairwise(self.offsets):
            bound = (*self.words[start:stop], perturbed[start:stop].hex())
            yield (*bound, self.ids[start:stop].tobytes().hex()) if self.by_shape else bound

    def released(self, new: list[str]) -> list[list[str | None]]:
        """Return for each row the words that take the place of its own; None for a dropped one.

        Args:
            new: What the perturbed words become, in order.
        """
        if self.case == "preserve":
            new = [*map(apply_case, new, map(case_pattern, compress(self.words, self.perturbed)))]
        released = np.array(self.words, dtype=object)
        released[self.perturbed] = new
        if self.oov == "drop":
            released[~self.perturbed & ~self.passed_through] = None
        flat: list[str | None] = released.tolist()
        return [flat[start:stop] for start, stop in pairwise(self.offsets)]

    def visible(self, row: int) -> list[Any]:
        """Return all that a release of a row shows for certain, as JSON-ready values.

        Args:
            row: Position of a row that is not missing.

        Returns:
            What lies between the words and the words that are passed through, in order, with a list
            for each perturbed word (which holds its letter case if that is preserved); and, if
            there are slots, which of the words are of some.
        """
        cell, (start, stop) = self.rows[row], self.offsets[row : row + 2]
        assert cell is not None
        shown = [self._shown(word) for word in range(start, stop)]
        visible: list[Any]
        if isinstance(cell, TextRow):
            visible = ["text", cell.separators[0]]
            for word, after in zip(shown, cell.separators[1:], strict=True):
                if word is None:
                    visible[-1] += after
                else:
                    visible += [word, after]
        else:
            words = dict(zip(cell.positions, shown, strict=True))
            dropped = {position for position, word in words.items() if word is None}
            tokens = [words.get(at, token) for at, token in enumerate(cell.tokens)]
            visible = ["tokens", *(t for at, t in enumerate(tokens) if at not in dropped)]
        mask = None if self.masks is None else self.masks[row]
        if mask is None:
            return visible
        return [visible, _remaining([None if word is None else "" for word in shown], mask)]

    def _shown(self, word: int) -> list[str] | str | None:
        """Return what a release shows of a word for certain; None if it is dropped."""
        if self.perturbed[word]:
            return [case_pattern(self.words[word])] if self.case == "preserve" else []
        keeps = self.passed_through[word] or self.oov == "keep"
        return self.words[word] if keeps else None

    def counts(self, outputs: Ids, rendered: Mask | None = None) -> WordCounts:
        """Count the words per action.

        Args:
            outputs: Rows of the vocabulary that the perturbed words become, in order.
            rendered: (V,) rows of the vocabulary that are released as random words.
        """
        inputs = self.inputs
        same = outputs == inputs
        unchanged = int(same.sum() if rendered is None else (same & ~rendered[outputs]).sum())
        return WordCounts(
            replaced=int((inputs >= 0).sum()) - unchanged,
            unchanged=unchanged,
            out_of_vocabulary=int(((self.ids < 0) & ~self.passed_through).sum()),
            kept=int(self.passed_through.sum()),
        )


def look_up(words: Sequence[str], space: EmbeddingSpace) -> Ids:
    """Return (m,) rows of the vocabulary: of each word as it is, or in one of `LOOKUP_FORMS`.

    Args:
        words: (m,) words.
        space: Where to look; −1 stands for a word that it lacks in every form.
    """
    ids = space.ids(words)
    missing = np.flatnonzero(ids < 0).tolist()
    for form in LOOKUP_FORMS:
        ids[missing] = space.ids([form(words[i]) for i in missing])
        # In ASCII the other forms change a possessive only.
        missing = [i for i in missing if ids[i] < 0 and ("'" in words[i] or not words[i].isascii())]
    return ids


def look_up_rows(rows: Sequence[Row | None], space: EmbeddingSpace) -> Ids:
    """Return (m,) rows of the vocabulary of the words of all rows, by shape where it lacks one.

    Args:
        rows: Segmented cells; None for a missing one.
        space: Where to look; −1 stands for a word that it lacks in every form, and whose shape is
            none or not among its own.
    """
    ids = look_up([word for row in rows if row is not None for word in row.words], space)
    if not space.shapes:
        return ids
    start = 0
    for row in rows:
        if row is None:
            continue
        for at in np.flatnonzero(ids[start : start + len(row.words)] < 0).tolist():
            shape = shape_of(row.words[at], row.before(at), first=at == 0)
            ids[start + at] = space.ids([shape or ""])[0] if shape in space.shapes else -1
        start += len(row.words)
    return ids


@dataclass(frozen=True, eq=False)
class SlotColumns:
    """The columns of a release that say where its slots are.

    Attributes:
        mask: Columns for the masks, one for each text column, or none.
        spans: Columns for the spans, one for each text column, or none.
    """

    mask: tuple[str, ...]
    spans: tuple[str, ...]

    def of(
        self, at: int, column: EncodedText, released: Sequence[Sequence[str | None]]
    ) -> dict[str, list[Any]]:
        """Return the columns that belong to the text column at a place.

        Args:
            at: Its place among the text columns.
            column: The text column.
            released: For each row the words that are released.
        """
        rows = list(zip(column.rows, released, column.masks or (), strict=True))
        result: dict[str, list[Any]] = {}
        if self.mask:
            result[self.mask[at]] = [_mask_of(*row) for row in rows]
        if self.spans:
            result[self.spans[at]] = [_spans_of(*row) for row in rows]
        return result

    def types(self) -> Mapping[str, Any]:
        """Return for each column a function of the module `pyarrow` that returns its type."""
        masks = dict.fromkeys(self.mask, lambda arrow: arrow.list_(arrow.bool_()))
        pairs = dict.fromkeys(self.spans, lambda arrow: arrow.list_(arrow.list_(arrow.int64())))
        return masks | pairs


def _mask_of(row: Row | None, words: Sequence[str | None], mask: Mask | None) -> list[bool] | None:
    """Return which words of a released text, or tokens of a list, are of slots."""
    if row is None or mask is None:
        return None
    slots = _remaining(words, mask)
    if isinstance(row, TextRow):
        return slots
    tokens = [False] * len(row.detokenize(words))
    for (position, _), slot in zip(row.offsets(words), slots, strict=True):
        tokens[position] = slot
    return tokens


def _spans_of(
    row: Row | None, words: Sequence[str | None], mask: Mask | None
) -> list[list[int]] | None:
    """Return where the slots are, in characters of a released text, or in tokens of a list."""
    if row is None or mask is None:
        return None
    offsets = row.offsets(words)
    edges = np.flatnonzero(np.diff([False, *_remaining(words, mask), False])).tolist()
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [[offsets[start][0], offsets[stop - 1][1]] for start, stop in pairs]


def _remaining(words: Sequence[str | None], mask: Mask) -> list[bool]:
    """Return the mask of the words that were not dropped."""
    return [slot for word, slot in zip(words, mask.tolist(), strict=True) if word is not None]

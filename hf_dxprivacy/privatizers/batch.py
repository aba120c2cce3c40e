"""Encoded columns: words, vocabulary ids and per-word actions of the rows of a batch."""

from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from itertools import accumulate, chain, compress, pairwise
from numbers import Integral
from operator import not_
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.budget import EVERYBODY, Account, BudgetUnit, Expense
from hf_dxprivacy.privatizers.nested import Left, NestedRow, count_left, flat
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import (
    Row,
    TextRow,
    TokenRow,
    apply_case,
    case_pattern,
    is_missing,
    plain_apostrophes,
    seems_name,
)

OutOfVocabulary = Literal["centroid", "drop", "keep"]
Case = Literal["lower", "preserve"]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True)
class WordCounts:
    """Number of words per action. Computed from private text: do not release it.

    Attributes:
        replaced: Perturbed, and another word came out.
        unchanged: Perturbed, and the same word came out.
        out_of_vocabulary: Not in the space; treated as ``oov=`` says.
        kept: Released as they are because the caller asked for it (stop words, words of no slot).
        capitalized: Within sentences and with a capital first, as names are; "I" is left out.
        capitalized_unchanged: Of these, how many came out as they were, but for letter case,
            accents and "'s".
        left: What messages leave as it is beside these words; it shows in the release.
    """

    replaced: int = 0
    unchanged: int = 0
    out_of_vocabulary: int = 0
    kept: int = 0
    capitalized: int = 0
    capitalized_unchanged: int = 0
    left: Left = field(default_factory=Counter)

    def __add__(self, other: "WordCounts") -> "WordCounts":
        names = [field.name for field in fields(self)]
        return WordCounts(**{n: getattr(self, n) + getattr(other, n) for n in names})

    @property
    def total(self) -> int:
        """Number of words."""
        return self.replaced + self.unchanged + self.out_of_vocabulary + self.kept

    @property
    def unknown_share(self) -> float:
        """Share of the words that the vocabulary lacks, 0 if there are no words."""
        return self.out_of_vocabulary / self.total if self.total else 0.0


# Cosines from −1 to 1 are counted in so many bins.
BINS = 200


@dataclass(frozen=True)
class TextCounts:
    """Numbers of texts and of their entries. Computed from private text: do not release it.

    Attributes:
        texts: Texts, without missing ones.
        total: What was looked up: the texts, or their sentences.
        unknown: How many of these the encoder has nothing for.
        cosines: How many of the others have which cosine to their entry, by bins of 0.01.
        left: As of `WordCounts`.
    """

    texts: int = 0
    total: int = 0
    unknown: int = 0
    cosines: tuple[int, ...] = (0,) * BINS
    left: Left = field(default_factory=Counter)

    def __add__(self, other: "TextCounts") -> "TextCounts":
        cosines = tuple(a + b for a, b in zip(self.cosines, other.cosines, strict=True))
        texts, total = self.texts + other.texts, self.total + other.total
        unknown, left = self.unknown + other.unknown, self.left + other.left
        return TextCounts(texts, total, unknown, cosines, left)

    @property
    def unknown_share(self) -> float:
        """Share of `unknown` in `total`, 0 if there are none."""
        return self.unknown / self.total if self.total else 0.0

    @property
    def quartiles(self) -> dict[str, float] | None:
        """Quartiles of the cosine to the entry, to 0.01; None if nothing was known."""
        known = self.total - self.unknown
        at = np.searchsorted(np.cumsum(self.cosines), [known * q for q in (0.25, 0.5, 0.75)])
        values = [round(float(bin_) * 2 / BINS - 1 + 1 / BINS, 3) for bin_ in at]
        return dict(zip(("25%", "50%", "75%"), values, strict=True)) if known else None


@dataclass(frozen=True, repr=False)
class RowIds:
    """Indices and users of the rows of a batch, as far as they are known.

    Attributes:
        indices: The index of each row.
        users: The user of each row.
    """

    indices: Sequence[int] | None = None
    users: Sequence[str] | None = None

    def read(self, cells: Iterable[Any], column: str, read: Callable[[Any], T]) -> list[T]:
        """Read the cells of a column one by one; errors name the column and the row."""
        values = []
        for position, cell in enumerate(cells):
            try:
                values.append(read(cell))
            except (InvalidTypeError, InvalidValueError) as error:
                row = f"{position} of the batch" if self.indices is None else self.indices[position]
                raise type(error)(f"column {column!r}, row {row}: {error}") from None
        return values

    def with_users(self, cells: Iterable[Any], column: str) -> "RowIds":
        """Return the same rows with the users that a column names; 7 and "7" are one user.

        Raises:
            InvalidValueError: If a row has no user.
            InvalidTypeError: If a user is neither a string nor a whole number.
        """
        return RowIds(self.indices, self.read(cells, column, _user))


def _user(cell: Any) -> str:
    if is_missing(cell):
        raise InvalidValueError(
            "there is no user, and every row needs one; give each row without a user one of its "
            "own, or leave it out"
        )
    if isinstance(cell, bool) or not isinstance(cell, (str, Integral)):
        raise InvalidTypeError(
            f"expected a user to be a string or a whole number, got a {type(cell).__name__}"
        )
    return str(cell)


@dataclass(frozen=True, eq=False, repr=False)
class EncodedColumn:
    """The words or tokens of a column of a batch, row after row.

    Attributes:
        name: Name of the column.
        row_ids: Indices and users of its rows.
        offsets: (r + 1) where the words of each row start, and where the last one ends.
        ids: (m,) int64 rows of the vocabulary; −1 for a word that it lacks.
        perturbed: (m,) whether the mechanism draws another word.
        rows: The cells as they were read; None for a missing one.
    """

    name: str
    row_ids: RowIds
    offsets: Sequence[int]
    ids: Ids
    perturbed: Mask
    rows: Sequence[Any]

    @abstractmethod
    def visible(self, row: int) -> list[Any]:
        """Return all that a release of a row shows for certain, as JSON-ready values.

        Args:
            row: Position of a row that is not missing.
        """

    @abstractmethod
    def contents(self) -> Iterator[Sequence[str]]:
        """Return the content of each row to which seeded noise is bound, beside its index."""

    @property
    def left(self) -> Left:
        """What messages leave as it is beside their texts."""
        return count_left(self.rows)

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
        return [self.ids[a:b][self.perturbed[a:b]] for a, b in pairwise(self.offsets)]

    def expense(self, mechanism: Mechanism, unit: BudgetUnit) -> Expense:
        """Return the cost of a release of this column.

        With unit "word" each row costs one use. Rows without words count too: every pass over any
        part of the data has to be charged to row 0, or a pass in another order could hide that a
        row was released again.

        Args:
            mechanism: The mechanism that perturbs the words.
            unit: Protects any one word, or all words of a user, who must be known then.
        """
        uses: Counter[Account] = Counter()
        if unit == "user":
            for user, count in zip(self.row_ids.users or (), self.row_lengths, strict=True):
                uses[user] += count
        elif self.row_ids.indices is None:
            uses[EVERYBODY] = min(1, len(self.offsets) - 1)
        else:
            uses.update(int(index) for index in self.row_ids.indices)
        return Expense(
            purpose=f"column {self.name!r} by {mechanism.name!r}",
            epsilon=mechanism.space_epsilon,
            metric=mechanism.space_metric,
            uses=+uses,
        )


@dataclass(frozen=True, eq=False, repr=False)
class EncodedText(EncodedColumn):
    """A column of texts or token lists.

    Attributes:
        rows: The segmented cells; None for a missing one.
        words: (m,) the words of all rows.
        passed_through: (m,) whether a word is released as it is because the caller asked for it.
        masks: For each row which of its words are of slots; None if all words may be perturbed.
        oov: Treatment of words out of vocabulary.
        case: "lower", or "preserve" to copy the letter case of the original.
        by_shape: Whether ids depend on the text between the words too.
    """

    rows: Sequence[Row | NestedRow | None]
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
        rows: Sequence[Row | NestedRow | None],
        row_ids: RowIds,
        space: EmbeddingSpace,
        *,
        stopwords: AbstractSet[str] = frozenset(),
        oov: OutOfVocabulary = "centroid",
        case: Case = "lower",
        masks: Sequence[Mask | None] | None = None,
    ) -> "EncodedText":
        """Look up the words of segmented cells, and choose an action for each."""
        texts = flat(rows)
        words = [*chain.from_iterable(text.words for text in texts if text is not None)]
        ids = look_up_rows(texts, space)
        passed = np.zeros(len(words), dtype=np.bool_)
        if masks is not None:
            passed = ~np.concatenate([passed[:0], *(mask for mask in masks if mask is not None)])
        if stopwords:
            passed |= np.array([plain_apostrophes(w) in stopwords for w in words], dtype=np.bool_)
        return cls(
            name=name,
            row_ids=row_ids,
            offsets=[*accumulate((0 if row is None else len(row) for row in rows), initial=0)],
            ids=ids,
            perturbed=~passed if oov == "centroid" else ~passed & (ids >= 0),
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
            new: Words in the places of the perturbed ones, in order.
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
            The text between the words and the words that are passed through, in order, with a list
            for each perturbed word (which holds its letter case if that is preserved); and, if
            there are slots, which of the words are of some.
        """
        cell = self.rows[row]
        assert cell is not None
        shown: list[Any] = []
        for word in range(*self.offsets[row : row + 2]):
            if self.perturbed[word]:
                shown.append([case_pattern(self.words[word])] if self.case == "preserve" else [])
            else:
                keeps = self.passed_through[word] or self.oov == "keep"
                shown.append(self.words[word] if keeps else None)
        visible: list[Any]
        if isinstance(cell, TextRow):
            visible = _visible_text(cell, shown)
        elif isinstance(cell, NestedRow):
            visible = ["texts", *map(_visible_text, cell.texts, cell.cut(shown))]
        else:
            visible = ["tokens", *cell.detokenize(shown)]
        mask = None if self.masks is None else self.masks[row]
        return visible if mask is None else [visible, _remaining(shown, mask)]

    def slot_masks(self, released: Sequence[Sequence[str | None]]) -> list[list[bool] | None]:
        """Return for each row which words of its released text, or tokens, are of slots.

        Args:
            released: For each row the words that are released.
        """
        masks: list[list[bool] | None] = []
        for row, words, mask in zip(self.rows, released, self.masks or (), strict=True):
            slots = None if mask is None else _remaining(words, mask)
            if isinstance(row, TokenRow) and slots is not None:
                positions = [start for start, _ in row.offsets(words)]
                at = dict(zip(positions, slots, strict=True))
                slots = [at.get(i, False) for i in range(len(row.detokenize(words)))]
            masks.append(slots)
        return masks

    def slot_spans(self, released: Sequence[Sequence[str | None]]) -> list[list[list[int]] | None]:
        """Return for each row where its slots are, in characters of its released text or in tokens.

        Args:
            released: For each row the words that are released.
        """
        spans: list[list[list[int]] | None] = []
        for row, words, mask in zip(self.rows, released, self.masks or (), strict=True):
            if row is None or mask is None or isinstance(row, NestedRow):
                spans.append(None)
                continue
            offsets = row.offsets(words)
            edges = np.flatnonzero(np.diff([False, *_remaining(words, mask), False])).tolist()
            pairs = zip(edges[::2], edges[1::2], strict=True)
            spans.append([[offsets[start][0], offsets[stop - 1][1]] for start, stop in pairs])
        return spans

    def counts(self, outputs: Ids, rendered: Mask | None = None) -> WordCounts:
        """Count the words per action.

        Args:
            outputs: Rows of the vocabulary that the perturbed words become, in order.
            rendered: (V,) rows of the vocabulary that are released as random words.
        """
        inputs = self.inputs
        unchanged = int(_unchanged(inputs, outputs, rendered).sum())
        return WordCounts(
            replaced=int((inputs >= 0).sum()) - unchanged,
            unchanged=unchanged,
            out_of_vocabulary=int(((self.ids < 0) & ~self.passed_through).sum()),
            kept=int(self.passed_through.sum()),
        )

    def capitalized(
        self, outputs: Ids, rendered: Mask | None, released: Sequence[Sequence[str | None]]
    ) -> dict[str, int]:
        """Count the words within sentences with a capital first, and those that came out.

        Args:
            outputs: As for `counts`.
            rendered: As for `counts`.
            released: For each row the words that are released.
        """
        same = np.zeros(len(self.words), dtype=np.bool_)
        same[self.perturbed] = _unchanged(self.inputs, outputs, rendered)
        texts = [text for text in flat(self.rows) if text is not None]
        starts = [*accumulate(map(len, texts), initial=0)]
        shown = [*chain.from_iterable(released)]
        total = unchanged = 0
        for at in compress(range(len(shown)), map(not_, map(str.islower, self.words))):
            text = bisect_right(starts, at) - 1
            place, word = at - starts[text], self.words[at]
            if seems_name(word, texts[text].before(place), place == 0):
                total += 1
                # An entry is the word itself but for letter case, accents and "'s".
                unchanged += same[at] or (shown[at] or "").casefold() == word.casefold()
        return {"capitalized": total, "capitalized_unchanged": int(unchanged)}


def _unchanged(inputs: Ids, outputs: Ids, rendered: Mask | None) -> Mask:
    """Tell which inputs came out as the same word, and not as a random one of their shape."""
    same: Mask = outputs == inputs
    return same if rendered is None else same & ~rendered[outputs]


def _visible_text(text: TextRow, shown: Sequence[Any]) -> list[Any]:
    """Return what a release of a text shows, from that of its words."""
    visible = ["text", text.separators[0]]
    for word, after in zip(shown, text.separators[1:], strict=True):
        if word is None:
            visible[-1] += after
        else:
            visible += [word, after]
    return visible


def _remaining(words: Sequence[object], mask: Mask) -> list[bool]:
    """Return the mask of the words that were not dropped."""
    return [slot for word, slot in zip(words, mask.tolist(), strict=True) if word is not None]

"""A privatizer that perturbs slots, and leaves the carrier phrases around them as they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import columns
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, fetch
from hf_dxprivacy.mechanisms import DEFAULT, Mechanism
from hf_dxprivacy.plan import Plan
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.reading import Reading
from hf_dxprivacy.settings import FILE, Settings, SlotSettings
from hf_dxprivacy.slots import Mask, Selector, spans, stored_parts
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Row, TokenRow, case_pattern

_DISCLOSED = (
    "Only slots are perturbed. Not covered, released: every other word as it is, and which words "
    "are slots (the mask). The statement holds for inputs that have the same other words and the "
    "same mask."
)


class SlotPrivatizer(DxPrivatizer):
    """Replaces the words of slots, as in "play **techno** on **lastfm**", and no other word.

    The words of a slot are replaced one by one, so that a name of three words becomes three words,
    and lists of tokens, with the tags beside them, keep their length. In everything else it is a
    `DxPrivatizer`. It protects less: see `guarantee`.

    Args:
        space: As for `DxPrivatizer`.
        mechanism: As for `DxPrivatizer`.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        selector: What finds the slots; see `hf_dxprivacy.slots`.
        mask_column: Where to put the mask, as many as text columns: for each word of a released
            text, or each token of a list, whether it is of a slot.
        spans_column: Where to put the spans of the slots, as many as text columns: pairs of start
            and stop, in characters of the released text, or in tokens.
        **options: All others of `DxPrivatizer`. Stop words stay in slots too.

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown, or tags that the selector
            reads would not fit any more (``oov="drop"``).
    """

    published_files: ClassVar[tuple[str, ...]] = (*DxPrivatizer.published_files, stored_parts.FILES)
    settings_class: ClassVar[type[Settings]] = SlotSettings
    per_use: ClassVar[tuple[str, ...]] = (*DxPrivatizer.per_use, "mask_column", "spans_column")

    def __init__(
        self,
        space: EmbeddingSpace | str | Path,
        mechanism: str | Mechanism = DEFAULT,
        epsilon: float | None = None,
        *,
        selector: Selector,
        mask_column: str | Sequence[str] | None = None,
        spans_column: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(space, mechanism, epsilon, **options)
        if not isinstance(selector, Selector):
            raise InvalidTypeError(
                f"expected selector to be a selector of slots, got a {type(selector).__name__}; "
                "hf_dxprivacy.slots has several"
            )
        if self.oov == "drop" and selector.columns:
            raise InvalidValueError(
                f'oov="drop" removes tokens, and column {selector.columns[0]!r}, which has a tag '
                'for each, would not fit any more; use oov="centroid"'
            )
        self.selector = selector
        count = len(self.text_columns)
        self.mask_columns = _names("mask_column", mask_column, count)
        self.spans_columns = _names("spans_column", spans_column, count)
        written = [*self.output_columns, *self.mask_columns, *self.spans_columns]
        columns.names("output_column, mask_column and spans_column", written, len(written))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, selector={self.selector!r})"

    @property
    def settings(self) -> SlotSettings:
        """All decisions but the seed.

        Raises:
            InvalidValueError: If the space, or a part of the selector, is in memory only.
        """
        return SlotSettings(
            **vars(super().settings),
            selector=stored_parts.describe(self.selector),
            mask_column=list(self.mask_columns) or None,
            spans_column=list(self.spans_columns) or None,
        )

    def _masks(
        self, rows: Sequence[Row | None], batch: columns.Columns | None
    ) -> Sequence[Mask | None]:
        return self.selector.masks(rows, batch)

    def _shown(
        self, at: int, read: Reading, released: Sequence[Sequence[str | None]]
    ) -> dict[str, list[Any]]:
        result = super()._shown(at, read, released)
        rows = list(zip(read.rows, released, read.masks or (), strict=True))
        if self.mask_columns:
            result[self.mask_columns[at]] = [_mask_of(*row) for row in rows]
        if self.spans_columns:
            result[self.spans_columns[at]] = [_spans_of(*row) for row in rows]
        return result

    @property
    def _sources(self) -> dict[str, columns.Source]:
        masks = dict.fromkeys(self.mask_columns, lambda arrow: arrow.list_(arrow.bool_()))
        pairs = dict.fromkeys(
            self.spans_columns, lambda arrow: arrow.list_(arrow.list_(arrow.int64()))
        )
        return super()._sources | masks | pairs

    def _save(self, folder: Path) -> None:
        # First what says whether it can be saved at all.
        described = self.settings
        stored_parts.save(self.selector, folder)
        described.write(folder)

    @classmethod
    def _parts(cls, stored: Settings, folder: Path, access: HubAccess, name: str) -> dict[str, Any]:
        described = vars(stored)["selector"]
        # What is on the Hub is fetched file by file; the folder has the name of its commit.
        if not Path(name).is_dir():
            fetch(name, (FILE, *stored_parts.files(described)), folder.name, access)
        return {"selector": stored_parts.load(described, folder)}

    @property
    def _own_parts(self) -> dict[str, Any]:
        return {"selector": self.selector}

    def _check_publishable(self, license: str | None) -> None:
        super()._check_publishable(license)
        stored_parts.require_public(self.selector)

    @property
    def _inputs(self) -> dict[str, str]:
        return dict.fromkeys(self.selector.columns, repr(self.selector)) | super()._inputs

    @property
    def _disclosures(self) -> tuple[str, ...]:
        return (*super()._disclosures, _DISCLOSED, *self.selector.disclosures)

    @property
    def _hides_every_word(self) -> bool:
        return False

    def _visible(self, text: Any) -> tuple[list[Any], NDArray[np.int64]]:
        """Return what a release shows for certain, and the inputs of the words drawn.

        Args:
            text: A text, a list of tokens, or a row with the columns that the selector reads.
        """
        example = text if isinstance(text, Mapping) else {self.text_columns[0]: text}
        batch = {name: [example[name]] for name in self._inputs if name in example}
        rows = self._reader.read_column(batch[self.text_columns[0]], self.text_columns[0], None)
        (row,), (mask,) = rows, self.selector.masks(rows, batch)
        if row is None or mask is None:
            raise InvalidTypeError("expected two texts, got a missing one")
        plan = Plan.of(row.words, self.space, self.stopwords, self.oov, mask)
        gaps = [""] * len(row)
        shown = [self._fate(*fate) for fate in zip(row.words, plan.drawn, plan.kept, strict=True)]
        carrier = [row.filled(gaps), row.places(gaps)]
        return [*carrier, mask.tolist(), shown], plan.ids[plan.drawn]

    def _fate(self, word: str, drawn: bool, kept: bool) -> str | None:
        """Return what a release shows of a word for certain."""
        if drawn:
            return case_pattern(word) if self.case == "preserve" else None
        return word if kept or self.oov == "keep" else ""


def _names(argument: str, given: str | Sequence[str] | None, count: int) -> tuple[str, ...]:
    return () if given is None else columns.names(argument, given, count)


def _mask_of(row: Row | None, words: Sequence[str | None], mask: Mask | None) -> list[bool] | None:
    """Return which words of a released text, or tokens of a list, are of slots."""
    if row is None or mask is None:
        return None
    slots = _left(words, mask)
    if not isinstance(row, TokenRow):
        return slots
    tokens = [False] * len(row.filled(words))
    for (position, _), slot in zip(row.places(words), slots, strict=True):
        tokens[position] = slot
    return tokens


def _spans_of(
    row: Row | None, words: Sequence[str | None], mask: Mask | None
) -> list[list[int]] | None:
    """Return where the slots are, in characters of a released text, or in tokens of a list."""
    if row is None or mask is None:
        return None
    places = row.places(words)
    runs = spans(np.array(_left(words, mask), dtype=np.bool_))
    return [[places[start][0], places[stop - 1][1]] for start, stop in runs]


def _left(words: Sequence[str | None], mask: Mask) -> list[bool]:
    """Return the mask of the words that were not dropped."""
    return [slot for word, slot in zip(words, mask.tolist(), strict=True) if word is not None]

"""Selection by tags in a column next to the tokens, and the labels that tags stand for."""

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantee import Disclosure, uncovered
from hf_dxprivacy.text import TextRow, TokenRow
from hf_dxprivacy.text.selector import Mask, Rows, Selector, Words

logger = logging.getLogger(__name__)

OUTSIDE = "O"
# So many tokens with tags, none of them of a named label, are reported once.
NOTED_TAGS = 10

# Begin, inside, last or end, unit or single: IOB1, IOB2, BIOES and BILOU.
_PREFIX = re.compile(r"^[BILEUS]-(?=.)")


def selects(tag: str, labels: Collection[str] | None) -> bool:
    """Tell whether a tag, such as "B-PER", has one of the labels, or any if they are None."""
    return tag != OUTSIDE if labels is None else not _labels_of(tag).isdisjoint(labels)


def _labels_of(tag: str) -> set[str]:
    """Return what a tag may be called: itself, and itself without prefix; "O" is no label."""
    return {tag, _PREFIX.sub("", tag, count=1)} - {OUTSIDE}


def chosen_labels(
    labels: Collection[str] | None, tags: Iterable[str] | None
) -> tuple[str, ...] | None:
    """Return labels in a fixed order, after a check.

    Args:
        labels: What a user asked for; None for all.
        tags: All tags that there are, if known.

    Raises:
        InvalidTypeError: If it is no collection of strings.
        InvalidValueError: If it is empty, or there is no tag with one of the labels.
    """
    if labels is None:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InvalidTypeError(f'expected labels to be names, as in ["PER", "LOC"], got {labels!r}')
    if not labels:
        raise InvalidValueError("expected at least one label, or None for all")
    known = set(labels) if tags is None else set[str]().union(*map(_labels_of, tags))
    if unknown := sorted(set(labels) - known):
        raise InvalidValueError(
            f"there is no label {unknown[0]!r}; there are {', '.join(map(repr, sorted(known)))}"
        )
    return tuple(sorted(set(labels)))


class TagColumnSelector(Selector):
    """Selects the tokens that have a tag other than "O": the layout of CoNLL, ATIS and SNIPS.

    The text column holds lists of tokens, and the tag column lists of tags, one for each token.
    Whatever the scheme (IOB1, IOB2, BIOES, or none), a tag is its label after a prefix, as in
    "B-city".

    Args:
        column: The column of tags.
        labels: The labels to select, without prefix; all by default.
        names: For tags that are integers, as those of a `ClassLabel` are: the name of each.

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If none of the names has one of the labels.
    """

    def __init__(
        self,
        column: str,
        labels: Collection[str] | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(column, str):
            raise InvalidTypeError(f"expected the name of a column of tags, got {column!r}")
        self.column = column
        self.names = None if names is None else tuple(names)
        self.labels = chosen_labels(labels, self.names)

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f", labels={list(self.labels)}"
        return f"{type(self).__name__}({self.column!r}{labels})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of tags."""
        return (self.column,)

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """See `Selector.disclosures`."""
        stay = "They stay in the data unless you remove that column."
        tags = f"the tags in column {self.column!r}"
        return (uncovered(tags, stay, before="Slots are chosen by tags."),)

    def to_dict(self) -> dict[str, Any]:
        """See `Selector.to_dict`."""
        labels, names = (None if g is None else [*g] for g in (self.labels, self.names))
        return {"kind": "tag-column", "column": self.column, "labels": labels, "names": names}

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`.

        Raises:
            InvalidValueError: If the column is missing, or there is not one tag for each token.
            InvalidTypeError: If a row is a text, or its tags are no tags.
        """
        if rows is None or self.column not in rows:
            raise InvalidValueError(
                f"slots are chosen by the column {self.column!r}, and there is none; use "
                "dataset.map(privatizer), or privatizer(row) with that column in the row"
            )
        masks: list[Mask | None] = []
        for position, (row, tags) in enumerate(zip(words, rows[self.column], strict=True)):
            try:
                masks.append(None if row is None else self._mask(row, tags))
            except (InvalidTypeError, InvalidValueError) as error:
                where = f"column {self.column!r}, row {position} of the batch"
                raise type(error)(f"{where}: {error}") from None
        if self.labels is not None and not any(mask is not None and mask.any() for mask in masks):
            names = (
                self._name(tag)
                for mask, tags in zip(masks, rows[self.column], strict=True)
                if mask is not None
                for tag in tags
            )
            if sum(name != OUTSIDE for name in names) >= NOTED_TAGS:
                _report_labels(self.column, self.labels)
        return masks

    def _mask(self, row: Sequence[str], tags: Any) -> Mask:
        if isinstance(row, TextRow):
            raise InvalidTypeError(
                "tags go with lists of tokens, and the text column holds a text; split it the way "
                'it was tagged, as in dataset.map(lambda row: {"tokens": row["text"].split()}), '
                "and name that column with text_column= (pass with_indices=True for single rows)"
            )
        tokens = len(row.tokens) if isinstance(row, TokenRow) else len(row)
        if isinstance(tags, str) or not hasattr(tags, "__len__"):
            raise InvalidTypeError(f"expected a list of tags, got a {type(tags).__name__}")
        if len(tags) != tokens:
            raise InvalidValueError(
                f"expected one tag for each of {tokens} tokens, got {len(tags)} tags"
            )
        selected = np.array([selects(self._name(t), self.labels) for t in tags], dtype=np.bool_)
        return selected[row.positions] if isinstance(row, TokenRow) else selected

    def _name(self, tag: object) -> str:
        if isinstance(tag, str):
            return tag
        if isinstance(tag, bool) or not isinstance(tag, (int, np.integer)):
            raise InvalidTypeError(
                f"expected tags to be strings or integers, got a {type(tag).__name__}"
            )
        if self.names is None:
            raise InvalidTypeError(
                "tags are integers; say what they stand for with "
                "names=dataset.features[column].feature.names"
            )
        if not 0 <= tag < len(self.names):
            raise InvalidValueError(
                f"expected tags from 0 to {len(self.names) - 1}, got {tag}; check names="
            )
        return self.names[int(tag)]


@cache
def _report_labels(column: str, labels: tuple[str, ...]) -> None:
    """Warn once of a batch with tags, none of which has one of the labels."""
    # The tags are not shown: a column of the wrong name may hold the text.
    logger.warning(
        "a batch has %d tags and more in column %r, none of the labels %s: all its tokens "
        "are RELEASED AS THEY ARE; are the labels spelled as in the data?",
        NOTED_TAGS,
        column,
        ", ".join(map(repr, labels)),
    )

"""Selection by spans of characters that a function, such as a named-entity recognizer, returns."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.slots.selector import Mask, Rows, Selector, Words
from hf_dxprivacy.slots.tags import chosen_labels
from hf_dxprivacy.text import Span, TextRow, TokenRow

# Disclosure of every selector that reads the text.
MISSED = (
    "Slots are found in the text. What is not found is released as it is; what is found depends "
    "on the text, and shows in the mask."
)


class SpanSelector(Selector):
    """Selects the words that touch a span of characters which a function finds.

    The function may be Presidio's analyzer, whose results it takes as they are:

    >>> analyzer = presidio_analyzer.AnalyzerEngine()
    >>> selector = SpanSelector(partial(analyzer.analyze, language="en"), labels=["PERSON"])

    Args:
        find: Takes a text and returns its spans: (start, stop) or (start, stop, label), offsets in
            characters and stop excluded, or objects with ``start``, ``end`` and ``entity_type``.
            Tokens come joined by spaces. It travels into every process of `Dataset.map`.
        labels: The labels to select; all by default.

    Raises:
        InvalidTypeError: If `find` cannot be called, or the labels are no strings.
        InvalidValueError: If there are no labels.
    """

    def __init__(
        self,
        find: Callable[[str], Iterable[Any]],
        labels: Collection[str] | None = None,
    ) -> None:
        if not callable(find):
            raise InvalidTypeError(f"expected a function of a text, got a {type(find).__name__}")
        self.find = find
        self.labels = chosen_labels(labels, None)

    def __repr__(self) -> str:
        labels = "all" if self.labels is None else list(self.labels)
        return f"{type(self).__name__}(labels={labels})"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """Find the slots of a batch of rows; see `Selector.masks`.

        Raises:
            InvalidTypeError: If `find` returns something else than spans.
        """
        del rows
        return masks_of(words, lambda texts: [self._spans(text) for text in texts])

    @property
    def disclosures(self) -> tuple[str, ...]:
        """See `Selector.disclosures`."""
        return (MISSED,)

    def _spans(self, text: str) -> list[Span]:
        found = [_read(span) for span in self.find(text)]
        return [span for span, label in found if self.labels is None or label in self.labels]


def masks_of(
    words: Words, find: Callable[[list[str]], Sequence[Iterable[Span]]]
) -> list[Mask | None]:
    """Return the words of each row that touch a span.

    Args:
        words: As for `Selector.masks`.
        find: Takes the texts of all rows that there are, and returns the spans of each.
    """
    located = [None if row is None else _locate(row) for row in words]
    found = iter(find([row[0] for row in located if row is not None]))
    return [None if row is None else _touched(row[1], next(found)) for row in located]


def _locate(words: Sequence[str]) -> tuple[str, list[Span]]:
    """Return the text of a row, and where its words are in it."""
    if isinstance(words, TextRow):
        return words.detokenize(words.words), words.offsets(words.words)
    row = (
        words
        if isinstance(words, TokenRow)
        else TokenRow(list(words), [*range(len(words))], [*words])
    )
    tokens = [token or "" for token in row.tokens]
    stops = np.cumsum([len(token) + 1 for token in tokens], dtype=np.int64) - 1
    places = [(int(stops[p]) - len(tokens[p]), int(stops[p])) for p in row.positions]
    return " ".join(tokens), places


def _touched(places: Sequence[Span], spans: Iterable[Span]) -> Mask:
    words, found = _pairs(places), _pairs(spans)
    found = found[found[:, 0] < found[:, 1]]
    before = words[:, None, 0] < found[None, :, 1]
    mask: Mask = np.any(before & (found[None, :, 0] < words[:, None, 1]), axis=1)
    return mask


def _pairs(spans: Iterable[Span]) -> NDArray[np.int64]:
    return np.array(list(spans), dtype=np.int64).reshape(-1, 2)


def _read(span: Any) -> tuple[Span, str | None]:
    """Return the offsets and the label of a span of any accepted form."""
    if hasattr(span, "start") and hasattr(span, "end"):
        return (span.start, span.end), getattr(span, "entity_type", None)
    if not isinstance(span, (tuple, list)) or len(span) not in (2, 3):
        raise InvalidTypeError(
            "expected spans (start, stop) or (start, stop, label), or objects with start and end, "
            f"got a {type(span).__name__}"
        )
    return (span[0], span[1]), span[2] if len(span) == 3 else None

"""`RedactingPrivatizer`: some entities become a constant, and every other word is perturbed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import Mask
from hf_dxprivacy.privatizers.nested import NestedRow, flat, joined_masks
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.slots import SpanSelector
from hf_dxprivacy.slots.span_selectors import LabelledSpan, touched
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Span, TextRow, TokenRow

_REDACTED = (
    "Spans that are found as {labels} are not perturbed: each, with all words that it touches, "
    "becomes its constant, such as {constant}. So two texts that differ only within spans which "
    "are found in both, as the same, are released with the same probabilities (bound 0).",
    "Not covered, released: how many spans are redacted, as what, and between which words. The "
    "text decides it, the words around a span included, and no noise hides it: the statement holds "
    "for inputs in which the same constants stand at the same places, and nothing is promised "
    "between others.",
    "What is not found is no exception: it is perturbed as every other word, under ε·d, and not "
    "redacted. Nothing here bounds how often that happens.",
)
_EQUAL = "Rows with seeded or memoized noise are equal if they are equal after redaction."


class RedactingPrivatizer(DxPrivatizer):
    """Replaces some entities by constants such as ``<CREDIT_CARD>``, and perturbs all other words.

    Redaction hides all of what it finds, and nothing of what it misses; perturbation hides a part
    of everything. In all else it is a `DxPrivatizer` of texts.

    >>> cards = PresidioSelector(AnalyzerEngine, ["CREDIT_CARD"])
    >>> privatizer = RedactingPrivatizer("english", "hierarchical", 1.5, redact=cards)
    >>> private = dataset.map(privatizer, batched=True)

    Args:
        space: As for `DxPrivatizer`.
        mechanism: As for `DxPrivatizer`.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        redact: What finds the entities, and which: a `PresidioSelector`, a `SpacySelector`, or a
            `SpanSelector` over a function, with labels. Of overlapping spans the longest names the
            constant.
        **options: All others of `DxPrivatizer`.

    Raises:
        InvalidTypeError: If `redact` is no such selector.
        InvalidValueError: If it names no labels, or cells are lists of tokens.
    """

    def __init__(
        self,
        space: EmbeddingSpace | str | Path,
        mechanism: str | Mechanism | None = None,
        epsilon: float | None = None,
        *,
        redact: SpanSelector | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(redact, SpanSelector):
            raise InvalidTypeError(
                "expected redact= to be a selector of labelled spans, got a "
                f"{type(redact).__name__}; hf_dxprivacy.integrations.presidio has one"
            )
        if redact.labels is None:
            raise InvalidValueError(
                "expected redact= to name what is redacted, and it selects any label; give it "
                'labels, such as ["CREDIT_CARD"]'
            )
        super().__init__(space, mechanism, epsilon, **options)
        if self.is_split_into_words:
            raise InvalidValueError(_TEXTS_ONLY)
        self.redact = redact

    @property
    def _selection_disclosures(self) -> tuple[str, ...]:
        labels = self.redact.labels or ()
        named = {"labels": " or ".join(labels), "constant": _constant(labels[0])}
        sentences = [sentence.format(**named) for sentence in _REDACTED]
        return (*sentences, *[_EQUAL] * (self._noise is not None))

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"redact": self.redact.to_dict()}

    def _select(
        self, rows: Sequence[Any], batch: Mapping[str, Any] | None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the rows with constants in the places of entities, and where these are not."""
        pieces = flat(rows)
        if any(isinstance(piece, TokenRow) for piece in pieces):
            raise InvalidTypeError(_TEXTS_ONLY)
        texts = [text.detokenize(text.words) for text in pieces if text is not None]
        found = iter(self.redact.spans(texts))
        done = [(None, None) if text is None else _redacted(text, next(found)) for text in pieces]
        left = iter([text for text, _ in done])
        redacted = [
            replace(row, texts=[*islice(left, len(row.texts))])
            if isinstance(row, NestedRow)
            else next(left)
            for row in rows
        ]
        return redacted, joined_masks(rows, [mask for _, mask in done])


_TEXTS_ONLY = (
    "redaction is for texts, since an entity may be several tokens and becomes one constant, got "
    "lists of tokens; join them to a text first"
)


def _constant(label: str | None) -> str:
    return f"<{label}>"


def _redacted(text: TextRow, spans: Sequence[LabelledSpan]) -> tuple[TextRow, Mask]:
    """Return a text with one constant for each run of spans and the words that they touch."""
    if not spans:
        return text, np.ones(len(text), dtype=np.bool_)
    places, whole = text.offsets(text.words), text.detokenize(text.words)
    found = sorted((s for s in spans if s[0] < s[1]), key=lambda s: (s[0], -s[1], str(s[2])))
    words, ends, starts, kept, done = list[str](), [0], list[int](), list[bool](), 0

    def put(start: int, stop: int, word: str, perturbed: bool) -> None:
        starts.append(start)
        ends.append(stop)
        words.append(word)
        kept.append(not perturbed)

    for start, stop, label, first, last in _runs(places, found):
        for at in range(done, first):
            put(*places[at], text.words[at], True)
        put(start, stop, _constant(label), False)
        done = last
    for at in range(done, len(places)):
        put(*places[at], text.words[at], True)
    separators = [whole[a:b] for a, b in zip(ends, [*starts, len(whole)], strict=True)]
    return TextRow(words, separators), ~np.array(kept, dtype=np.bool_)


def _runs(
    places: Sequence[Span], spans: Sequence[LabelledSpan]
) -> list[tuple[int, int, str | None, int, int]]:
    """Join ascending spans that overlap once they are widened to the words that they touch.

    Returns:
        The start and stop of each run in characters, the label of its longest span, the first word
        in it and the one after the last.
    """
    runs: list[tuple[int, int, str | None, int, int]] = []
    longest = 0
    for (start, stop, label), (first, last) in zip(
        spans, touched(places, [span[:2] for span in spans]), strict=True
    ):
        length = stop - start
        if first < last:
            start, stop = min(start, places[first][0]), max(stop, places[last - 1][1])
        if runs and start < runs[-1][1]:
            a, b, named, c, d = runs.pop()
            label, length = (label, length) if length > longest else (named, longest)
            start, stop, first, last = min(a, start), max(b, stop), min(c, first), max(d, last)
        runs.append((start, stop, label, first, last))
        longest = length
    return runs

"""`RedactingPrivatizer`: some entities become a constant, and every other word is perturbed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantee import Disclosure, uncovered
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import Mask
from hf_dxprivacy.privatizers.nested import NestedRow, flat, joined_masks
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.publishing.released_words import ReleasedWords, read_release, require_texts
from hf_dxprivacy.slots import SpanSelector
from hf_dxprivacy.slots.span_selectors import LabelledSpan, touched
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Span, TextRow, TokenRow

_REDACTED = (
    uncovered(
        "how many spans are redacted, as what, and between which words",
        "The text decides it, the words around a span included, and no noise hides it: the "
        "statement holds for inputs in which the same constants stand at the same places, and "
        "nothing is promised between others.",
        how=", released",
    ),
    Disclosure(
        "What is not found is no exception: it is perturbed as every other word, under ε·d, and "
        "not redacted. Nothing here bounds how often that happens."
    ),
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
    def _selection_disclosures(self) -> tuple[Disclosure, ...]:
        labels = self.redact.labels or ()
        found = Disclosure(
            f"Spans that are found as {' or '.join(labels)} are not perturbed: each, with all "
            f"words that it touches, becomes its constant, such as {_constant(labels[0])}. So two "
            "texts that differ only within spans which are found in both, as the same, are "
            "released with the same probabilities (bound 0)."
        )
        return (found, *_REDACTED, *[Disclosure(_EQUAL)] * (self._noise is not None))

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"redact": self.redact.to_dict()}

    def _select(
        self, rows: Sequence[Any], batch: Mapping[str, Any] | None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the rows with constants in the places of entities, and where these are not."""
        pieces = flat(rows)
        if any(isinstance(piece, TokenRow) for piece in pieces):
            raise InvalidTypeError(_TEXTS_ONLY)
        present = [piece for piece in pieces if piece is not None]
        texts = [text.detokenize(text.words) for text in present]
        found = self.redact.spans(texts)
        perturbed = np.ones(max(map(len, present), default=0), dtype=np.bool_)
        changed = iter(
            [
                _redacted(text, whole, spans) if spans else (text, perturbed[: len(text)])
                for text, whole, spans in zip(present, texts, found, strict=True)
            ]
        )
        done = [(None, None) if piece is None else next(changed) for piece in pieces]
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


def _constant(label: str) -> str:
    return f"<{label}>"


def _redacted(text: TextRow, whole: str, spans: Sequence[Any]) -> tuple[TextRow, Mask]:
    """Return a text with one constant for each run of spans and the words that they touch."""
    places = text.offsets(text.words)
    inside = ((max(start, 0), min(stop, len(whole)), label) for start, stop, label in spans)
    found = sorted(span for span in inside if span[0] < span[1])
    words, separators, constants, end, done = list[str](), list[str](), list[int](), 0, 0
    last_words = (len(whole), len(whole), None, len(places), len(places))
    for start, stop, label, first, last in [*_runs(places, found), last_words]:
        if done < first:
            separators += [whole[end : places[done][0]], *text.separators[done + 1 : first]]
            words += text.words[done:first]
            end = places[first - 1][1]
        separators.append(whole[end:start])
        if label is not None:
            constants.append(len(words))
            words.append(_constant(label))
        end, done = stop, last
    mask = np.ones(len(words), dtype=np.bool_)
    mask[constants] = False
    return TextRow(words, separators), mask


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


@read_release.register
def _of_redacted(
    privatizer: RedactingPrivatizer, released: Any, masks: Any
) -> tuple[ReleasedWords, bool]:
    """Look up the words of a release; what a constant stood for was none of its words."""
    found, single = read_release.dispatch(DxPrivatizer)(privatizer, released, masks)
    rows = map(privatizer._reader.read, require_texts(released)[0])
    constants = [
        word in (privatizer.redact.labels or ()) and a.endswith("<") and b.startswith(">")
        for row in rows
        if isinstance(row, TextRow)
        for word, (a, b) in zip(row.words, pairwise(row.separators), strict=True)
    ]
    found.known[np.flatnonzero(constants)] = 0.0
    return found, single

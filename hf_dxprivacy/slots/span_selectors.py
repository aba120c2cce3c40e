"""Selection by spans of characters: of a function, or of a token-classification model."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy._runtime import in_worker, lazy_property, require
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
)
from hf_dxprivacy.guarantee import Disclosure
from hf_dxprivacy.slots.tags import OUTSIDE, chosen_labels, selects
from hf_dxprivacy.spaces.models import EXTRA, TransformersModel
from hf_dxprivacy.text import Row, Span, TextRow, TokenRow
from hf_dxprivacy.text.selector import Mask, Rows, Selector, Words

# Disclosure of every selector that reads the text.
MISSED = Disclosure(
    "Slots are found in the text. What is not found is released as it is; what is found depends "
    "on the text, and shows in the mask."
)

LabelledSpan = tuple[int, int, str | None]

# Tokens that a model is given at once, at most; many cannot take more.
_LONGEST = 512

# Windows of a long text share one token in so many.
_OVERLAP = 4


class SpanSelector(Selector):
    """Selects the words that touch a span of characters which a function finds.

    For Presidio and spaCy, which are loaded again in every process, `hf_dxprivacy.integrations` has
    selectors of their own.

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
        self, find: Callable[[str], Iterable[Any]], labels: Collection[str] | None = None
    ) -> None:
        if not callable(find):
            raise InvalidTypeError(f"expected a function of a text, got a {type(find).__name__}")
        self.find = find
        self.labels = chosen_labels(labels, None)

    def __repr__(self) -> str:
        labels = "all" if self.labels is None else list(self.labels)
        return f"{type(self).__name__}(labels={labels})"

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`; InvalidTypeError if `find` returns something else than spans."""
        del rows
        return _masks(
            words, lambda texts: [[span[:2] for span in spans] for spans in self.spans(texts)]
        )

    def spans(self, texts: Sequence[str]) -> list[list[LabelledSpan]]:
        """Find the spans with one of the labels.

        Args:
            texts: Texts in Unicode NFC.

        Returns:
            For each text (start, stop, label), in characters and stop excluded.
        """
        return [self._chosen(self.find(text)) for text in texts]

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """See `Selector.disclosures`."""
        return (MISSED,)

    def _chosen(self, spans: Iterable[Any]) -> list[LabelledSpan]:
        found = []
        for span in spans:
            if hasattr(span, "start") and hasattr(span, "end"):
                start, stop, label = span.start, span.end, getattr(span, "entity_type", None)
            elif isinstance(span, (tuple, list)) and len(span) in (2, 3):
                start, stop, label = (*span, None)[:3]
            else:
                raise InvalidTypeError(
                    "expected spans (start, stop) or (start, stop, label), or objects with start "
                    f"and end, got a {type(span).__name__}"
                )
            if self.labels is None or label in self.labels:
                found.append((start, stop, label))
        return found


def _masks(
    words: Words, find: Callable[[list[str]], Sequence[Iterable[Span]]]
) -> list[Mask | None]:
    """Return the words of each row that touch a span that is found in the rows' texts."""
    read = [None if row is None else _texts_row(row) for row in words]
    texts = [row.detokenize(row.words) for row in read if row is not None]
    found = iter(find([text if isinstance(text, str) else _joined(text) for text in texts]))
    masks: list[Mask | None] = []
    for row in read:
        mask = None if row is None else np.zeros(len(row), dtype=np.bool_)
        masks.append(mask)
        if row is None or mask is None or not (spans := [*next(found)]):
            continue
        for first, last in touched(_places(row), spans):
            mask[first:last] = True
    return masks


def touched(places: Sequence[Span], spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Return for each span the first word that it touches and the one after the last.

    Args:
        places: (start, stop) of each word in characters, ascending.
        spans: (start, stop) in characters. An empty one touches none.
    """
    starts, stops = [start for start, _ in places], [stop for _, stop in places]
    ranges = []
    for start, stop in spans:
        first = bisect_right(stops, start)
        ranges.append((first, max(first, bisect_left(starts, stop)) if start < stop else first))
    return ranges


def _texts_row(words: Sequence[str]) -> Row:
    if isinstance(words, (TextRow, TokenRow)):
        return words
    return TokenRow(list(words), [*range(len(words))], [*words])


def _joined(tokens: Sequence[str | None]) -> str:
    return " ".join(token or "" for token in tokens)


def _places(row: Row) -> list[Span]:
    """Return where the words of a row are in its text."""
    if isinstance(row, TextRow):
        return row.offsets(row.words)
    stops = [*accumulate(len(token or "") + 1 for token in row.tokens)]
    return [(stops[p] - 1 - len(row.tokens[p] or ""), stops[p] - 1) for p in row.positions]


class NerSelector(Selector):
    """Selects the words that a token classification model takes for names.

    A word is a slot if any part of it has one of the labels. Longer texts than the model can take
    are read in overlapping windows, and a name is one that any of them shows.

    Args:
        model: A model of `transformers`: a folder, a repository on the Hub, a pipeline, or a pair
            of a loaded model and its tokenizer. A folder or repository is loaded where it is first
            used, in every process of `Dataset.map`, and only its name travels there. A loaded
            object travels whole, and is hashed whole for the fingerprint: save it, and give its
            folder.
        labels: The labels to select, without prefix, as in ["PER", "LOC"]; by default all but "O".
        revision: Branch, tag or commit of a repository; looked up once.
        device: Where the model computes, as in "cuda:1"; by default the first GPU if there is one.
            Beside a loaded model, which is where it is, it is not allowed.
        batch_size: How many windows the model is given at once.
        window: How many tokens a window has at most; by default what the model can take.

    Raises:
        InvalidTypeError: If an argument is of the wrong type, or the tokenizer does not tell the
            offsets of its tokens.
        InvalidValueError: If the model does not have one of the labels, cannot be found, or is
            none that classifies tokens.
        HubError: If the Hub refuses it or cannot be reached.
        MissingExtraError: If `transformers` or `torch` is not installed.
    """

    def __init__(
        self,
        model: Any,
        *,
        labels: Collection[str] | None = None,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        window: int | None = None,
    ) -> None:
        require_at_least(1, batch_size=batch_size)
        if window is not None:
            require_at_least(8, "a window has room for special tokens too", window=window)
        self.batch_size = batch_size
        self.window = window
        self.device = device
        self.digest: str | None = None
        if isinstance(model, (str, Path)):
            self._given = None
            folder = Path(model)
            self._checkpoint = TransformersModel.find(
                folder.resolve() if folder.is_dir() else model, revision
            )
            config = self._checkpoint.load(require("transformers", EXTRA).AutoConfig, "config")
            if self._checkpoint.commit is None:
                self.digest = _digest(folder)
        else:
            self._given = _loaded(model, revision, device)
            config = self._given[0].config
        self.tags = tuple(config.id2label[label] for label in sorted(config.id2label))
        self.labels = chosen_labels(labels, self.tags)
        if labels is None and OUTSIDE not in self.tags:
            raise InvalidValueError(
                f"the model has no label {OUTSIDE!r} for words that are no names; name those to "
                f"select with labels=, out of {', '.join(map(repr, self.tags))}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_ready"}

    def __repr__(self) -> str:
        labels = "all" if self.labels is None else list(self.labels)
        return f"{type(self).__name__}({self.name!r}, labels={labels})"

    @property
    def name(self) -> str:
        """Name of the model, with its commit if it is one of the Hub."""
        if self._given is not None:
            return type(self._given[0]).__name__
        return str(self._checkpoint.commit or Path(self._checkpoint.name).name)

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """See `Selector.disclosures`."""
        return (Disclosure(f"Slots are the names that the model {self.name} finds."), MISSED)

    @property
    def is_public(self) -> bool:
        """True if the model is on the Hub, where other machines find it."""
        return self._given is None and self._checkpoint.commit is not None

    def to_dict(self) -> dict[str, Any]:
        """See `Selector.to_dict`; InvalidValueError if the model is in memory only."""
        if self._given is not None:
            raise InvalidValueError(
                "the model that finds slots is in memory only; save it and its tokenizer with "
                "save_pretrained, or push them, and make the selector from there"
            )
        commit = self._checkpoint.commit
        return {
            "kind": "ner",
            "model": self._checkpoint.name,
            "commit": None if commit is None else commit.sha,
            "digest": self.digest,
            "labels": None if self.labels is None else list(self.labels),
            "window": self.window,
        }

    @classmethod
    def from_dict(cls, model: str, commit: Any, digest: Any, **values: Any) -> "NerSelector":
        """Make a selector of what `to_dict` returned; ArtifactError if the model has changed."""
        selector = cls(model, revision=commit, **values)
        if selector.digest != digest:
            raise ArtifactError(
                f"the model in {model!r} was changed since the privatizer was saved; it may find "
                "other slots, so make a new privatizer"
            )
        return selector

    def require_public(self) -> None:
        """See `Selector.require_public`: the model has to be on the Hub."""
        if not self.is_public:
            raise InvalidValueError(
                f"the model {self.name!r}, which finds the slots, is not on the Hub, where others "
                "could find it; push it and its tokenizer, and make the selector from there"
            )

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`."""
        del rows
        return _masks(words, self._spans)

    @lazy_property
    def _ready(self) -> tuple[Any, Any]:
        """The model, where it computes, and the tokenizer."""
        if self._given is not None:
            return self._given
        transformers, torch = require("transformers", EXTRA), require("torch", EXTRA)
        load = self._checkpoint.load
        model = load(transformers.AutoModelForTokenClassification, "model")
        tokenizer = _checked(load(transformers.AutoTokenizer, "tokenizer"))
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        return model.to(device).eval(), tokenizer

    def _spans(self, texts: list[str]) -> list[list[Span]]:
        """Return the selected tokens of texts, cut into windows that the model can take."""
        spans: list[list[Span]] = [[] for _ in texts]
        if not texts:
            return spans
        torch = require("torch", EXTRA)
        if in_worker():
            # A child of a fork waits for ever for the threads that only its parent has.
            torch.set_num_threads(1)
        model, tokenizer = self._ready
        positions = getattr(model.config, "max_position_embeddings", None) or _LONGEST
        longest = self.window or int(min(positions, tokenizer.model_max_length, _LONGEST))
        cut = tokenizer(
            texts,
            truncation=True,
            max_length=longest,
            stride=longest // _OVERLAP,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_attention_mask=True,
        )
        rows, offsets = cut.pop("overflow_to_sample_mapping"), cut.pop("offset_mapping")
        selected = torch.tensor([selects(tag, self.labels) for tag in self.tags])
        # Windows of about one length go together. What fills them up is masked out, so that any
        # token does.
        order = sorted((n for n, o in enumerate(offsets) if o), key=lambda n: len(offsets[n]))
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            inputs = {}
            for name, values in cut.items():
                tensors = [torch.tensor(values[window]) for window in chosen]
                padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
                inputs[name] = padded.to(model.device)
            with torch.inference_mode():
                tags = model(**inputs).logits.argmax(dim=-1)
            for window, hits in zip(chosen, selected[tags.cpu()].tolist(), strict=True):
                # Padding is shorter than the row of hits; special tokens have empty spans.
                hit = [span for span, h in zip(offsets[window], hits, strict=False) if h]
                spans[rows[window]] += hit
        return spans


def _loaded(model: Any, revision: str | None, device: str | None) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a pipeline or a pair."""
    if revision is not None or device is not None:
        raise InvalidTypeError(
            "revision= and device= are for folders and repositories; a loaded model is what it "
            "is, where it is"
        )
    pair = model
    if not isinstance(model, tuple):
        pair = getattr(model, "model", None), getattr(model, "tokenizer", None)
    if len(pair) != 2 or not hasattr(getattr(pair[0], "config", None), "id2label"):
        raise InvalidTypeError(
            "expected a folder, a repository on the Hub, a token-classification pipeline or a "
            f"pair (model, tokenizer), got a {type(model).__name__}"
        )
    return pair[0].eval(), _checked(pair[1])


def _checked(tokenizer: Any) -> Any:
    if not getattr(tokenizer, "is_fast", False):
        raise InvalidTypeError(
            "expected a tokenizer that tells the offsets of its tokens (a fast one, with a "
            f"tokenizer.json), got a {type(tokenizer).__name__}"
        )
    return tokenizer


def _digest(folder: Path) -> str:
    """Digest the files of a model, so that a cached result is none of another model."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.suffix in (".json", ".safetensors", ".bin", ".txt", ".model"):
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()

"""Selection of names by a token-classification model of `transformers`."""

import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from hf_dxprivacy._runtime import lazy_property, require
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_at_least
from hf_dxprivacy.slots.selector import Mask, Rows, Selector, Words
from hf_dxprivacy.slots.spans import MISSED, masks_of
from hf_dxprivacy.slots.tags import OUTSIDE, chosen_labels, selects
from hf_dxprivacy.spaces.models import EXTRA, TransformersModel
from hf_dxprivacy.text import Span

# Tokens that a model is given at once, at most; many cannot take more.
_LONGEST = 512

# Windows of a long text share one token in so many.
_OVERLAP = 4

_forked = False


def _mark_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_mark_fork)


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
    def disclosures(self) -> tuple[str, ...]:
        """See `Selector.disclosures`."""
        return (f"Slots are the names that the model {self.name} finds.", MISSED)

    @property
    def is_public(self) -> bool:
        """True if the model is on the Hub, where other machines find it."""
        return self._given is None and self._checkpoint.commit is not None

    def to_dict(self) -> dict[str, Any]:
        """Return what this is made again from; see `Selector.to_dict`.

        Raises:
            InvalidValueError: If the model is in memory only.
        """
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

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """Find the slots of a batch of rows; see `Selector.masks`."""
        del rows
        return masks_of(words, self._spans)

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
        torch = require("torch", EXTRA)
        if _forked:
            # A child of a fork waits for ever for the threads that only its parent has.
            torch.set_num_threads(1)
        spans: list[list[Span]] = [[] for _ in texts]
        model, tokenizer = self._ready
        selected = torch.tensor([selects(tag, self.labels) for tag in self.tags])
        for windows, inputs in self._batches(texts, tokenizer):
            with torch.inference_mode():
                on_device = {name: values.to(model.device) for name, values in inputs.items()}
                tags = model(**on_device).logits.argmax(dim=-1)
            for (row, offsets), hits in zip(windows, selected[tags.cpu()].tolist(), strict=True):
                # Padding is shorter than the row of hits; special tokens have empty spans.
                spans[row] += [span for span, hit in zip(offsets, hits, strict=False) if hit]
        return spans

    def _batches(
        self, texts: list[str], tokenizer: Any
    ) -> Iterator[tuple[list[tuple[int, list[Span]]], Any]]:
        """Cut texts into windows, and give them out in batches of about one length.

        Yields:
            For each window the text that it is of and the offsets of its tokens, and the inputs of
            the model.
        """
        if not texts:
            return
        longest = self.window or _window(self._ready[0].config, tokenizer)
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
        sizes = [len(window) for window in offsets]
        order = sorted((n for n, size in enumerate(sizes) if size), key=sizes.__getitem__)
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            inputs = {
                n: _padded([values[window] for window in chosen]) for n, values in cut.items()
            }
            yield [(rows[window], offsets[window]) for window in chosen], inputs


def _loaded(model: Any, revision: str | None, device: str | None) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a pipeline or a pair."""
    if revision is not None or device is not None:
        raise InvalidTypeError(
            "revision= and device= are for folders and repositories; a loaded model is what it "
            "is, where it is"
        )
    pair = model if isinstance(model, tuple) else (_part(model, "model"), _part(model, "tokenizer"))
    if len(pair) != 2 or not hasattr(getattr(pair[0], "config", None), "id2label"):
        raise InvalidTypeError(
            "expected a folder, a repository on the Hub, a token-classification pipeline or a "
            f"pair (model, tokenizer), got a {type(model).__name__}"
        )
    return pair[0].eval(), _checked(pair[1])


def _part(pipeline: Any, name: str) -> Any:
    return getattr(pipeline, name, None)


def _checked(tokenizer: Any) -> Any:
    if not getattr(tokenizer, "is_fast", False):
        raise InvalidTypeError(
            "expected a tokenizer that tells the offsets of its tokens (a fast one, with a "
            f"tokenizer.json), got a {type(tokenizer).__name__}"
        )
    return tokenizer


def _padded(rows: list[list[int]]) -> Any:
    """Return rows as one tensor; what fills it up is masked out, so that any token does."""
    torch = require("torch", EXTRA)
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def _window(config: Any, tokenizer: Any) -> int:
    """Return how many tokens a model can take at once."""
    positions = getattr(config, "max_position_embeddings", None) or _LONGEST
    return int(min(positions, tokenizer.model_max_length, _LONGEST))


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

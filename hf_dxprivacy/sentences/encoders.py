"""Sentence encoders: a text as a unit vector, which is a function of that text alone."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import CPU, lazy_property, require
from hf_dxprivacy.errors import ArtifactError, InvalidValueError, require_at_least
from hf_dxprivacy.hub import HubOptions
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.spaces.models import TransformersModel
from hf_dxprivacy.spaces.space_artifact import refer, require_digest
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.segmenters import WORDS, identity

# a of smooth inverse frequency, a / (a + p(w)).
SMOOTHING = 1e-3
# Texts whose words are held at once.
TEXTS = 4096
# Public texts of as many tokens that a model encodes at once.
TOGETHER = 16


class SentenceEncoder(ABC):
    """Encodes texts. What it returns for a text does not depend on the other texts of a call.

    Attributes:
        kind: Its name in a stored pool.
    """

    kind: str

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, d) float64 vectors of length 1; zeros for a text that it has nothing for."""

    def encode_public(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return what `encode` does up to rounding, which others may change: of public texts."""
        return self.encode(texts)

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 in hexadecimal of all that decides a vector but `tensors`."""

    @property
    @abstractmethod
    def reference(self) -> dict[str, Any]:
        """Reference by which the encoder is loaded again, with its "digest"."""

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name that are stored in the pool."""
        return {}

    def known_shares(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the share of known words of each text, (m,); 1 for an encoder of any text."""
        return np.ones(len(texts))

    def fitted(self, sentences: Sequence[str]) -> "SentenceEncoder":
        """Return the encoder for a pool of these public sentences."""
        del sentences
        return self


class WordEncoder(SentenceEncoder):
    """Mean of the word vectors of a space, weighted by smooth inverse frequency.

    A word w has the weight a / (a + p(w)), a = 0.001 (Arora, Liang and Ma, ICLR 2017). Words are
    looked up as privatizers do; those that the space lacks do not count.

    Args:
        space: An `EmbeddingSpace`, or the name of a stored one.
        weights: (V,) weights ≥ 0 by row. Without them a pool counts the words of its sentences.
        segmenter: What splits texts, as for `DxPrivatizer`.
    """

    kind = "words"

    def __init__(
        self,
        space: EmbeddingSpace | str | Path = "english",
        weights: NDArray[np.floating] | None = None,
        segmenter: str = WORDS,
    ) -> None:
        if not isinstance(space, EmbeddingSpace):
            space = EmbeddingSpace.from_pretrained(space)
        if weights is not None and (weights.shape != (len(space),) or not (weights >= 0).all()):
            raise InvalidValueError(
                f"expected {len(space)} weights of at least 0, one for each word of the space, got "
                f"an array of shape {weights.shape}"
            )
        self.space = space
        self.segmenter = identity(segmenter)
        self._weights = weights

    def fitted(self, sentences: Sequence[str]) -> "WordEncoder":
        """Return this encoder with weights by the frequencies of words in some sentences."""
        if self._weights is not None:
            return self
        counts = np.zeros(len(self.space))
        for start in range(0, len(sentences), TEXTS):
            ids = self._looked_up(sentences[start : start + TEXTS])[0]
            counts += np.bincount(ids, minlength=len(counts))
        # Words that do not occur are as rare as one that occurs once.
        shares = np.maximum(counts, 1.0) / max(1.0, counts.sum())
        weights = (SMOOTHING / (SMOOTHING + shares)).astype(np.float16)
        return WordEncoder(self.space, weights, self.segmenter)

    def known_shares(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the share of the words of each text that the space has, (m,)."""
        parts = [self._looked_up(texts[i : i + TEXTS])[1:] for i in range(0, len(texts), TEXTS)]
        known, words = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
        shares: NDArray[np.float64] = known / np.maximum(words, 1)
        return shares

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, n) float64; see `SentenceEncoder`."""
        sums = np.zeros((len(texts), self.space.dim))
        for start in range(0, len(texts), TEXTS):
            part = sums[start : start + TEXTS]
            ids, lengths, _ = self._looked_up(texts[start : start + TEXTS])
            points = np.asarray(self.space.vectors[ids], dtype=np.float64)
            if self._weights is not None:
                points *= self._weights[ids][:, None]
            some = lengths > 0
            if len(ids):
                part[some] = np.add.reduceat(points, (np.cumsum(lengths) - lengths)[some])
        return _normalized(sums)

    def _looked_up(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
        """Return the rows of all known words, and how many of them, and words, each text has."""
        reader = RowReader(self.segmenter)
        rows = [reader.read_text(text) for text in texts]
        ids = look_up_rows(rows, self.space)
        before = np.append(0, np.cumsum(ids >= 0))
        ends = np.cumsum([0, *(len(row.words) for row in rows)])
        return ids[ids >= 0], np.diff(before[ends]), np.diff(ends)

    @property
    def digest(self) -> str:
        """Digest of the space, and of what splits texts."""
        if self.segmenter == WORDS:
            return self.space.digest
        return hashlib.sha256(f"{self.space.digest} {self.segmenter}".encode()).hexdigest()

    @property
    def reference(self) -> dict[str, Any]:
        """The space and its digest; what splits texts, if that is not the usual."""
        split = {} if self.segmenter == WORDS else {"segmenter": self.segmenter}
        return refer(self.space) | split

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The weights."""
        return {} if self._weights is None else {"weights": self._weights}

    @classmethod
    def restored(
        cls, reference: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], access: HubOptions
    ) -> "WordEncoder":
        """Return an encoder as it was stored; the space must not have changed."""
        segmenter = reference.get("segmenter", WORDS)
        space = EmbeddingSpace.from_pretrained(
            reference["name"], revision=reference["commit"], **asdict(access)
        )
        require_digest(reference, space.digest)
        return cls(space, tensors.get("weights"), segmenter)


class TransformersEncoder(SentenceEncoder):
    """Mean of the last hidden states of a `transformers` encoder, as sentence-transformers has it.

    Texts are encoded one by one, so that others change no bit of a vector; only public ones of as
    many tokens together. Beyond the length that the tokenizer names, and `max_tokens`, a text is
    cut.

    Args:
        model_id: A local folder, or a repository on the Hub; read from safetensors only.
        revision: Branch, tag or commit on the Hub.
        max_tokens: At most so many tokens of a text count.
        device: Where to compute, "cpu" or "cuda".

    Raises:
        InvalidValueError: If `transformers` cannot load it.
        MissingExtraError: If torch or transformers is not installed.
    """

    kind = "transformers"

    def __init__(
        self,
        model_id: str | Path,
        revision: str | None = None,
        *,
        max_tokens: int = 256,
        device: str = CPU,
        access: HubOptions | None = None,
    ) -> None:
        require_at_least(3, max_tokens=max_tokens)
        self._torch, transformers = require("torch", "models"), require("transformers", "models")
        self.source = TransformersModel.find(model_id, revision, access)
        self.max_tokens, self.device = max_tokens, device
        self._tokenizer = self.source.load(transformers.AutoTokenizer, "tokenizer")
        # Now, since a call with truncation changes it.
        self._rules = self._tokenizer.backend_tokenizer.to_str()
        model, found = self.source.load(
            transformers.AutoModel, "model", output_loading_info=True, use_safetensors=True
        )
        # A pooler that is not stored is random at each load, and is not used here.
        self._random = {name for name in found["missing_keys"] if name.startswith("pooler.")}
        if lacking := sorted(set(found["missing_keys"]) - self._random):
            raise InvalidValueError(
                f"{model_id} has no weights for {', '.join(lacking[:3])}, which would be random at "
                "each load; take a model that has all of its weights"
            )
        self._model = model.eval().to(device)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker loads the model itself, and finds the same one.
        return _restored, (self.reference, self.device, self.source.access)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, d) float64; see `SentenceEncoder`."""
        return self._encoded(texts, 1)

    def encode_public(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, d) float64; see `SentenceEncoder`."""
        return self._encoded(texts, TOGETHER)

    def _encoded(self, texts: Sequence[str], together: int) -> NDArray[np.float64]:
        cut = {"truncation": True, "max_length": self.max_tokens}
        tokens = [self._tokenizer(_whole(text), **cut)["input_ids"] for text in texts]
        encoded = np.zeros((len(texts), self._model.config.hidden_size))
        lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
        with self._torch.inference_mode():
            for length in np.unique(lengths[lengths > 0]):
                rows = np.flatnonzero(lengths == length)
                for part in np.array_split(rows, -(-len(rows) // together)):
                    ids = self._torch.tensor([tokens[i] for i in part.tolist()], device=self.device)
                    mask = self._torch.ones_like(ids)
                    hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
                    encoded[part] = hidden.mean(dim=1).double().cpu().numpy()
        encoded[[i for i, text in enumerate(texts) if not text.strip()]] = 0.0
        return _normalized(encoded)

    @lazy_property
    def digest(self) -> str:
        """SHA-256 of the parameters, the tokenizer and what else decides a vector."""
        digest = hashlib.sha256(f"{self.max_tokens} mean\n".encode())
        digest.update(self._rules.encode())
        stored = self._model.state_dict()
        for name, values in sorted((k, v) for k, v in stored.items() if k not in self._random):
            digest.update(f"{name} {tuple(values.shape)}\n".encode())
            digest.update(values.cpu().float().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @property
    def reference(self) -> dict[str, Any]:
        """The model, its commit, and the digest of its parameters."""
        found = _referred(self.source)
        return {**found, "max_tokens": self.max_tokens, "digest": self.digest}

    @classmethod
    def restored(
        cls, reference: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], access: HubOptions
    ) -> "TransformersEncoder":
        """Return an encoder as it was stored; the model must not have changed."""
        del tensors
        return cls._found(reference, CPU, access)

    @classmethod
    def _found(
        cls, reference: Mapping[str, Any], device: str, access: HubOptions
    ) -> "TransformersEncoder":
        name, most = reference["name"], reference["max_tokens"]
        encoder = cls(name, reference["commit"], max_tokens=most, device=device, access=access)
        _require_unchanged(encoder, reference)
        return encoder


class StaticEncoder(SentenceEncoder):
    """Mean of the token vectors of a static model of model2vec; no torch.

    Args:
        model_id: A local folder, or a repository on the Hub such as "minishlab/potion-base-8M".
        revision: Branch, tag or commit on the Hub.

    Raises:
        InvalidValueError: If model2vec cannot load it.
        MissingExtraError: If model2vec is not installed.
    """

    kind = "static"

    def __init__(
        self, model_id: str | Path, revision: str | None = None, access: HubOptions | None = None
    ) -> None:
        require("model2vec", "models")
        self.source = TransformersModel.find(model_id, revision, access)
        self._model = self.source.static_model()
        self._rules = self._model.tokenizer.to_str()

    def __reduce__(self) -> tuple[Any, ...]:
        return StaticEncoder.restored, (self.reference, {}, self.source.access)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, d) float64; see `SentenceEncoder`."""
        if not texts:
            return np.zeros((0, self._model.dim))
        found = self._model.encode(
            [*map(_whole, texts)], max_length=None, normalize=False, use_multiprocessing=False
        )
        return _normalized(np.asarray(found, dtype=np.float64))

    @lazy_property
    def digest(self) -> str:
        """SHA-256 of the tokenizer, the vectors and their weights."""
        model = self._model
        digest = hashlib.sha256(self._rules.encode())
        for array in (model.embedding, model.token_mapping, model.weights):
            if array is not None:
                digest.update(f"{array.dtype} {array.shape}\n".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @property
    def reference(self) -> dict[str, Any]:
        """The model, its commit, and the digest of its parameters."""
        return {**_referred(self.source), "digest": self.digest}

    @classmethod
    def restored(
        cls, reference: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], access: HubOptions
    ) -> "StaticEncoder":
        """Return an encoder as it was stored; the model must not have changed."""
        del tensors
        encoder = cls(reference["name"], reference["commit"], access)
        _require_unchanged(encoder, reference)
        return encoder


ENCODERS: dict[str, Any] = {
    kind.kind: kind for kind in (WordEncoder, TransformersEncoder, StaticEncoder)
}


def _whole(text: str) -> str:
    """Return a text with question marks for halves of characters, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()


def _referred(source: TransformersModel) -> dict[str, Any]:
    """Return name and commit of a model; of a local one its path."""
    if source.commit is None:
        return {"name": str(Path(source.name).resolve()), "commit": None}
    return {"name": source.name, "commit": source.commit.sha}


def _require_unchanged(encoder: SentenceEncoder, reference: Mapping[str, Any]) -> None:
    if encoder.digest != reference["digest"]:
        raise ArtifactError(
            f"the encoder {reference['name']!r} has changed since the pool was made: it would look "
            "texts up elsewhere; make the pool again, or bring back the encoder of that time"
        )


def _restored(reference: Mapping[str, Any], device: str, access: HubOptions) -> TransformersEncoder:
    return TransformersEncoder._found(reference, device, access)


def _normalized(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows divided by their lengths; rows of zeros, or too short for that, as zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    usable = lengths > np.finfo(np.float32).tiny
    return np.where(usable, vectors / np.where(usable, lengths, 1.0), 0.0)

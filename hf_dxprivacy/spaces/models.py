"""Words and vectors of language models: `transformers` and model2vec."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, fetch
from hf_dxprivacy.spaces.checkpoint import EXTRA, Checkpoint
from hf_dxprivacy.text import TokenVocabulary

# Words, their vectors and where they come from.
Described = tuple[tuple[str, ...], NDArray[np.floating], dict[str, Any]]

_STATIC_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def read_transformers(
    model_id: str | Path, revision: str | None, access: HubAccess, subwords: bool
) -> Described:
    """Read the input embedding of a model; see `EmbeddingSpace.from_transformers`."""
    transformers = require("transformers", EXTRA)
    require("torch", EXTRA)
    checkpoint = Checkpoint.find(model_id, revision, access)
    tokenizer = checkpoint.load(transformers.AutoTokenizer, "tokenizer")
    vocabulary = TokenVocabulary.of(tokenizer)
    chosen = _on_one_line(vocabulary.ordinary) if subwords else vocabulary.whole_words()
    _require_some(chosen, checkpoint.name)
    model, vectors = checkpoint.input_embedding(list(chosen.values()))
    provenance = checkpoint.origin | {"model": model} | _counts(vocabulary, chosen)
    return tuple(chosen), vectors, provenance


def read_static(model: Any) -> Described:
    """Read a static model; see `EmbeddingSpace.from_static`."""
    static = require("model2vec", EXTRA).StaticModel
    origin = {"source": "model2vec"}
    if isinstance(model, (str, Path)):
        model, origin = _load_static(static, model)
    if not isinstance(model, static):
        raise InvalidTypeError(
            "expected a model2vec StaticModel, the folder of one or its repository on the Hub, "
            f"got a {type(model).__name__}"
        )
    vocabulary = TokenVocabulary.of(model.tokenizer)
    chosen = vocabulary.whole_words()
    _require_some(chosen, origin["source"])
    vectors = _static_vectors(model, np.array(list(chosen.values())))
    provenance = origin | {"model": type(model).__name__} | _counts(vocabulary, chosen)
    return tuple(chosen), vectors, provenance


def _load_static(static: Any, name: str | Path) -> tuple[Any, dict[str, str]]:
    folder, origin = Path(name), {"source": Path(name).resolve().name}
    if not folder.is_dir():
        folder, commit = fetch(str(name), _STATIC_FILES)
        origin = {"source": commit.repo_id, "commit": commit.sha}
    try:
        return static.from_pretrained(folder), origin
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise InvalidValueError(f"{name}: model2vec can not load it: {error}") from error


def _static_vectors(model: Any, tokens: NDArray[np.int64]) -> NDArray[np.floating]:
    """Return the vector that the model adds up for each token."""
    size = len(model.tokens)
    rows = np.arange(size) if model.token_mapping is None else np.asarray(model.token_mapping)
    weights = np.ones(size, np.float32) if model.weights is None else np.asarray(model.weights)
    if rows.shape != (size,) or weights.shape != (size,):
        raise InvalidValueError(
            f"expected one vector and one weight for each of {size} tokens of the model, got "
            f"shapes {rows.shape} and {weights.shape}"
        )
    if rows.min() < 0 or rows.max() >= len(model.embedding):
        raise InvalidValueError(
            f"expected the tokens of the model to be mapped to rows 0 … {len(model.embedding) - 1} "
            f"of its embedding, got {rows.min()} … {rows.max()}"
        )
    vectors: NDArray[np.floating] = model.embedding[rows[tokens]] * weights[tokens, None]
    return vectors


def _on_one_line(tokens: dict[str, int]) -> dict[str, int]:
    # A vocabulary file has one token a line.
    return {s: token for s, token in tokens.items() if s and "\n" not in s and "\r" not in s}


def _require_some(chosen: dict[str, int], source: str) -> None:
    if not chosen:
        raise InvalidValueError(
            f"{source}: the tokenizer has nothing but special tokens and pieces of words; check "
            "that it is complete, or use another model"
        )


def _counts(vocabulary: TokenVocabulary, chosen: dict[str, int]) -> dict[str, Any]:
    total, special = len(vocabulary.strings), len(vocabulary.special)
    return {"tokens": {"all": total, "special": special, "taken": len(chosen)}}

"""The tokens of a tokenizer: which are special, and which are words on their own."""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text.segmentation import RowReader, is_missing

# A word before another one, as in running text.
_BEFORE = "a"


@dataclass(frozen=True, eq=False)
class TokenVocabulary:
    """Tokens of a tokenizer, and which of them are special.

    Attributes:
        strings: Each token as the tokenizer has it ("##ing", "Ġthe", "▁the"), by its id, in the
            order of the ids.
        special: Ids of the tokens that stand for no text (start, separator, padding, mask, …),
            and of the one for unknown words.
        unknown: Id of the token that unknown words become, if there is one.
    """

    strings: dict[int, str]
    special: frozenset[int]
    unknown: int | None
    _tokenizer: Any

    @classmethod
    def of(cls, tokenizer: Any) -> "TokenVocabulary":
        """Read the tokens of a tokenizer, which stays as it is.

        Args:
            tokenizer: A `tokenizers.Tokenizer`, or a tokenizer of `transformers` that is backed
                by one.

        Raises:
            InvalidTypeError: If it is neither.
        """
        own = tokenizer
        if not isinstance(own, Tokenizer):
            own = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(own, Tokenizer):
            raise InvalidTypeError(
                "expected a tokenizers.Tokenizer, or a transformers tokenizer that is backed by "
                f"one, got a {type(tokenizer).__name__}; save a fast version of the tokenizer "
                "(tokenizer.json) and load that"
            )
        own = copy.deepcopy(own)
        own.no_padding()
        own.no_truncation()
        unknown: int | None = None
        if not hasattr(own.model, "unk_token"):
            # A Unigram model has one, but does not show it.
            unknown = json.loads(own.to_str())["model"].get("unk_id")
        elif own.model.unk_token is not None:
            unknown = own.token_to_id(own.model.unk_token)
        special = set(getattr(tokenizer, "all_special_ids", ()))
        special |= {token for token, t in own.get_added_tokens_decoder().items() if t.special}
        special |= set() if unknown is None else {unknown}
        strings = {token: string for string, token in own.get_vocab().items()}
        return cls(dict(sorted(strings.items())), frozenset(special), unknown, own)

    @property
    def ordinary(self) -> dict[str, int]:
        """Every token that is not special, with its id, in the order of the ids."""
        return {s: token for token, s in self.strings.items() if token not in self.special}

    def text(self, token: int) -> str:
        """Return the text that a token stands for on its own; U+FFFD for a part of a character."""
        decoded: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return decoded

    def whole_words(self) -> dict[str, int]:
        """Return the words that are exactly one token each in running text, with the ids.

        Running text means after another word: "Ġthe", not "the", is the word "the" of a byte-level
        tokenizer. `RowReader` defines words. Every word has one id, whatever other tokens
        spell it.
        """
        reader = RowReader()
        # One by one on purpose: the batch methods start threads, about which the library then
        # warns in every process that `Dataset.map` forks.
        encode, decode = self._tokenizer.encode, self._tokenizer.decode
        before = encode(_BEFORE, add_special_tokens=False).ids
        found = {}
        for token in self.ordinary.values():
            word = decode([token], skip_special_tokens=False).strip()
            if reader.normalize(word) != word or reader.segment(word) != ["", word, ""]:
                continue
            if encode(f"{_BEFORE} {word}", add_special_tokens=False).ids == [*before, token]:
                found[word] = token
        return found


Ids = NDArray[np.int64]


def is_row(ids: Any) -> bool:
    """Tell one row of ids, or a missing one, from a batch of rows.

    Args:
        ids: A sequence of ids or of sequences of ids; lists, NumPy arrays or torch tensors.

    Raises:
        InvalidTypeError: If it can be neither.
    """
    if is_missing(ids):
        return True
    ndim = getattr(ids, "ndim", 1)
    if isinstance(ids, (str, bytes, Mapping)) or not hasattr(ids, "__len__") or ndim == 0:
        raise InvalidTypeError(
            f"expected token ids or a batch of them, got a {type(ids).__name__}; "
            "a tokenizer makes ids from texts"
        )
    if ndim > 1:
        return False
    present = next((entry for entry in ids if not is_missing(entry)), None)
    return len(ids) == 0 or (present is not None and np.ndim(present) == 0)


def read_row(row: Any, size: int) -> Ids | None:
    """Return a row as an array, or None for a missing one.

    Args:
        row: A sequence of ids.
        size: How many tokens there are.

    Raises:
        InvalidTypeError: If it is no flat sequence of whole numbers, or of a type too small for
            any of the ids.
        InvalidValueError: If an id is out of range. No message shows an id.
    """
    if is_missing(row):
        return None
    try:
        # A tensor may live on another device.
        array = np.asarray(row.cpu() if hasattr(row, "cpu") else row)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidTypeError(
            f"expected a flat sequence of token ids (whole numbers), got a {type(row).__name__} "
            "that is none"
        )
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if np.iinfo(array.dtype).max < size - 1:
        raise InvalidTypeError(
            f"expected a type that holds the ids of {size} tokens, got {array.dtype}; use int32"
        )
    if array.min() < 0 or array.max() >= size:
        raise InvalidValueError(
            f"expected token ids from 0 to {size - 1}, got one that is outside; use the tokenizer "
            "that made the ids"
        )
    return array.astype(np.int64, copy=False)


def like(rows: Sequence[Ids | None], ids: Any) -> Any:
    """Return rows in the form of the batch they were read from: list, array or tensor."""
    if hasattr(ids, "new_tensor"):
        return ids.new_tensor(np.reshape(np.array(rows, dtype=np.int64), ids.shape))
    if isinstance(ids, np.ndarray) and ids.ndim == 2:
        return np.reshape(np.array(rows, dtype=ids.dtype), ids.shape)
    return [row_like(row, old) for row, old in zip(rows, ids, strict=True)]


def row_like(row: Ids | None, ids: Any) -> Any:
    """Return a row in the form of the one it was read from; a missing one as it was."""
    if row is None:
        return ids
    if hasattr(ids, "new_tensor"):
        return ids.new_tensor(row)
    return row.astype(ids.dtype) if isinstance(ids, np.ndarray) else row.tolist()

"""Rows of token ids, out of lists and arrays, and back into what they came in."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.text.rows import is_missing

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
    array = _as_array(row)
    if array is None or array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
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


def _as_array(row: Any) -> NDArray[Any] | None:
    try:
        # A tensor may live on another device.
        return np.asarray(row.cpu() if hasattr(row, "cpu") else row)
    except ValueError:
        return None


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

"""Public labels of the sentences of a pool: how they are read, stored and looked up."""

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError

# Arrays of a pool with labels: (N,) the number of each sentence's label, and the characters of a
# list of all labels in JSON.
LABELS, NAMES = "labels", "label_names"
# So many labels are named in an error.
SHOWN = 20


def as_label(label: object) -> str:
    """Return a label as a string; 7 and "7" are one.

    Raises:
        InvalidTypeError: If it is neither a string nor a whole number.
    """
    if isinstance(label, bool) or not isinstance(label, (str, Integral)):
        raise InvalidTypeError(
            f"expected a label to be a string or a whole number, got a {type(label).__name__}"
        )
    return str(label)


def labelled_texts(texts: Iterable[str], labels: Sequence[Any]) -> dict[str, str]:
    """Return the label of each text; of one that is repeated, the first.

    Raises:
        InvalidValueError: If there is not one label for each text.
    """
    given = list(texts)
    if len(given) != len(labels):
        raise InvalidValueError(
            f"expected a label for each of {len(given)} sentences, got {len(labels)}"
        )
    return dict(reversed([*zip(given, map(as_label, labels), strict=True)]))


def rows_of_label(labels: Sequence[str] | None, label: str) -> NDArray[np.int64]:
    """Return the rows that have a label, ascending.

    Raises:
        InvalidValueError: If there are no labels, or none is this one, which is not shown: it may
            come from private data.
    """
    if labels is None:
        raise InvalidValueError(
            "the pool has no labels; SentencePool.from_sentences(..., labels=) gives it some"
        )
    rows = np.array([row for row, other in enumerate(labels) if other == label], dtype=np.int64)
    if not len(rows):
        names = sorted(set(labels))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        shown = ", ".join(map(repr, names[:SHOWN]))
        raise InvalidValueError(
            f"the pool has no sentence of this label; its labels are {shown}{more}"
        )
    return rows


def label_arrays(labels: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    """Return the arrays that store labels; none for None."""
    if labels is None:
        return {}
    names = sorted(set(labels))
    codes = {name: code for code, name in enumerate(names)}
    return {
        LABELS: np.array([codes[label] for label in labels], dtype="<i4"),
        NAMES: np.array([*map(ord, json.dumps(names))], dtype="<i4"),
    }


def stored_labels(arrays: Mapping[str, NDArray[Any]], size: int, path: Path) -> Any:
    """Return the labels of so many sentences, from `label_arrays`; None if there are none.

    Raises:
        ArtifactError: If the arrays are damaged.
    """
    if LABELS not in arrays:
        return None
    codes, letters = (arrays.get(name, np.empty(0)).tolist() for name in (LABELS, NAMES))
    try:
        names = json.loads("".join(map(chr, letters)))
        if len(codes) == size and min(codes, default=0) >= 0:
            return tuple(as_label(names[code]) for code in codes)
    except (ValueError, TypeError, IndexError):
        pass
    raise ArtifactError(f"{path}: these are no labels of {size} sentences")

"""Validation of the words and vectors of a space."""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_one_of,
    require_positive,
)
from hf_dxprivacy.spaces import metrics

METRICS = ("euclidean", "poincare")

# Beyond this a squared norm, or a product of two, could overflow float64.
LARGEST = 1e75


def check_metric(metric: str, scale: float) -> None:
    """Require a known metric and a scale that goes with it.

    Raises:
        InvalidValueError: If the metric is unknown, or the scale not positive, or other than 1 for
            the Euclidean metric.
    """
    require_one_of(METRICS, metric=metric)
    require_positive(scale=scale)
    if metric == "euclidean" and scale != 1.0:
        raise InvalidValueError(
            f"expected scale=1.0 for the Euclidean metric, got scale={scale}; "
            "scale the vectors instead, for example with rescale()"
        )


def as_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as a tuple of plain strings.

    Raises:
        InvalidTypeError: If it is a single string, or an entry is not a string.
        InvalidValueError: If there is none, or one is empty or not writable as a line of UTF-8.
    """
    if isinstance(words, str):
        raise InvalidTypeError("expected a sequence of words, got a single string; pass a list")
    listed = tuple(words)
    if not listed:
        raise InvalidValueError("expected at least one word, got an empty vocabulary")
    # Hundreds of thousands of words are looked at together, and one by one only if one is bad.
    if set(map(type, listed)) == {str} and all(listed):
        text = "\n".join(listed)
        if text.count("\n") < len(listed) and "\r" not in text:
            with suppress(UnicodeEncodeError):
                text.encode()
                return listed
    for row, word in enumerate(listed):
        if not isinstance(word, str):
            raise InvalidTypeError(f"expected words to be strings, got {word!r} at row {row}")
        check_word(word, f"row {row}")
    return tuple(map(str, listed))


def folded(words: Iterable[str]) -> set[str]:
    """Return words, of which there may be none, in lower case; checked as by `as_words`."""
    listed = words if isinstance(words, str) else tuple(words)
    return {word.casefold() for word in as_words(listed)} if listed else set()


def check_word(word: str, where: str) -> None:
    """Require a word to fit on one line of a UTF-8 file.

    Raises:
        InvalidValueError: If it is empty, holds a line break or a lone surrogate; says `where`.
    """
    if not word:
        raise InvalidValueError(f"{where}: the word is empty; remove this row")
    if "\n" in word or "\r" in word:
        raise InvalidValueError(
            f"{where}: the word {word!r} contains a line break; remove this row"
        )
    if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
        raise InvalidValueError(
            f"{where}: the word {word!r} contains a lone surrogate, which UTF-8 cannot write; "
            "decode the source as UTF-8"
        )


def index_of(words: tuple[str, ...]) -> dict[str, int]:
    """Return the row of each word.

    Raises:
        InvalidValueError: If a word occurs twice; names it and both rows.
    """
    index = dict(zip(words, range(len(words)), strict=True))
    if len(index) < len(words):
        first = next(row for row, word in enumerate(words) if index[word] != row)
        raise InvalidValueError(
            f"the word {words[first]!r} occurs twice, at rows {first} and "
            f"{words.index(words[first], first + 1)}; keep one vector per word"
        )
    return index


def as_matrix(vectors: ArrayLike) -> NDArray[np.floating]:
    """Return vectors as a C-contiguous (V, n) float32 or float64 matrix, without copy if it is one.

    float16 becomes float32; integers become float64.

    Raises:
        InvalidTypeError: If the entries are not real numbers.
        InvalidValueError: If there are not two dimensions, or n is 0.
    """
    try:
        matrix = np.asarray(vectors)
    except ValueError as error:
        raise InvalidValueError("expected vectors of one length, got ragged rows") from error
    if matrix.dtype.kind not in "fiu":
        raise InvalidTypeError(f"expected vectors of real numbers, got dtype {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InvalidValueError(
            f"expected vectors of shape (words, dimensions), got shape {matrix.shape}"
        )
    single = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4
    return np.ascontiguousarray(matrix, dtype=np.float32 if single else np.float64)


def check_vectors(words: tuple[str, ...], vectors: NDArray[np.floating], metric: str) -> None:
    """Require one finite vector per word, inside the ball if the metric is hyperbolic.

    Raises:
        InvalidValueError: If not; names the first word concerned.
    """
    if len(words) != len(vectors):
        raise InvalidValueError(
            f"expected one vector per word, got {len(words)} words and {len(vectors)} vectors"
        )
    for block in metrics.blocks(0, len(vectors)):
        largest = np.abs(vectors[block]).max(axis=1).astype(np.float64)
        bad = np.flatnonzero(~(largest < LARGEST))
        if bad.size:
            row = block.start + int(bad[0])
            raise InvalidValueError(
                f"the vector of {words[row]!r} (row {row}) has an entry that is NaN, infinite or "
                f"beyond {LARGEST:g}; remove the word or repair its vector"
            )
    if metric != "poincare":
        return
    norms = np.sqrt(metrics.squared_norms(vectors, np.zeros(vectors.shape[1])))
    # The gap is exact only for moderate norms; beyond 2 the norm itself is evidence enough.
    outside = np.flatnonzero((norms > 2.0) | ~(metrics.boundary_gap(vectors) > 0.0))
    if outside.size:
        row = int(outside[0])
        raise InvalidValueError(
            f"expected every norm < 1 in the Poincaré ball, got norm {norms[row]:.17g} for "
            f"{words[row]!r} (row {row}); rescale the vectors or use metric='euclidean'"
        )

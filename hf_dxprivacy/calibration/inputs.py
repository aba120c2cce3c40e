"""K_w: how many words share an output (Feyisetan, Diethe, Drake, ICDM 2019)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def least_inputs(
    outputs: NDArray[np.uint8],
    size: int,
    ids: NDArray[np.int64],
    depths: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Return, for each word, the least number of words that share one of its outputs.

    Args:
        outputs: (m, V/8) uint8, the outputs of each word as packed bits.
        size: V.
        ids: (m,) the words.
        depths: (V,) how deep each word of the vocabulary is in a hierarchy. With them, a word
            shares only those outputs that it is below, i.e. deeper than.

    Returns:
        (m,) int64, where the word itself counts; 0 if it has no output that it is below.
    """

    def rows() -> Iterator[NDArray[np.bool_]]:
        for word, packed in zip(ids, outputs, strict=True):
            held = np.unpackbits(packed, count=size).view(np.bool_)
            yield held if depths is None else held & (depths < depths[word])

    counts = np.zeros(size, dtype=np.int64)
    for row in rows():
        counts += row
    return np.array([counts[row].min() if row.any() else 0 for row in rows()], dtype=np.int64)

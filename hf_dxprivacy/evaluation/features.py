"""Features of texts: averaged word vectors, a cheap and strong input of linear classifiers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.privatizers.batch import look_up_rows
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

Features = NDArray[np.float64]


def averaged_vectors(texts: Sequence[str], space: EmbeddingSpace) -> Features:
    """Return the mean vector of each text's words; words that the space lacks do not count.

    Args:
        texts: m texts.
        space: Vectors of n dimensions, in Euclidean space.

    Returns:
        (m, n) float64; zeros for a text without a known word.

    Raises:
        InvalidValueError: If the space is not Euclidean, where a mean has no meaning.
    """
    if space.metric != "euclidean":
        raise InvalidValueError(
            f"expected a space with the metric 'euclidean', got {space.metric!r}: averaged vectors "
            "have no meaning there; 'wordnet-gloss' is one"
        )
    reader = RowReader()
    features = np.zeros((len(texts), space.dim))
    for row, text in enumerate(texts):
        ids = look_up_rows([reader.read_text(text)], space)
        known = ids[ids >= 0]
        if len(known):
            features[row] = space.vectors[known].mean(axis=0)
    return features


def pair_features(first: Features, second: Features) -> Features:
    """Return |u − v| and u·v entry by entry, for the relation of two texts.

    After Conneau et al., *Supervised learning of universal sentence representations* (EMNLP 2017).

    Args:
        first: (m, n) vectors u.
        second: (m, n) vectors v.

    Returns:
        (m, 2n) float64.
    """
    return np.hstack([np.abs(first - second), first * second])


def cosines(first: Features, second: Features) -> Features:
    """Return the cosine of each pair of vectors; 0 where one of them is zero.

    Args:
        first: (m, n) vectors.
        second: (m, n) vectors.

    Returns:
        (m,) float64.
    """
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = (first * second).sum(axis=1)
    result = np.zeros(len(lengths))
    np.divide(products, lengths, out=result, where=lengths > 0)
    return result

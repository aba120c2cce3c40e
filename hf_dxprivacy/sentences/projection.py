"""Vectors of sentences projected to points of a pool, in blocks, and how near these are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.sentences.encoders import SentenceEncoder
from hf_dxprivacy.spaces.metrics import blocks, mean

# Sentences whose vectors are held in float64 at once.
SENTENCES = 8192
# Points that are held back in turn, evenly spaced in row order.
SAMPLE = 1000

Matrix = NDArray[np.floating]


def encode_blocks(encoder: SentenceEncoder, sentences: Sequence[str]) -> NDArray[np.float32]:
    """Return (N, d) vectors in single precision: a million of them are to fit into memory."""
    parts = [
        encoder.encode_public(sentences[block]).astype(np.float32)
        for block in blocks(0, len(sentences), SENTENCES)
    ]
    return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)


def principal_axes(vectors: Matrix, dimensions: int) -> tuple[Matrix, Matrix]:
    """Return the mean of vectors, (d,), and their first principal components, (d, n)."""
    offset = mean(vectors)
    # From the covariance: d is some hundreds, N up to millions.
    covariance = np.zeros((len(offset), len(offset)))
    for block in blocks(0, len(vectors), SENTENCES):
        centred = vectors[block] - offset
        covariance += centred.T @ centred
    axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :dimensions]
    return offset.astype(np.float32), axes.astype(np.float32)


def projected(
    vectors: Matrix, offset: NDArray[np.float32], projection: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the points of vectors, row by row; zeros for zeros.

    Each row is a product of its own: one product of matrices may round otherwise for another number
    of rows, and a text must find the same entry whatever is released beside it.
    """
    found = np.empty((len(vectors), projection.shape[1]), dtype=np.float32)
    for block in blocks(0, len(vectors), SENTENCES):
        points = ((vectors[block] - offset)[:, None] @ projection.astype(np.float64))[:, 0]
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        usable = np.any(vectors[block] != 0, axis=1, keepdims=True) & (lengths > 1e-12)
        found[block] = np.where(usable, points / np.where(usable, lengths, 1.0), 0.0)
    return found


def label_axes(vectors: Matrix, labels: Sequence[Any], dimensions: int) -> tuple[Matrix, Matrix]:
    """Return offset and projection of partial least squares from vectors to labels."""
    if len(vectors) != len(labels) or len(set(labels)) < 2:
        raise InvalidValueError(
            f"expected a label for each of {len(vectors)} labelled texts, and two different ones "
            f"at least; got {len(labels)} labels, {len(set(labels))} of them different"
        )
    names = sorted(set(labels), key=str)
    targets = np.array([[label == name for name in names] for label in labels], dtype=np.float64)
    regression = require("sklearn.cross_decomposition", "audit").PLSRegression(
        n_components=min(dimensions, vectors.shape[1], len(vectors) - 1), scale=False
    )
    regression.fit(vectors, targets)
    axes = regression.x_rotations_
    return vectors.mean(axis=0).astype(np.float32), axes.astype(np.float32)


def held_back_cosines(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each of some points to the nearest of the others, (min(N, SAMPLE),)."""
    rows = np.linspace(0, len(points) - 1, min(len(points), SAMPLE)).astype(np.int64)
    best = np.full(len(rows), -1.0, dtype=np.float32)
    for block in blocks(0, len(points), SENTENCES):
        cosines = points[rows] @ points[block].T
        own = np.flatnonzero((rows >= block.start) & (rows < block.stop))
        cosines[own, rows[own] - block.start] = -1.0
        best = np.maximum(best, cosines.max(axis=1))
    return best


def quartiles(cosines: Matrix) -> dict[str, float]:
    """Return the quartiles "25%", "50%" and "75%" to four digits; none of no cosines."""
    if not len(cosines):
        return {}
    found = np.quantile(cosines, (0.25, 0.5, 0.75)).tolist()
    return dict(zip(("25%", "50%", "75%"), (round(value, 4) for value in found), strict=True))

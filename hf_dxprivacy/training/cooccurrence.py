"""Sparse word-by-word counts, their positive pointwise mutual information, and its factors.

Matrices are SciPy's compressed sparse rows, (V, V) float64.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require

# Columns drawn beyond the requested rank, and passes over the matrix, of the randomized SVD.
OVERSAMPLING = 30
PASSES = 4


def window_counts(ids: NDArray[np.int64], texts: NDArray[np.int64], size: int, window: int) -> Any:
    """Count pairs of words in one text, each weighted by 1/distance; symmetric.

    Args:
        ids: (m,) word of each token of all texts in order; −1 is a token without a word, which
            keeps its place.
        texts: (m,) number of the text that each token belongs to.
        size: Number of words V.
        window: Largest distance, in tokens.
    """
    counts = _sparse().csr_matrix((size, size))
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        pairs = (texts[:-distance] == texts[distance:]) & (left >= 0) & (right >= 0)
        weights = np.full(int(pairs.sum()), 1.0 / distance)
        counts = counts + _sparse().csr_matrix(
            (weights, (left[pairs], right[pairs])), shape=(size, size)
        )
    return counts + counts.T


def weighted_links(links: Iterable[tuple[int, int, float]], size: int) -> Any:
    """Sum weights of (row, column) pairs into a matrix; pairs on the diagonal are left out."""
    kept = [link for link in links if link[0] != link[1]]
    rows, columns, weights = zip(*kept, strict=True) if kept else ((), (), ())
    return _sparse().csr_matrix((weights, (rows, columns)), shape=(size, size), dtype=np.float64)


def averaging(links: Any) -> Any:
    """Scale every row of a matrix of links to sum 1; rows without links stay zero."""
    sums = np.asarray(links.sum(axis=1)).ravel()
    return _sparse().diags(1.0 / np.where(sums > 0, sums, 1.0)) @ links


def positive_information(counts: Any, context_exponent: float) -> Any:
    """Return positive pointwise mutual information with smoothed contexts.

    Levy, Goldberg & Dagan, "Improving distributional similarity with lessons learned from word
    embeddings" (TACL 2015): log(p(w, c) / (p(w) q(c))) where q(c) ∝ p(c)**context_exponent.
    """
    entries = counts.tocoo()
    words = np.asarray(counts.sum(axis=1)).ravel()
    contexts = np.asarray(counts.sum(axis=0)).ravel() ** context_exponent
    contexts /= contexts.sum()
    information = np.log(entries.data / (words[entries.row] * contexts[entries.col]))
    kept = information > 0
    return _sparse().csr_matrix(
        (information[kept], (entries.row[kept], entries.col[kept])), shape=counts.shape
    )


def factors(matrix: Any, dim: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the leading left singular vectors, (V, dim), and singular values, (dim,).

    Randomized subspace iteration (Halko, Martinsson & Tropp, SIAM Review 2011, algorithm 4.4);
    the same seed gives the same factors up to the rounding of the linear algebra library.
    """
    matrix = matrix.astype(np.float32)
    columns = min(dim + OVERSAMPLING, *matrix.shape)
    start = np.random.default_rng(seed).standard_normal((matrix.shape[1], columns))
    basis = np.linalg.qr(matrix @ start.astype(np.float32)).Q
    for _ in range(PASSES):
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ basis).Q).Q
    left, values, _ = np.linalg.svd((matrix.T @ basis).T.astype(np.float64), full_matrices=False)
    return (basis @ left)[:, :dim], values[:dim]


def _sparse() -> Any:
    return require("scipy.sparse", "train")

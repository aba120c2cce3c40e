"""Squared Euclidean distances in float64, exact where a matrix product would lose digits."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Rows of a matrix that are converted to float64 at once: the working set stays in the cache.
BLOCK_ROWS = 2048

# Entries of ‖x−y‖² = ‖x‖²+‖y‖²−2⟨x,y⟩ below this part of ‖x‖²+‖y‖² have lost more digits to
# cancellation than the 1e-9 that we promise, so they are computed again from the difference.
CANCELLATION = 1e-5

# Numbers in one chunk of explicit differences.
CHUNK_NUMBERS = 1 << 20


def blocks(start: int, stop: int, rows: int = BLOCK_ROWS) -> Iterator[slice]:
    """Cut the rows from start to stop into consecutive slices of at most `rows` rows."""
    for first in range(start, stop, rows):
        yield slice(first, min(first + rows, stop))


def mean(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean of the rows, summed block by block in float64.

    Args:
        vectors: (V, n), V >= 1.

    Returns:
        (n,) float64.
    """
    total = np.zeros(vectors.shape[1])
    for block in blocks(0, len(vectors)):
        total += vectors[block].sum(axis=0, dtype=np.float64)
    return total / len(vectors)


def scaled(vectors: NDArray[np.floating], factor: float) -> NDArray[np.floating]:
    """Return the vectors times a factor, (V, n) of the same dtype, each entry rounded once."""
    result = np.empty_like(vectors)
    for block in blocks(0, len(vectors)):
        result[block] = vectors[block].astype(np.float64) * factor
    return result


def squared_norms(
    vectors: NDArray[np.floating], center: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the squared distance of each row from a center.

    Args:
        vectors: (V, n).
        center: (n,) float64.

    Returns:
        (V,) float64.
    """
    squared = np.empty(len(vectors))
    for block in blocks(0, len(vectors)):
        centred = vectors[block] - center
        squared[block] = np.einsum("ij,ij->i", centred, centred)
    return squared


def pair_squared(x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the squared distance between matching rows, from their differences.

    Args:
        x: (m, n).
        y: (m, n).

    Returns:
        (m,) float64; 0 exactly where two rows are equal.
    """
    difference = x.astype(np.float64) - y
    squared: NDArray[np.float64] = np.einsum("ij,ij->i", difference, difference)
    return squared


def cross_squared(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    x_squared: NDArray[np.float64],
    y_squared: NDArray[np.float64],
    out: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute all squared distances by one matrix product, and tell where not to trust it.

    Args:
        x: (m, n) rows, measured from a common center to keep the norms small.
        y: (b, n) rows, measured from the same center.
        x_squared: (m,) squared norms of `x`.
        y_squared: (b,) squared norms of `y`.
        out: (m, b), receives the squared distances.

    Returns:
        The row and column indices of the entries that cancellation may have spoilt: among them
        all that are below `CANCELLATION` times the sum of their two squared norms.
    """
    np.matmul(-2.0 * x, y.T, out=out)
    out += x_squared[:, None]
    out += y_squared
    # One bound per row, for the largest norm of the block, spares a pass over the entries.
    bound = CANCELLATION * (x_squared + y_squared.max())
    rows, columns = np.divmod(np.flatnonzero(out <= bound[:, None]), len(y))
    return rows, columns

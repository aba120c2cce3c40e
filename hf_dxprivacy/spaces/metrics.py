"""Euclidean and hyperbolic metrics in float64, accurate where differences cancel.

Euclidean distances are computed again from differences where a matrix product would lose digits.
Those of the Poincaré ball are the formulas of Nickel & Kiela (2017), rearranged so that nothing
cancels near the boundary: the gap 1−‖u‖² is the quantity that everything divides by, and it is
computed to full relative precision.
"""

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
    """Return the mean of (V, n) rows, V >= 1, summed block by block; (n,) float64."""
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
    """Return the squared distance of each of (V, n) rows from a center; (V,) float64."""
    squared = np.empty(len(vectors))
    for block in blocks(0, len(vectors)):
        centred = vectors[block] - center
        squared[block] = _row_products(centred, centred)
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
    return _row_products(difference, difference)


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


# Grids for splitting coordinates: products of numbers on them add up in float64 without rounding,
# in up to about 4000 dimensions.
_COARSE = 2.0**24
_FINE = 2.0**48


def boundary_gap(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1−‖u‖² for each row, to nearly full relative precision up to the last point inside.

    Each coordinate is split into multiples of 2⁻²⁴ and of 2⁻⁴⁸ and a rest. The large terms, which
    nearly cancel at the boundary, then add up exactly, and the rounding of the others is of the
    order of 1e-31.

    Args:
        points: (m, n), |coordinates| not far above 1.

    Returns:
        (m,) float64; zero or negative for a row that is not inside the ball.
    """
    gaps = np.empty(len(points))
    for block in blocks(0, len(points)):
        exact = points[block].astype(np.float64)
        coarse = np.rint(exact * _COARSE) / _COARSE
        low = exact - coarse
        fine = np.rint(low * _FINE) / _FINE
        large = 1.0 - _row_products(coarse, coarse) - 2.0 * _row_products(coarse, fine)
        small = 2.0 * _row_products(coarse, low - fine) + _row_products(low, low)
        gaps[block] = large - small
    return gaps


def distance_from_squared(
    squared: NDArray[np.float64],
    u_gap: NDArray[np.float64],
    v_gap: NDArray[np.float64],
    out: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the hyperbolic distance that belongs to a squared Euclidean distance.

    arcosh(1 + 2‖u−v‖²/(gᵤ gᵥ)) = 2·arsinh(√(‖u−v‖²/(gᵤ gᵥ))), where the right-hand side has no
    cancellation for near points.

    Args:
        squared: ‖u−v‖², of any shape, which is that of the result.
        u_gap: 1−‖u‖² > 0, broadcastable to it.
        v_gap: 1−‖v‖² > 0, broadcastable to it.
        out: Receives the result; may be `squared`.
    """
    result = np.divide(squared, u_gap, out=out)
    result /= v_gap
    np.sqrt(result, out=result)
    np.arcsinh(result, out=result)
    result *= 2.0
    return result


def pair_distances(u: NDArray[np.floating], v: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the hyperbolic distance between matching rows of (m, n) points; (m,) float64."""
    return distance_from_squared(pair_squared(u, v), boundary_gap(u), boundary_gap(v))


def mobius_add(u: NDArray[np.floating], v: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the Möbius sum u ⊕ v of matching rows: the isometry that carries 0 to u.

    Written with w = u+v and the gaps g = 1−‖·‖² it is (‖w‖²u + gᵤw)/(gᵤgᵥ + ‖w‖²), a form in which
    no term is negative that should not be; it stays finite when ‖v‖ has been rounded to 1, and
    then gives a point of the boundary.

    Args:
        u: (m, n) or (1, n) points, norms below 1.
        v: (m, n) points, norms at most 1 up to rounding.

    Returns:
        (m, n) float64, norms at most 1 up to rounding.
    """
    u, v = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)
    u_gap = boundary_gap(u)[:, None]
    v_gap = np.maximum(boundary_gap(v), 0.0)[:, None]
    total = u + v
    squared = _row_products(total, total)[:, None]
    result: NDArray[np.float64] = (squared * u + u_gap * total) / (u_gap * v_gap + squared)
    return result


def contracted(points: NDArray[np.floating], factor: float) -> NDArray[np.float64]:
    """Move (m, n) points of the ball towards its origin, to `factor` times their distance ρ."""
    exact = points.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    # ρ = ln((1+‖u‖)²/(1−‖u‖²)), and the norm of a point is tanh(ρ/2).
    radii = 2.0 * np.log1p(lengths) - np.log(boundary_gap(exact))[:, None]
    moved: NDArray[np.float64] = exact / np.where(lengths > 0.0, lengths, 1.0)
    moved *= np.tanh(0.5 * factor * radii)
    return moved


def lorentz_image(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return (m, n) points of the ball on the hyperboloid: (1+‖u‖², 2u)/(1−‖u‖²).

    Returns:
        (m, n+1) float64, time coordinate first.
    """
    gaps = boundary_gap(points)[:, None]
    return np.concatenate([2.0 - gaps, 2.0 * points.astype(np.float64)], axis=1) / gaps


def _row_products(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.einsum("ij,ij->i", x, y)
    return products

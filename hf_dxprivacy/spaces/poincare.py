"""The Poincaré ball: distances, Möbius addition and the Lorentz image, in float64.

Formulas of Nickel & Kiela (2017), rearranged so that nothing cancels near the boundary: the gap
1−‖u‖² is the quantity that everything divides by, and it is computed to full relative precision.
"""

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces import euclidean

# Coordinates on a grid this fine have squares that float64 adds up without rounding.
_GRID = 2.0**24


def boundary_gap(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1−‖u‖² for each row, to nearly full relative precision up to the boundary.

    Each coordinate is split into a multiple of 2⁻²⁴ and a rest. The squares of the former add up
    exactly, so that the difference from 1 is exact too; the rest contributes little.

    Args:
        points: (m, n), |coordinates| not far above 1.

    Returns:
        (m,) float64; zero or negative for a row that is not inside the ball.
    """
    gaps = np.empty(len(points))
    for block in euclidean.blocks(0, len(points)):
        exact = points[block].astype(np.float64)
        coarse = np.rint(exact * _GRID) / _GRID
        gaps[block] = 1.0 - np.einsum("ij,ij->i", coarse, coarse)
        gaps[block] -= np.einsum("ij,ij->i", exact - coarse, exact + coarse)
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
        squared: ‖u−v‖², of any shape.
        u_gap: 1−‖u‖² > 0, broadcastable to it.
        v_gap: 1−‖v‖² > 0, broadcastable to it.
        out: Receives the result; may be `squared`.

    Returns:
        Distances in the shape of `squared`.
    """
    result = np.divide(squared, u_gap, out=out)
    result /= v_gap
    np.sqrt(result, out=result)
    np.arcsinh(result, out=result)
    result *= 2.0
    return result


def pair_distances(u: NDArray[np.floating], v: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the hyperbolic distance between matching rows.

    Args:
        u: (m, n) points, norms below 1.
        v: (m, n) points, norms below 1.

    Returns:
        (m,) float64.
    """
    return distance_from_squared(euclidean.pair_squared(u, v), boundary_gap(u), boundary_gap(v))


def mobius_add(u: NDArray[np.floating], v: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the Möbius sum u ⊕ v of matching rows: the isometry that carries 0 to u.

    Written with w = u+v and the gaps g = 1−‖·‖² it is (‖w‖²u + gᵤw)/(gᵤgᵥ + ‖w‖²), a form in which
    no term is negative that should not be; it stays finite when ‖v‖ has been rounded to 1, and
    then gives a point of the boundary.

    Args:
        u: (m, n) or (1, n) points, norms below 1.
        v: (m, n) points, norms at most 1 up to rounding.

    Returns:
        (m, n) float64, norms at most 1 up to the last digit.
    """
    u, v = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)
    u_gap = boundary_gap(u)[:, None]
    v_gap = np.maximum(boundary_gap(v), 0.0)[:, None]
    total = u + v
    squared = np.einsum("ij,ij->i", total, total)[:, None]
    result: NDArray[np.float64] = (squared * u + u_gap * total) / (u_gap * v_gap + squared)
    norms = np.linalg.norm(result, axis=1, keepdims=True)
    np.divide(result, norms, out=result, where=norms > 1.0)
    return result


def lorentz_image(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the points on the hyperboloid: (1+‖u‖², 2u)/(1−‖u‖²).

    Args:
        points: (m, n) points of the ball, norms below 1.

    Returns:
        (m, n+1) float64, time coordinate first.
    """
    gaps = boundary_gap(points)[:, None]
    return np.concatenate([2.0 - gaps, 2.0 * points.astype(np.float64)], axis=1) / gaps

"""Multivariate Laplace noise, and uniform directions by normalising Gaussian vectors."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hf_dxprivacy.errors import require_at_least, require_one_of, require_positive


def uniform_directions(
    rng: np.random.Generator, size: int, dim: int, dtype: DTypeLike = np.float64
) -> NDArray[np.floating[Any]]:
    """Draw independent directions, uniform on the unit sphere of R^dim.

    Args:
        rng: Where the randomness comes from.
        size: How many directions, 0 allowed.
        dim: Dimension of the space, at least 1; in one dimension a direction is a sign.
        dtype: float32 or float64.

    Returns:
        (size, dim) array of the dtype; every row has norm 1 to within rounding.

    Raises:
        InvalidTypeError: If size or dim is not an integer.
        InvalidValueError: If size < 0, dim < 1 or the dtype is another one.
    """
    require_at_least(0, size=size)
    return in_uniform_directions(rng, np.ones(size), dim, dtype)


def in_uniform_directions(
    rng: np.random.Generator,
    radii: NDArray[np.float64],
    dim: int,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.floating[Any]]:
    """Draw a direction for each of (m,) radii and return the (m, dim) vectors of these lengths.

    Other arguments and errors as for `uniform_directions`.
    """
    require_at_least(1, dim=dim)
    require_one_of(("float32", "float64"), dtype=np.dtype(dtype).name)
    kind: np.dtype[Any] = np.dtype(dtype)
    vectors: NDArray[np.floating[Any]] = rng.standard_normal((len(radii), dim), dtype=kind)
    # A float32 normal is exactly zero once in millions of draws, so in low dimensions a whole
    # vector can be; drawing it again conditions on a symmetric event and keeps the law uniform.
    while not (norms := np.sqrt(np.einsum("ij,ij->i", vectors, vectors))).all():
        missing = np.flatnonzero(norms == 0)
        vectors[missing] = rng.standard_normal((len(missing), dim), dtype=kind)
    vectors *= (radii / norms).astype(kind)[:, None]
    return vectors


def multivariate_laplace(
    rng: np.random.Generator,
    size: int,
    dim: int,
    epsilon: float,
    dtype: DTypeLike = np.float32,
) -> NDArray[np.floating[Any]]:
    """Draw independent vectors with density proportional to exp(-ε‖z‖).

    The length is Gamma(dim, 1/ε), with mean dim/ε, and the direction is uniform and independent
    of it (Feyisetan et al., WSDM 2020, section 2.6).

    Args:
        rng: Where the randomness comes from.
        size: How many vectors, 0 allowed.
        dim: Dimension of the space, at least 1.
        epsilon: Privacy parameter ε > 0, per unit of Euclidean distance.
        dtype: float32 or float64.

    Returns:
        (size, dim) array of the dtype.

    Raises:
        InvalidTypeError: If an argument is not a number.
        InvalidValueError: If size < 0, dim < 1, ε <= 0 or the dtype is another one.
    """
    require_at_least(0, size=size)
    require_at_least(1, dim=dim)
    require_positive(epsilon=epsilon)
    return in_uniform_directions(rng, rng.standard_gamma(dim, size) / epsilon, dim, dtype)

"""The multivariate Laplace law: density proportional to exp(-ε‖z‖)."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.noise.sphere import in_uniform_directions


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
    _validate.at_least(0, size=size)
    _validate.at_least(1, dim=dim)
    _validate.positive(epsilon=epsilon)
    return in_uniform_directions(rng, rng.standard_gamma(dim, size) / epsilon, dim, dtype)

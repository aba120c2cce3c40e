"""What float32 may do to a comparison of squared distances."""

import numpy as np
from numpy.typing import NDArray


def rounding(norms: NDArray[np.float64], largest: float, dim: int) -> NDArray[np.float64]:
    """Bound the error of ‖q‖²+‖u‖²−2⟨q,u⟩ in float32, up to what all vectors u have in common.

    An inner product of n terms is off by at most n·2⁻²⁴·‖q‖‖u‖, in whatever order it is added up
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The error of ‖q‖² itself
    is the same for all vectors and leaves their order alone; that of adding it is not, and happens
    once for each of the few pieces that a matrix product may cut n into.

    Args:
        norms: ‖q‖, of any shape.
        largest: The largest ‖u‖.
        dim: n.

    Returns:
        As many bounds; infinite or NaN where float32 may overflow.
    """
    float32 = np.finfo(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        products = (dim + 4.0) * largest * (2.0 * norms + largest)
        bound = float32.eps / 2.0 * (products + (4.0 + dim / 64.0) * norms**2)
        safe = (norms + largest) ** 2 < float(float32.max) / 4.0
    # Products below the smallest normal number keep fewer digits, or none.
    return np.where(safe, bound + dim * float(float32.tiny), np.inf)

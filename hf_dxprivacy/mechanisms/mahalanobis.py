"""The regularized Mahalanobis norm of Xu et al., PrivateNLP 2020.

‖x‖² = xᵀA⁻¹x with A = λΣ + (1−λ)I, where Σ is the covariance of the vocabulary's vectors scaled to
trace n. It stretches noise along the directions in which the words themselves spread.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError, require_within
from hf_dxprivacy.spaces import metrics


@dataclass(frozen=True, eq=False)
class RegularizedMahalanobis:
    """The norm and what sampling and certifying with it need.

    Attributes:
        lam: λ in [0, 1]; at 0 the norm is the Euclidean one, exactly.
        eigenvalues: (n,) float64 eigenvalues ξ of Σ, ascending, with sum n.
        root: (n, n) float64 symmetric A^(1/2), which noise is multiplied with.
        inverse_root: (n, n) float64 symmetric A^(−1/2), with ‖x‖ = ‖A^(−1/2)x‖₂.
        euclidean_factor: Least known c with ‖x‖ <= c·‖x‖₂, namely 1/√(λ·min ξ + 1 − λ): noise that
            is ε-private for this norm is c·ε-private for the Euclidean one. Rounded upwards.
    """

    lam: float
    eigenvalues: NDArray[np.float64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    euclidean_factor: float

    def norm(self, x: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the norm of each row of an (m, n) matrix, (m,) float64."""
        norms: NDArray[np.float64] = np.linalg.norm(x @ self.inverse_root, axis=1)
        return norms


def regularized_mahalanobis(vectors: NDArray[np.floating], lam: float) -> RegularizedMahalanobis:
    """Compute the norm of a vocabulary.

    Args:
        vectors: (V, n) vectors, read block by block.
        lam: λ in [0, 1]. 1 needs vectors that span all n dimensions.

    Raises:
        InvalidValueError: If λ is outside [0, 1], the vectors are all equal, or A is singular.
    """
    require_within(0.0, 1.0, lam=lam)
    n, center = vectors.shape[1], metrics.mean(vectors)
    covariance = np.zeros((n, n))
    for block in metrics.blocks(0, len(vectors)):
        centred = vectors[block] - center
        covariance += centred.T @ centred
    trace = float(np.trace(covariance))
    if not trace > 0:
        raise InvalidValueError(
            "expected vectors that differ from each other, but their covariance is zero"
        )
    values, basis = np.linalg.eigh(covariance * (n / trace))
    values = np.maximum(values, 0.0)
    spectrum = lam * values + (1.0 - lam)
    # What the decomposition may be off by: the certificate counts on that much less.
    slack = lam * n * np.finfo(np.float64).eps * values[-1]
    least = float(spectrum[0] - slack)
    if not least > slack:
        raise InvalidValueError(
            f"expected vectors that span all {n} dimensions for lam={lam}, but their covariance "
            "is singular; choose lam < 1"
        )
    if lam == 0:
        # Not basis·basisᵀ, whose rounding would change the noise of λ = 0 in the last digit.
        root, inverse_root = np.eye(n), np.eye(n)
    else:
        root = (basis * np.sqrt(spectrum)) @ basis.T
        inverse_root = (basis / np.sqrt(spectrum)) @ basis.T
    factor = 1.0 if lam == 0 else math.nextafter(1.0 / math.sqrt(least), math.inf)
    return RegularizedMahalanobis(float(lam), values, root, inverse_root, factor)

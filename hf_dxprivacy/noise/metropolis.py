"""The Metropolis-Hastings walk of Feyisetan, Diethe and Drake (ICDM 2019), for reference.

`lebesgue_radius` draws the same law exactly and independently; use that one. Successive states of a
walk are correlated, so they must never serve as the noise of several words.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import require_at_least, require_positive
from hf_dxprivacy.noise.laplace import in_uniform_directions


def metropolis_hastings(
    rng: np.random.Generator,
    size: int,
    dim: int,
    epsilon: float,
    *,
    corrected: bool = True,
    burn_in: int = 1000,
    step: float | None = None,
) -> NDArray[np.float64]:
    """Walk through the Poincaré ball towards the density ((1-‖z‖)/(1+‖z‖))^ε of Eq. 7.

    The state is kept in Lorentz coordinates, y = 2z/(1-‖z‖²) in R^dim, moved by a Gaussian step
    there, and mapped back to the ball. That map does not preserve volume, so the proposal is not
    symmetric in z, and the acceptance ratio needs the ratio of the Jacobians |dz/dy|.

    Args:
        rng: Where the randomness comes from.
        size: How many successive states to return, 0 allowed.
        dim: Dimension of the ball, at least 1.
        epsilon: The exponent ε > 0 of the density.
        corrected: Whether to apply the Jacobians. False reproduces Algorithm 2 as printed, which
            omits them: for ε > dim its law has density exp(-ερ)·sinh(ρ)^(dim-1)·cosh(ρ) in the
            distance ρ, which is wider than Eq. 7; for ε <= dim it has no stationary law and the
            walk drifts to the boundary.
        burn_in: How many states to discard first.
        step: Standard deviation of a step in each Lorentz coordinate; by default 2.4/(ε+1), which
            suits the width of the corrected law.

    Returns:
        (size, dim) successive, correlated points of the ball.

    Raises:
        InvalidTypeError: If an argument is not a number.
        InvalidValueError: If size < 0, dim < 1, ε <= 0, burn_in < 0 or step <= 0.
    """
    require_at_least(0, size=size, burn_in=burn_in)
    require_at_least(1, dim=dim)
    require_positive(epsilon=epsilon)
    width = 2.4 / (epsilon + 1) if step is None else step
    require_positive(step=width)
    states = np.empty((size, dim))
    # From the origin, the sharp peak of the density in Lorentz coordinates, a walk with steps that
    # suit the bulk would not get away for thousands of steps in ten dimensions already.
    state = in_uniform_directions(rng, np.array([dim / (epsilon + 1)]), dim)[0]
    weight = _log_weight(float(state @ state), dim, epsilon, corrected)
    for index in range(-burn_in, size):
        proposal = state + width * rng.standard_normal(dim)
        proposed = _log_weight(float(proposal @ proposal), dim, epsilon, corrected)
        if proposed - weight >= -rng.standard_exponential():
            state, weight = proposal, proposed
        if index >= 0:
            states[index] = state
    squared = np.einsum("ij,ij->i", states, states)
    points: NDArray[Any] = states / (1 + np.sqrt(1 + squared))[:, None]
    return points


def _log_weight(squared: float, dim: int, epsilon: float, corrected: bool) -> float:
    density = -epsilon * math.asinh(math.sqrt(squared))
    if not corrected:
        return density
    height = math.sqrt(1 + squared)
    return density - dim * math.log1p(height) - math.log(height)

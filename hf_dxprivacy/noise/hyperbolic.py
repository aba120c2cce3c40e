"""Two noise laws in the Poincaré ball around its origin, both drawn exactly.

They differ in the measure that the density exp(-ε·ρ) refers to, ρ being the distance from the
origin. With the invariant volume of the space it is the Riemannian Laplace law, which keeps ε when
a Möbius translation carries it to a word. With Lebesgue measure on the ball it is Eq. 7 of
Feyisetan, Diethe and Drake (ICDM 2019), which after that translation is (ε+dim)-private only.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import require_at_least, require_between, require_positive
from hf_dxprivacy.noise.laplace import in_uniform_directions


def riemannian_laplace_radius(
    rng: np.random.Generator, size: int, dim: int, epsilon: float
) -> NDArray[np.float64]:
    """Draw distances from the origin under the Riemannian Laplace law.

    Their density is proportional to exp(-ερ)·sinh(ρ)^(dim-1), and exp(-2ρ) is
    Beta((ε-dim+1)/2, dim). In one dimension this is the exponential law.

    Args:
        rng: Where the randomness comes from.
        size: How many distances, 0 allowed.
        dim: Dimension of the ball, at least 1.
        epsilon: Privacy parameter ε > dim - 1, per unit of hyperbolic distance. The mean distance
            grows like 1/(ε-dim+1).

    Returns:
        (size,) hyperbolic distances, finite also where exp(-2ρ) is below the smallest float.

    Raises:
        InvalidTypeError: If an argument is not a number.
        InvalidValueError: If size < 0, dim < 1 or ε <= dim - 1.
    """
    require_at_least(0, size=size)
    require_at_least(1, dim=dim)
    require_between(
        dim - 1,
        math.inf,
        f"hyperbolic volume grows like exp((dim-1)·ρ), so no such noise law exists for "
        f"ε <= dim-1 = {dim - 1}: take a larger epsilon, a space of lower dimension, or an "
        f"exponential mechanism (tem, calibrated), which has no floor",
        epsilon=epsilon,
    )
    return minus_log_beta(rng, size, (epsilon - (dim - 1)) / 2, dim) / 2


def lebesgue_radius(
    rng: np.random.Generator, size: int, dim: int, epsilon: float
) -> NDArray[np.float64]:
    """Draw distances from the origin under Eq. 7 of Feyisetan, Diethe and Drake (ICDM 2019).

    A point z has density proportional to ((1-‖z‖)/(1+‖z‖))^ε with respect to Lebesgue measure on
    the unit ball. With Möbius translation this noise is (ε+dim)-private, not ε-private.

    Arguments and errors as for `riemannian_laplace_radius`, for every exponent ε > 0.

    Returns:
        (size,) hyperbolic distances ρ; the norm of the point is tanh(ρ/2).
    """
    require_at_least(0, size=size)
    require_at_least(1, dim=dim)
    require_positive(epsilon=epsilon)
    radii = np.empty(size)
    filled = 0
    while filled < size:
        # Nearly always enough for ε >= dim, where 0.91 are kept at least.
        proposals, accepted = lebesgue_proposals(rng, (size - filled) * 9 // 8 + 8, dim, epsilon)
        kept = proposals[accepted][: size - filled]
        radii[filled : filled + len(kept)] = kept
        filled += len(kept)
    return radii


def ball_points(
    rng: np.random.Generator, radii: NDArray[np.float64], dim: int
) -> NDArray[np.float64]:
    """Place points of the Poincaré ball at given distances from its origin.

    Args:
        rng: Where the directions come from.
        radii: (m,) hyperbolic distances ρ >= 0.
        dim: Dimension of the ball, at least 1.

    Returns:
        (m, dim) float64 points tanh(ρ/2)·v with v uniform on the sphere. From ρ of about 38 the
        norm rounds to 1: such a point lies on the boundary as far as float64 can tell.

    Raises:
        InvalidTypeError: If dim is not an integer.
        InvalidValueError: If dim < 1.
    """
    points: NDArray[Any] = in_uniform_directions(rng, np.tanh(radii / 2), dim)
    return points


def lebesgue_proposals(
    rng: np.random.Generator, size: int, dim: int, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Propose (size,) distances for Eq. 7 and flag those that are exact, independent draws.

    The target, in s = exp(-ρ), is s^ε·(1-s)^(dim-1)·(1+s)^(-dim-1). A proposal is
    Beta(ε+1-κ, dim), and exp(h) is left to be accepted, h = κ·ln s - (dim+1)·ln(1+s), which is
    concave in ln s for every κ, with its maximum in closed form. At least 0.65 are kept whatever
    ε and dim.
    """
    # Acceptance is best where h has its maximum at the mean of the proposals. With their mean
    # (ε+1-κ)/(ε+1-κ+dim) in place of exp(mean of ln s), this is a quadratic equation for κ.
    half = epsilon + dim + 1.5
    kappa = (epsilon + 1) * (dim + 1) / (half + math.sqrt(half**2 - 2 * (epsilon + 1) * (dim + 1)))
    best = kappa / (dim + 1 - kappa)
    highest = kappa * math.log(best) - (dim + 1) * math.log1p(best)
    radii = minus_log_beta(rng, size, epsilon + 1 - kappa, dim)
    exponent = -kappa * radii - (dim + 1) * np.log1p(np.exp(-radii)) - highest
    return radii, exponent >= -rng.standard_exponential(size)


def minus_log_beta(rng: np.random.Generator, size: int, a: float, b: float) -> NDArray[np.float64]:
    """Draw -ln(T) >= 0 for T ~ Beta(a, b), accurately also where T rounds to 0 or to 1.

    a > 0, b >= 1. With G_a and G_b gamma variables, T = G_a/(G_a+G_b), so -ln(T) = ln(1 + G_b/G_a).
    For small a nearly all of the law of G_a lies below the smallest float: its logarithm is drawn
    instead, as ln(G_(a+1)) - E/a with E exponential.
    """
    ratio = rng.standard_gamma(b, size) / rng.standard_gamma(a + 1, size)
    # For b = 1 the gamma variable is exactly 0 once in 2^53 draws; -ln(T) is then 0, as it should.
    with np.errstate(divide="ignore"):
        log_ratio = np.log(ratio) + rng.standard_exponential(size) / a
    return np.logaddexp(0.0, log_ratio)

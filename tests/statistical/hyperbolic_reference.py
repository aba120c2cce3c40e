"""Laws of the hyperbolic noise by quadrature of their definitions, for comparison.

Nothing here uses the substitutions of the samplers: each density is written down in the distance ρ
from the origin, as the law defines it, and summed up numerically.
"""

from collections.abc import Callable

import numpy as np

from laws import Array, Cdf

LogDensity = Callable[[Array], Array]


def riemannian(dim: int, epsilon: float) -> LogDensity:
    """Return ln of exp(-ερ) times the area sinh(ρ)^(dim-1) of the hyperbolic sphere."""
    return lambda rho: -epsilon * rho + (dim - 1) * _log_sinh(rho)


def lebesgue(dim: int, epsilon: float) -> LogDensity:
    """Return ln of ((1-r)/(1+r))^ε·r^(dim-1)·dr/dρ, r = tanh(ρ/2): Eq. 7 in polar coordinates."""

    def log_density(rho: Array) -> Array:
        # (1-r)/(1+r) is exp(-ρ), and dr/dρ is (1-r²)/2.
        log_r = np.log(-np.expm1(-rho)) - np.log1p(np.exp(-rho))
        log_slope = np.log(2) - rho - 2 * np.log1p(np.exp(-rho))
        return -epsilon * rho + (dim - 1) * log_r + log_slope

    return log_density


def uncorrected_walk(dim: int, epsilon: float) -> LogDensity:
    """Return ln of exp(-ερ) times Lebesgue measure on the space part of Lorentz coordinates."""
    return lambda rho: riemannian(dim, epsilon)(rho) + _log_cosh(rho)


def radial_cdf(log_density: LogDensity, farthest: float = 1e7) -> Cdf:
    """Return the distribution function of ρ that has this log-density, by trapezoids in ln ρ."""
    log_rho = np.linspace(np.log(1e-12), np.log(farthest), 200_001)
    log_mass = log_density(np.exp(log_rho)) + log_rho
    mass = np.exp(log_mass - log_mass.max())
    cumulative = np.concatenate([[0.0], np.cumsum(mass[1:] + mass[:-1])])
    cumulative /= cumulative[-1]
    return lambda rho: np.interp(np.log(np.maximum(rho, 1e-300)), log_rho, cumulative)


def _log_sinh(rho: Array) -> Array:
    return rho + np.log(-np.expm1(-2 * rho)) - np.log(2)


def _log_cosh(rho: Array) -> Array:
    return rho + np.log1p(np.exp(-2 * rho)) - np.log(2)

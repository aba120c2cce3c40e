"""Samplers of noise: Euclidean, hyperbolic, and a Metropolis walk. They know numbers, no words."""

from hf_dxprivacy.noise.hyperbolic import ball_points, lebesgue_radius, riemannian_laplace_radius
from hf_dxprivacy.noise.laplace import multivariate_laplace, uniform_directions
from hf_dxprivacy.noise.metropolis import metropolis_hastings

__all__ = [
    "ball_points",
    "lebesgue_radius",
    "metropolis_hastings",
    "multivariate_laplace",
    "riemannian_laplace_radius",
    "uniform_directions",
]

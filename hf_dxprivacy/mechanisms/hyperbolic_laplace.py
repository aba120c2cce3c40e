"""Noise in the Poincaré ball."""

from functools import partial
from typing import Literal

import numpy as np

from hf_dxprivacy._runtime import CPU, lazy_property
from hf_dxprivacy.errors import InvalidValueError, require_one_of
from hf_dxprivacy.mechanisms.additive import NEIGHBOURS, RESAMPLING, NoiseMechanism, Search
from hf_dxprivacy.mechanisms.base import Ids, Reals
from hf_dxprivacy.noise import ball_points, lebesgue_radius, riemannian_laplace_radius
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.search import nearest_poincare
from hf_dxprivacy.search.torch_search import TorchPoincare
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.metrics import boundary_gap, mobius_add

HyperbolicNoise = Literal["riemannian", "lebesgue"]


class HyperbolicLaplace(NoiseMechanism):
    """Noise in the Poincaré ball (after Feyisetan, Diethe, Drake, ICDM 2019).

    A noise point z is drawn around the origin and moved to the word by Möbius addition φ(w) ⊕ z,
    an isometry; the nearest word is released. ε per unit of the space's (scaled) hyperbolic
    distance.

    The mechanism as printed has no finite guarantee at its stated ε; see docs/guarantee.md. The
    default noise has density ∝ exp(−ε·d) with respect to the invariant volume, exists for
    ε > (n−1)/scale, and is ε·d-private. ``noise="lebesgue"`` is the paper's density (Eq. 7), with
    what it really costs: ε + n/scale.

    Args:
        space: A Poincaré space.
        epsilon: ε > 0.
        noise: "riemannian" or "lebesgue".
        resample: c > 0 to draw from the neighbours of the word found, as `NoiseMechanism` says.
        resample_neighbours: How many neighbours.

    Raises:
        InvalidValueError: If ε is not above the floor of the Riemannian noise.
    """

    name = "hyperbolic"
    metrics = ("poincare",)
    options = ("noise", *RESAMPLING)

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        noise: HyperbolicNoise = "riemannian",
        resample: float | None = None,
        resample_neighbours: int = NEIGHBOURS,
    ) -> None:
        super().__init__(space, epsilon, resample, resample_neighbours)
        require_one_of(("riemannian", "lebesgue"), noise=noise)
        self.noise = noise
        floor = (space.dim - 1) / space.scale
        if noise == "riemannian" and self.epsilon * space.scale <= space.dim - 1:
            raise InvalidValueError(
                f"the Riemannian Laplace noise exists only for epsilon > (n-1)/scale = {floor:.6g} "
                f"(the volume growth of a {space.dim}-d ball), got epsilon={epsilon}; take a "
                "larger epsilon or a space of lower dimension, or mechanism 'calibrated' or "
                "'tem', which have no floor"
            )

    @property
    def certified_epsilon(self) -> float:
        """ε for the Riemannian noise; ε + n/scale for the paper's."""
        extra = self.space.dim / self.space.scale if self.noise == "lebesgue" else 0.0
        return self.epsilon + extra

    @lazy_property
    def _nearest(self) -> Search:
        points, gaps = self.space.vectors, boundary_gap(self.space.vectors)
        if self.device != CPU:
            return TorchPoincare(points, gaps, self.device).nearest
        return partial(nearest_poincare, points=points, gaps=gaps)

    def _sample_noise(self, rng: np.random.Generator, size: int) -> Reals:
        radius = riemannian_laplace_radius if self.noise == "riemannian" else lebesgue_radius
        radii = radius(rng, size, self.space.dim, self.epsilon * self.space.scale)
        return ball_points(rng, radii, self.space.dim)

    def _find(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        noise = streams.draw(self._sample_noise, positions).astype(np.float64, copy=False)
        return self._nearest(mobius_add(self.space.points(ids), noise))

    def _assumptions(self) -> tuple[str, ...]:
        if self.noise == "riemannian":
            return super()._assumptions()
        return (
            f"The paper's noise at nominal ε = {self.epsilon:g} is certified at ε + n/scale only: "
            "its density refers to Lebesgue measure, which hyperbolic translation does not keep.",
            *super()._assumptions(),
        )

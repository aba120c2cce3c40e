"""Exponential mechanisms: the output is drawn by its distance from the input.

Both draw Pr[M(w)=y] ∝ exp(−s·d_γ(w, y)) with the truncated metric d_γ = min(d, γ), on any metric,
and differ only in how s is chosen for an ε.
"""

import math
import threading
from typing import ClassVar

import numpy as np

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import require_between, require_positive, require_within
from hf_dxprivacy.guarantee import Disclosure, Noun, upward
from hf_dxprivacy.mechanisms.base import ExponentialLaw, Ids, Reals
from hf_dxprivacy.mechanisms.certificate import calibrate, truncation_weight
from hf_dxprivacy.mechanisms.levels import privacy_curve
from hf_dxprivacy.mechanisms.sampler import SAMPLER, RejectionSampler, Weights
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.spaces import EmbeddingSpace

# Beyond this, exp(−s·γ) would leave double precision and a probability would round to zero.
LARGEST_EXPONENT = 700.0
SMALLEST_BETA = 1e-100


class ExponentialMechanism(ExponentialLaw):
    """Draws an output y for an input w with probability ∝ exp(−s·min(d(w, y), γ)).

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        beta: β in (0, 1): γ is chosen so that, from any input, all words farther than γ together
            have at most about this probability.
    """

    # A rejected draw starts again, so a chunk takes some dozens of rounds; large ones pay off.
    chunk = 1 << 14

    def __init__(self, space: EmbeddingSpace, epsilon: float, beta: float = 0.001) -> None:
        super().__init__(space, epsilon)
        require_between(0.0, 1.0, "0.001 is usual", beta=beta)
        require_within(SMALLEST_BETA, 1.0, "0.001 is usual", beta=beta)
        self.beta = float(beta)

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters and the partition.

        Over another one the same noise would become another word, and the two together would tell
        more than two independent releases.
        """
        partition = self.space.partition(self.device)
        return {**super().noise_parameters, "cells": f"{SAMPLER}:{partition.digest}"}

    @property
    def radius(self) -> float:
        """γ, the distance from which on all outputs are equally likely."""
        exponent = abs(math.log(truncation_weight(len(self.space), self.beta)))
        return exponent / self.inverse_temperature

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return f"{super().metric} truncated at γ = {upward(self.radius)}"

    @property
    def diameter(self) -> float:
        """γ, or the space's own bound where that is smaller."""
        return min(self.radius, super().diameter)

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) distances truncated at γ."""
        return np.minimum(super().pair_distances(ids_a, ids_b), self.radius)

    def neighbour_distances(self) -> dict[int, float]:
        """Median distance to the 1st, 10th, 100th neighbour, truncated at γ."""
        return {k: min(d, self.radius) for k, d in super().neighbour_distances().items()}

    def output_distances(self, ids: Ids) -> Reals:
        """Return (m, V) distances from inputs to all words, truncated at γ."""
        return np.minimum(self.space.distances(ids), self.radius)

    @property
    def _remedy(self) -> str:
        nearest = self.space.neighbour_distances()[1]
        return (
            "ε is per unit of distance, and the median distance to the nearest neighbour is "
            f"{nearest:.3g}: take a smaller ε, or scale the {{0.space}} (rescale, or "
            "convert --unit-step)"
        )

    @lazy_property
    def _weights(self) -> Weights:
        s, radius = self.inverse_temperature, self.radius
        return lambda distances: np.exp(-s * np.minimum(distances, radius))

    @lazy_property
    def _samplers(self) -> threading.local:
        return threading.local()

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        # One for each thread: two that filled one cache would mix up the heads of different words.
        if not hasattr(self._samplers, "own"):
            self._samplers.own = RejectionSampler(
                self.space, self._weights, least_capacity=self.chunk, device=self.device
            )
        sampler: RejectionSampler = self._samplers.own
        return sampler.draw(ids, streams, positions)


class TruncatedExponential(ExponentialMechanism):
    """Truncated exponential mechanism, TEM (Carvalho et al.).

    s = ε/2 and γ = (2/ε)·ln((1−β)(V−1)/β), unless γ is given. The paper's ⊥ element with Gumbel
    noise is exactly this law. ε per unit of d_γ, hence also ε·γ-locally private.

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        beta: β in (0, 1); sets γ.
        gamma: γ > 0 instead of the one that β gives.
    """

    name = "tem"
    options: ClassVar[tuple[str, ...]] = ("beta", "gamma")

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        beta: float = 0.001,
        gamma: float | None = None,
    ) -> None:
        super().__init__(space, epsilon, beta)
        if gamma is not None:
            require_positive(gamma=gamma)
            require_within(
                0.0,
                LARGEST_EXPONENT,
                "a larger one would round probabilities to zero; take a smaller gamma",
                half_epsilon_times_gamma=epsilon * gamma / 2.0,
            )
        self.gamma = None if gamma is None else float(gamma)

    @property
    def inverse_temperature(self) -> float:
        """Half of ε."""
        return self.epsilon / 2.0

    @property
    def radius(self) -> float:
        """γ, the distance from which on all outputs are equally likely."""
        return super().radius if self.gamma is None else self.gamma

    def exact_epsilon(self, progress: bool = False) -> float:
        """Return the true privacy level ε*, in time quadratic in the size of the vocabulary."""
        floor = math.exp(-self.inverse_temperature * self.radius)
        return privacy_curve(self.space, [0], floor, self.inverse_temperature, progress)[0]


class CalibratedExponential(ExponentialMechanism):
    """Calibrated exponential mechanism: the largest s whose exact privacy level is at most ε.

    TEM halves ε for the worst that a log-partition function ln Z could do. On a fixed vocabulary
    these are known, so the exact level `ε*(s)` is computed and s is raised until it meets ε: the
    same guarantee with text nearer to the original. See docs/guarantee.md for the proof.

    The first use of a space takes time quadratic in its vocabulary, with a progress bar; the result
    is remembered in the artifact or the cache, by the digest of the space.

    Args:
        space: Where the words lie.
        epsilon: ε > 0, per unit of d_γ.
        beta: β in (0, 1); sets γ = ln((1−β)(V−1)/β)/s.
    """

    name = "calibrated"
    options = ("beta",)

    def __init__(self, space: EmbeddingSpace, epsilon: float, beta: float = 0.001) -> None:
        super().__init__(space, epsilon, beta)
        self._calibration = calibrate(space, self.epsilon, self.beta)

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        level, s = upward(self._calibration.level, 6), self.inverse_temperature
        text = f"The exact level over all pairs of {noun.many} is {level} (s = {s:.4g})."
        return (Disclosure(text, "exact_level", level),)

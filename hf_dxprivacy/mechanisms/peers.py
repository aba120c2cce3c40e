"""SanText and Vickrey: mechanisms of other papers with a finite guarantee, to compare with.

What each paper claims and what holds is in docs/peers.md.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import require_within
from hf_dxprivacy.mechanisms.base import METRIC_NAMES, Ids, Mechanism
from hf_dxprivacy.mechanisms.exponential import LARGEST_EXPONENT, TruncatedExponential
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import RowStreams, Sampler, uniforms
from hf_dxprivacy.search import two_nearest
from hf_dxprivacy.spaces import EmbeddingSpace


class SanText(TruncatedExponential):
    """SanText (Yue et al., Findings of ACL 2021): Pr[M(w)=y] ∝ exp(−(ε/2)·d(w, y)).

    The law of `TruncatedExponential` without truncation, ε·d-private by the paper's own proof. No
    probability is below e^(−700) of the largest, where double precision ends: a truncation that
    keeps the guarantee and that no draw shows. Every word is drawn anew (SanText+ keeps words,
    which has no finite guarantee), and unknown words are one input, at the centroid.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0.
    """

    name = "santext"
    paper = "Yue et al. 2021"
    metrics = ("euclidean",)
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)

    @property
    def radius(self) -> float:
        """Distance at which a weight is e^(−700), in place of γ."""
        return LARGEST_EXPONENT / self.inverse_temperature

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return METRIC_NAMES[self.space.metric]


class Vickrey(Mechanism):
    """Vickrey mechanism (Xu, Aggarwal, Feyisetan, Teissier, PrivateNLP 2021).

    Noise of density ∝ exp(−ε‖z‖₂) is added to the word's vector. With u₁ and u₂ the two words that
    are nearest to the noisy vector, at the distances d₁ ≤ d₂ from it, u₁ is released with the
    probability (1−t)·d₂/(t·d₁+(1−t)·d₂), and u₂ else. Both depend on the noisy vector alone, which
    is ε·d-private, so that the release is too; a choice that looks at the input, as public code
    makes it, is not (docs/errata.md).

    Args:
        space: A Euclidean space.
        epsilon: ε > 0.
        t: In [0, 1]: 0 always releases the nearest word, as "laplace" does, 1 always the second.
    """

    name = "vickrey"
    paper = "Xu, Aggarwal et al. 2021"
    metrics = ("euclidean",)
    options = ("t",)

    def __init__(self, space: EmbeddingSpace, epsilon: float, t: float = 0.5) -> None:
        super().__init__(space, epsilon)
        require_within(0.0, 1.0, t=t)
        self.t = float(t)

    @lazy_property
    def _vectors(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.space.vectors, dtype=np.float32)

    @lazy_property
    def _sample_noise(self) -> Sampler:
        # In double precision: see `additive.FEW_DIMENSIONS`.
        law = partial(multivariate_laplace, dim=self.space.dim, epsilon=self.epsilon)
        return partial(law, dtype=np.float64)

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        noisy = self.space.points(ids) + streams.draw(self._sample_noise, positions)
        words, distances = two_nearest(noisy, self._vectors)
        first, second = self.t * distances[:, 0], (1.0 - self.t) * distances[:, 1]
        moved = streams.draw(uniforms, positions) * (first + second) >= second
        return np.where(moved, words[:, 1], words[:, 0])

"""Mechanisms with known faults, which an audit has to catch, each beside the honest one.

Written from descriptions of what is found in the field, or of what is easily got wrong; nothing is
copied. Each states the ε·d that its authors believe in. They are for audits of audits alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.evaluation.peer_candidates import CusText, SynTF, TruncatedGumbel
from hf_dxprivacy.evaluation.peers import Diffractor
from hf_dxprivacy.mechanisms import (
    HyperbolicLaplace,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    TruncatedExponential,
)
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.noise.laplace import in_uniform_directions, uniform_directions
from hf_dxprivacy.randomness import RowStreams, process_generator
from hf_dxprivacy.search import nearest_euclidean, nearest_poincare
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.metrics import boundary_gap
from peer_laws import gumbel_logs

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]


# Spaces in which faults show: words so near each other that ε·d is small, and uneven density.


def _space(vectors: Array, metric: str = "euclidean") -> EmbeddingSpace:
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(len(vectors))], vectors, metric)


@cache
def clusters() -> EmbeddingSpace:
    """300 words in eight dimensions, in clusters of uneven density."""
    rng = np.random.default_rng(5)
    centers = 2.0 * rng.normal(size=(15, 8))
    spread = rng.uniform(0.1, 1.2, size=15)
    of = rng.integers(15, size=300)
    return _space(centers[of] + spread[of, None] * rng.normal(size=(300, 8)))


@cache
def few() -> EmbeddingSpace:
    """The first 120 of these words, with a tree."""
    return _space(clusters().vectors[:120]).build_hierarchy(progress=False)


@cache
def cloud() -> EmbeddingSpace:
    """300 words in the plane."""
    return _space(2.0 * np.random.default_rng(6).normal(size=(300, 2)))


@cache
def strip() -> EmbeddingSpace:
    """300 words in five rows that are near each other, with more room along them."""
    grid = np.stack(np.meshgrid(0.25 * np.arange(60), 0.1 * np.arange(5)), axis=-1).reshape(-1, 2)
    return _space(grid + 1e-3 * np.random.default_rng(8).normal(size=grid.shape))


@cache
def line() -> EmbeddingSpace:
    """Forty words on a line, at even distances of 0.1."""
    return _space(0.1 * np.arange(40.0)[:, None])


@cache
def disk() -> EmbeddingSpace:
    """200 words spread over a hyperbolic disk of radius 2.5."""
    rng = np.random.default_rng(7)
    radii = np.tanh(2.5 * np.sqrt(rng.random(200)) / 2.0)
    return _space(radii[:, None] * uniform_directions(rng, 200, 2), "poincare")


# Exponential laws


class _Law(TruncatedExponential):
    """TEM with other weights, drawn by their cumulative sums."""

    def probabilities(self, ids: Any) -> NDArray[np.float64]:
        """Return the law of the output for each input."""
        weights = self._mass(self.space.distances(np.asarray(ids)))
        return weights / weights.sum(axis=1, keepdims=True)

    def _mass(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        uniform = streams.draw(lambda rng, size: rng.random(size), positions)
        drawn = np.empty(len(ids), dtype=np.int64)
        for word in np.unique(ids):
            cumulative = np.cumsum(self.probabilities([word])[0])
            where = ids == word
            drawn[where] = np.searchsorted(cumulative, uniform[where] * cumulative[-1], "right")
        return drawn


class DoubledTem(TruncatedExponential):
    """exp(−ε·d) in place of exp(−ε·d/2): the half that pays for the normaliser is forgotten."""

    @property
    def inverse_temperature(self) -> float:
        """ε."""
        return self.epsilon


class CandidatesOnly(_Law):
    """Only the forty nearest words can come out, and nothing stands for the others."""

    def _mass(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        farthest = np.sort(distances, axis=1)[:, 39:40]
        return np.where(distances <= farthest, np.exp(-self.inverse_temperature * distances), 0.0)


class WrongBottom(_Law):
    """TEM whose ⊥ has the score −γ + 2·ln(|W|/|L|)/ε; its proof needs ln|W∖L|."""

    def _mass(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        near = distances < self.radius
        inside = near.sum(axis=1, keepdims=True)
        outside = np.maximum(near.shape[1] - inside, 1)
        bottom = (
            np.exp(-self.inverse_temperature * self.radius) * near.shape[1] / np.maximum(inside, 1)
        )
        return np.where(near, np.exp(-self.inverse_temperature * distances), bottom / outside)


class BottomKeeps(_Law):
    """TEM that releases the input itself where it should draw a word beyond γ."""

    def probabilities(self, ids: Any) -> NDArray[np.float64]:
        """Return the law of the output for each input."""
        ids, distances = np.asarray(ids), self.space.distances(np.asarray(ids))
        near = distances < self.radius
        weights = np.where(near, np.exp(-self.inverse_temperature * distances), 0.0)
        bottom = np.exp(-self.inverse_temperature * self.radius) * (~near).sum(axis=1)
        known = np.flatnonzero(ids >= 0)
        weights[known, ids[known]] += bottom[known]
        # For the unknown word, which has no place among the outputs, TEM as it is.
        weights[ids < 0] = np.where(
            near[ids < 0], weights[ids < 0], np.exp(-self.inverse_temperature * self.radius)
        )
        return weights / weights.sum(axis=1, keepdims=True)


class SquaredDistance(_Law):
    """What a search index returns, a squared distance, is used as the distance."""

    def _mass(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-self.inverse_temperature * np.minimum(distances**2, self.radius**2))


# Laws of other papers at what they claim


class CusTextOfAnyWords(CusText):
    """CusText, said to keep ε between any two words."""

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> NDArray[np.float64]:
        """Return 1 for different words."""
        return np.minimum(super().pair_distances(ids_a, ids_b), 1.0)


class SynTFOfAnyWords(SynTF):
    """Synonyms, said to keep ε between any two words."""

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> NDArray[np.float64]:
        """Return 1 for different words."""
        return np.minimum(super().pair_distances(ids_a, ids_b), 1.0)


class OneListOfFive(Diffractor):
    """Lists drawn at random, with the distance of the places in the first list only."""

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> NDArray[np.float64]:
        """Return the distance in the first list."""
        places, a, b = self._places[0], self._taken(ids_a), self._taken(ids_b)
        return np.abs(places[a] - places[b]).astype(np.float64)


class GumbelAtEpsilon(TruncatedGumbel):
    """Truncated Gumbel noise in exact arithmetic, said to be ε·d-private."""

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> NDArray[np.float64]:
        """Return distances of the space."""
        return self.space.pair_distances(self._taken(ids_a), self._taken(ids_b))

    def probabilities(self, ids: Any) -> NDArray[np.float64]:
        """Return the law with its least probabilities, which no draw shows."""
        return _gumbel_laws(self.epsilon)[self._taken(np.asarray(ids))]


@cache
def _gumbel_laws(epsilon: float) -> NDArray[np.float64]:
    """Return the laws of the words of `few`."""
    laws: NDArray[np.float64] = np.exp(gumbel_logs(few().distances(np.arange(len(few()))), epsilon))
    return laws


# Noise


class DoubledLaplace(MultivariateLaplace):
    """Noise for twice the ε that is stated."""

    @property
    def certified_epsilon(self) -> float:
        """Half of the true one."""
        return self.epsilon / 2.0


class RadiusWithoutDimension(MultivariateLaplace):
    """The length of the noise is Gamma(1, 1/ε) in place of Gamma(n, 1/ε)."""

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        def law(rng: np.random.Generator, size: int) -> Array:
            return in_uniform_directions(
                rng, rng.standard_exponential(size) / self.epsilon, self.space.dim
            )

        noisy = self.space.points(ids) + streams.draw(law, positions)
        return nearest_euclidean(noisy, self._search_vectors)


class Renormalised(Mahalanobis):
    """The direction A^½·v is made a unit vector again before it is multiplied by the length.

    The bound is that of the norm or of the Euclidean distance, whichever allows more.
    """

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> NDArray[np.float64]:
        """Return the larger one of both distances."""
        euclidean = self.space.pair_distances(ids_a, ids_b)
        return np.maximum(super().pair_distances(ids_a, ids_b), euclidean)

    def _shape(self, noise: Array) -> Array:
        stretched = super()._shape(noise)
        lengths = np.linalg.norm(noise, axis=1) / np.linalg.norm(stretched, axis=1)
        return stretched * lengths[:, None]


class VickreyWithoutInput(MultivariateLaplace):
    """Of the nearest words to the noisy vector the input itself is struck out.

    Then one of the two nearest is taken, the second with a probability that depends on their
    distances. Striking out reads the input, so this is not post-processing of the noisy vector.
    """

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        def law(rng: np.random.Generator, size: int) -> Array:
            radii = rng.standard_gamma(self.space.dim, size) / self.epsilon
            noise = in_uniform_directions(rng, radii, self.space.dim, np.float64)
            return np.column_stack([noise, rng.random(size)])

        drawn = streams.draw(law, positions)
        noisy = self.space.points(ids) + drawn[:, :-1]
        distances = np.linalg.norm(noisy[:, None] - self.space.vectors, axis=2)
        self._strike(distances, ids)
        order = np.argsort(distances, axis=1)[:, :2]
        first, second = np.take_along_axis(distances, order, axis=1).T
        takes_second = drawn[:, -1] < 1.0 / (1.0 + np.exp(first - second))
        return order[np.arange(len(ids)), takes_second.astype(np.int64)]

    def _strike(self, distances: NDArray[np.float64], ids: Ids) -> None:
        known = np.flatnonzero(ids >= 0)
        nearest = distances[known].argmin(axis=1) == ids[known]
        distances[known[nearest], ids[known[nearest]]] = np.inf


class Vickrey(VickreyWithoutInput):
    """The same without a look at the input: post-processing of the noisy vector, and honest."""

    def _strike(self, distances: NDArray[np.float64], ids: Ids) -> None:
        del distances, ids


class EuclideanAddition(HyperbolicLaplace):
    """Noise is added as if the ball were flat; what leaves the ball is put back into it."""

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        noisy = self.space.points(ids) + streams.draw(self._sample_noise, positions)
        lengths = np.linalg.norm(noisy, axis=1, keepdims=True)
        noisy /= np.maximum(1.0, lengths / (1.0 - 1e-5))
        return nearest_poincare(noisy, self.space.vectors, boundary_gap(self.space.vectors))


class EquationSevenAtEpsilon(HyperbolicLaplace):
    """The density of Eq. 7 by Lebesgue measure, moved by Möbius addition, stated at ε."""

    @property
    def certified_epsilon(self) -> float:
        """ε, where ε + n is true."""
        return self.epsilon


# Whole releases


@dataclass(frozen=True)
class ReleasesUnknown:
    """Words that the space lacks are released as they are, and said to be at the centroid."""

    mechanism: ExponentialMechanism
    rng: np.random.Generator = field(default_factory=process_generator)

    def __call__(self, words: Sequence[str]) -> list[str]:
        """Replace words."""
        ids = self.mechanism.space.ids(words)
        drawn = self.mechanism.sample(ids, self.rng)
        names = self.mechanism.space.words
        return [
            names[out] if row >= 0 else word
            for word, row, out in zip(words, ids, drawn, strict=True)
        ]


class SharedGenerator:
    """Holds one generator, which every worker of ``Dataset.map`` gets a copy of."""

    def __init__(self, mechanism: MultivariateLaplace | ExponentialMechanism) -> None:
        self.mechanism = mechanism
        self.rng = np.random.default_rng()

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[str]]:
        """Replace the words of texts."""
        space = self.mechanism.space
        return {
            "text": [
                " ".join(
                    space.words[k] for k in self.mechanism.sample(space.ids(t.split()), self.rng)
                )
                for t in batch["text"]
            ]
        }


@dataclass(frozen=True)
class Control:
    """A fault, and the mechanism that it should have been.

    Attributes:
        formula: What is wrong, in a line.
        source: Where it was found; planted faults are those that are easily made.
        faulty: Makes the faulty one, in a space and at an ε at which the fault shows well.
        honest: Makes the right one, in the same space at the same stated ε.
    """

    formula: str
    source: str
    faulty: Callable[[], Mechanism]
    honest: Callable[[], Mechanism]


CONTROLS = {
    "half forgotten": Control(
        "exp(−ε·d) in place of exp(−ε·d/2) in an exponential mechanism (ε doubled)",
        "planted",
        lambda: DoubledTem(clusters(), 2.0),
        lambda: TruncatedExponential(clusters(), 2.0),
    ),
    "no remainder": Control(
        "only the nearest candidates can come out, and nothing stands for the other words",
        "code of CusText (mapping `aggressive`) and of InferDPT",
        lambda: CandidatesOnly(clusters(), 2.0),
        lambda: TruncatedExponential(clusters(), 2.0),
    ),
    "wrong bottom": Control(
        "⊥ of TEM with the score −γ + 2·ln(V/L)/ε in place of −γ + 2·ln(V−L)/ε",
        "mldp-text 0.1.2, `TEM`",
        lambda: WrongBottom(clusters(), 6.0),
        lambda: TruncatedExponential(clusters(), 6.0),
    ),
    "bottom keeps": Control(
        "where ⊥ of TEM comes out, the input itself is released",
        "pyPANTERA 1.0.2, `TEM`",
        lambda: BottomKeeps(clusters(), 2.0),
        lambda: TruncatedExponential(clusters(), 2.0),
    ),
    "clusters": Control(
        "an exponential mechanism inside clusters, stated at ε for any two words",
        "Chen et al., Findings of ACL 2023 (CusText)",
        lambda: CusTextOfAnyWords(clusters(), 4.0),
        lambda: CusText(clusters(), 4.0),
    ),
    "synonyms": Control(
        "an exponential mechanism over the synonyms of a word, stated at ε for any two words",
        "mldp-text 0.1.2, `SynTF`",
        lambda: SynTFOfAnyWords(few(), 4.0),
        lambda: SynTF(few(), 4.0),
    ),
    "one list": Control(
        "a place in one of five lists, with the distance of one list in place of the farthest",
        "planted",
        lambda: OneListOfFive(clusters(), 0.05),
        lambda: Diffractor(clusters(), 0.05),
    ),
    "truncated gumbel": Control(
        "truncated Gumbel noise on the distances of Poisson-many nearest words, stated at ε·d",
        "Xu, Feyisetan et al., FLAIRS 2021",
        lambda: GumbelAtEpsilon(few(), 57.0),
        lambda: TruncatedGumbel(few(), 57.0),
    ),
    "squared distance": Control(
        "the squared distance that a search index returns is taken for the distance",
        "mldp-text 0.1.2, `TruncatedGumbel`, by default",
        lambda: SquaredDistance(clusters(), 2.0),
        lambda: TruncatedExponential(clusters(), 2.0),
    ),
    "doubled noise": Control(
        "Laplace noise for 2ε (ε doubled)",
        "planted",
        lambda: DoubledLaplace(cloud(), 2.0),
        lambda: MultivariateLaplace(cloud(), 1.0),
    ),
    "radius": Control(
        "Laplace noise of length Gamma(1, 1/ε) in place of Gamma(n, 1/ε)",
        "planted",
        lambda: RadiusWithoutDimension(clusters(), 3.0),
        lambda: MultivariateLaplace(clusters(), 3.0),
    ),
    "renormalised": Control(
        "Mahalanobis noise whose direction A^½·v is scaled back to length 1",
        "public code",
        lambda: Renormalised(strip(), 0.5, 1.0),
        lambda: Mahalanobis(strip(), 0.5, 1.0),
    ),
    "vickrey": Control(
        "Vickrey that strikes the input out of the nearest words to the noisy vector",
        "mldp-text 0.1.2, `VickreyMechanism`",
        lambda: VickreyWithoutInput(line(), 1.0),
        lambda: Vickrey(line(), 1.0),
    ),
    "euclidean addition": Control(
        "φ(w) + z in the Poincaré ball in place of φ(w) ⊕ z",
        "Feyisetan et al., ICDM 2019",
        lambda: EuclideanAddition(disk(), 1.5),
        lambda: HyperbolicLaplace(disk(), 1.5),
    ),
    "equation 7": Control(
        "the density of Eq. 7 in the ball, stated at ε in place of ε + n",
        "Feyisetan et al., ICDM 2019, Eq. 7",
        lambda: EquationSevenAtEpsilon(disk(), 0.5, "lebesgue"),
        lambda: HyperbolicLaplace(disk(), 0.5, "lebesgue"),
    ),
}

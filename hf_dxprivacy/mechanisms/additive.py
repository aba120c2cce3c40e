"""Mechanisms that add noise to a word's vector and release the nearest word.

Finding the nearest word is a fixed function of the noisy vector, so it costs no privacy. Neither
does resampling among its neighbours by their rank: in many dimensions the nearest word is the
original or an unrelated one, hardly ever one near to the original (Asghar et al., 2024, arXiv
2411.13784), whose remedy it is.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._runtime import CPU, lazy_property
from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_one_of,
    require_positive,
    require_within,
)
from hf_dxprivacy.guarantee import Disclosure, Noun, upward
from hf_dxprivacy.mechanisms.base import Ids, Mechanism, Reals
from hf_dxprivacy.mechanisms.mahalanobis import RegularizedMahalanobis, regularized_mahalanobis
from hf_dxprivacy.noise import (
    ball_points,
    lebesgue_radius,
    multivariate_laplace,
    riemannian_laplace_radius,
)
from hf_dxprivacy.randomness import RowStreams, Sampler, uniforms
from hf_dxprivacy.search import ExactSearch, PoincareSearch, nearest_to_sums
from hf_dxprivacy.search.torch_search import TorchEuclidean, TorchPoincare
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.metrics import boundary_gap, mobius_add

# Bytes of one block of distances (words by vocabulary).
BLOCK_BYTES = 1 << 24

# How many neighbours of the word found are drawn from, if any are.
NEIGHBOURS = 100
RESAMPLING = ("resample", "resample_neighbours")

# Exact search, which needs no index.
FLAT = "flat"

# Up to this many dimensions noise is drawn in double precision. In single precision noise from a
# word far out lands on multiples of the spacing of float32 there, and never reaches words between
# them, whose release would show that the input was another (after Mironov, CCS 2012).
FEW_DIMENSIONS = 4

HyperbolicNoise = Literal["riemannian", "lebesgue"]

# Finds the row of the nearest vector for each of (m, n) noisy ones.
Search = Callable[[Reals], Ids]


class NeighbourRanks:
    """Replaces words by their i-th nearest neighbours, i = 0 … k, with weight exp(−decay·i).

    Rank 0 is the word itself; equally near words are ranked by row. Lists of neighbours are made
    when they are needed first, and kept.

    Args:
        space: Where the words lie; V words.
        decay: Above zero.
        neighbours: k; at most V−1 are used.
    """

    def __init__(self, space: EmbeddingSpace, decay: float, neighbours: int) -> None:
        self._space = space
        ranks = np.arange(min(neighbours, len(space) - 1) + 1)
        weights = np.exp(-decay * ranks)
        self._cumulative = np.cumsum(weights / weights.sum())
        # Memory that is not written to is not taken. One array from the start, so that threads
        # that compute the same list write the same to the same place.
        self._lists = np.empty((len(space), len(ranks)), dtype=np.int32)
        self._known = np.zeros(len(space), dtype=bool)

    def resample(self, words: Ids, uniform: NDArray[np.floating]) -> Ids:
        """Replace (m,) rows of the vocabulary, by (m,) numbers in [0, 1), one for each."""
        ranks = np.searchsorted(self._cumulative, uniform, side="right")
        # The sum of the weights may be rounded to less than 1.
        ranks = np.minimum(ranks, len(self._cumulative) - 1)
        moved = np.flatnonzero(ranks)
        self._rank_around(np.unique(words[moved]))
        result = words.copy()
        result[moved] = self._lists[words[moved], ranks[moved]]
        return result

    def _rank_around(self, words: Ids) -> None:
        """Make the lists of those words that have none, nearest first, ties by row."""
        missing, count = words[~self._known[words]], self._lists.shape[1]
        step = max(1, BLOCK_BYTES // (8 * len(self._space)))
        for start in range(0, len(missing), step):
            block = missing[start : start + step]
            distances = self._space.distances(block)
            # Before those at the same place.
            distances[np.arange(len(block)), block] = -1.0
            for word, row in zip(block, distances, strict=True):
                near = np.flatnonzero(row <= np.partition(row, count - 1)[count - 1])
                self._lists[word] = near[np.argsort(row[near], kind="stable")[:count]]
            self._known[block] = True


class NoiseMechanism(Mechanism):
    """Finds the word nearest to a noisy point, and releases it or one of its neighbours.

    Args:
        space: Where the words lie.
        epsilon: ε > 0.
        resample: c > 0: the i-th nearest neighbour of the word found is released with a
            probability ∝ exp(−c·ε·i) (Asghar et al., 2024). None: the word found is. The guarantee
            is the same.
        resample_neighbours: k: i runs from 0, the word itself, to k.
    """

    options: ClassVar[tuple[str, ...]] = RESAMPLING

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        resample: float | None = None,
        resample_neighbours: int = NEIGHBOURS,
    ) -> None:
        super().__init__(space, epsilon)
        if resample is not None:
            require_positive(resample=resample)
        require_at_least(1, resample_neighbours=resample_neighbours)
        self.resample = None if resample is None else float(resample)
        self.resample_neighbours = int(resample_neighbours)

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters that decide what is drawn: those of resampling only if it is done."""
        unused = RESAMPLING if self.resample is None else ()
        return {name: value for name, value in self.parameters.items() if name not in unused}

    @lazy_property
    def _neighbours(self) -> NeighbourRanks | None:
        if self.resample is None:
            return None
        return NeighbourRanks(self.space, self.resample * self.epsilon, self.resample_neighbours)

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        found = self._find(ids, streams, positions)
        if self._neighbours is None:
            return found
        return self._neighbours.resample(found, streams.draw(uniforms, positions))

    @abstractmethod
    def _find(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        """Find the nearest word to a noisy point for each id."""

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        if self.resample is None:
            return ()
        resampled = (
            f"The {noun.one} found is replaced by its i-th nearest neighbour with a probability ∝ "
            f"exp(-{self.resample:g}·ε·i), i up to {self.resample_neighbours}, which changes the "
            "output, not the guarantee: the neighbours are public."
        )
        return (Disclosure(resampled),)


L = TypeVar("L", bound="MultivariateLaplace")


class MultivariateLaplace(NoiseMechanism):
    """Multivariate Laplace noise, "Madlib" (Feyisetan et al., WSDM 2020, Algorithm 1).

    Noise of density ∝ exp(−ε‖z‖₂) is added to the word's vector; the nearest word in L2 is
    released. ε per unit of Euclidean distance.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0.
        index: "flat" searches exactly. Any other kind is that of the space's own index, which may
            find another word; the guarantee is the same.
        resample: c > 0: the i-th nearest neighbour of the word found is released with a
            probability ∝ exp(−c·ε·i) (Asghar et al., 2024). None: the word found is.
        resample_neighbours: k: i runs from 0, the word itself, to k.

    Raises:
        InvalidValueError: If the space has no index of that kind.
    """

    name = "laplace"
    metrics = ("euclidean",)
    options: ClassVar[tuple[str, ...]] = ("index", *RESAMPLING)

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        index: str = FLAT,
        resample: float | None = None,
        resample_neighbours: int = NEIGHBOURS,
    ) -> None:
        super().__init__(space, epsilon, resample, resample_neighbours)
        if not isinstance(index, str):
            raise InvalidTypeError(f"expected index to be a string such as 'flat', got {index!r}")
        found = None if space.index is None else space.index.kind
        if index not in (FLAT, found):
            has = "none" if found is None else f"one of kind {found!r}"
            raise InvalidValueError(
                f"index={index!r} needs a space with that index, this one has {has}; make one with "
                f"space.build_index({index!r}), load a space that was saved with one by "
                f"EmbeddingSpace.from_pretrained(..., index={index!r}), or search exactly with "
                "index='flat'"
            )
        self.index = index

    def to(self: L, device: str) -> L:
        """Return this mechanism, searching on another device; refused with an index."""
        if device != CPU and self.index != FLAT:
            raise InvalidValueError(
                f"index={self.index!r} is searched by faiss on the processor; take index='flat' "
                f"with device={device!r}, or device='cpu'"
            )
        return super().to(device)

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters without the index, which is a function of the noisy vector.

        Noise of another precision is other noise, of which a seed must not tell the same twice.
        """
        own = {name: value for name, value in super().noise_parameters.items() if name != "index"}
        return own | {"dtype": "float64"} if self.space.dim <= FEW_DIMENSIONS else own

    @lazy_property
    def _search_vectors(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.space.vectors, dtype=np.float32)

    @lazy_property
    def _nearest(self) -> Search:
        if self.index != FLAT and self.space.index is not None:
            return self.space.index.search
        if self.device != CPU:
            return TorchEuclidean(self._search_vectors, self.device).nearest
        return ExactSearch(self._search_vectors).nearest

    @lazy_property
    def _sample_noise(self) -> Sampler:
        dim = self.space.dim
        dtype = np.float64 if dim <= FEW_DIMENSIONS else np.float32
        return partial(multivariate_laplace, dim=dim, epsilon=self.epsilon, dtype=dtype)

    def _shape(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        return noise

    def sample_repeatedly(self, ids: ArrayLike, runs: int, rng: np.random.Generator) -> Ids:
        """Draw several outputs for each input word, all words under the same `runs` noises."""
        if self.index != FLAT:
            return super().sample_repeatedly(ids, runs, rng)
        require_at_least(1, runs=runs)
        noise = self._shape(self._sample_noise(rng, runs))
        found = nearest_to_sums(self.space.points(self._checked(ids)), noise, self._search_vectors)
        if self._neighbours is None:
            return found
        resampled = self._neighbours.resample(found.ravel(), uniforms(rng, found.size))
        return resampled.reshape(found.shape)

    def _find(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        noisy = self.space.points(ids)
        noisy += self._shape(streams.draw(self._sample_noise, positions))
        return self._nearest(noisy)

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        if self.index == FLAT:
            return super()._disclosures(noun)
        approximate = (
            f"The nearest {noun.one} is searched approximately (index {self.index!r}), which "
            "changes the output, not the guarantee: the index is fixed."
        )
        return (Disclosure(approximate), *super()._disclosures(noun))


class Mahalanobis(MultivariateLaplace):
    """Laplace noise stretched along the vocabulary's covariance (Xu et al., PrivateNLP 2020).

    With Σ the covariance of the vocabulary scaled to trace n and A = λΣ + (1−λ)I, noise A^½·z
    replaces z. ε per unit of the regularized Mahalanobis norm sqrt(xᵀA⁻¹x). λ=0 is
    `MultivariateLaplace`, word for word on the same stream.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0.
        lam: λ in [0, 1].
        index: As for `MultivariateLaplace`; the search is in L2 here too.
        resample: As for `MultivariateLaplace`; neighbours are those in L2 here too.
        resample_neighbours: As for `MultivariateLaplace`.
    """

    name = "mahalanobis"
    options = ("lam", "index", *RESAMPLING)

    def __init__(
        self,
        space: EmbeddingSpace,
        epsilon: float,
        lam: float = 0.5,
        index: str = FLAT,
        resample: float | None = None,
        resample_neighbours: int = NEIGHBOURS,
    ) -> None:
        super().__init__(space, epsilon, index, resample, resample_neighbours)
        require_within(0.0, 1.0, lam=lam)
        self.lam = float(lam)
        # A covariance that will not do is refused here, not in the middle of a data set.
        self._norm  # noqa: B018

    @lazy_property
    def _norm(self) -> RegularizedMahalanobis:
        return regularized_mahalanobis(self.space.vectors, self.lam)

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return f"regularized Mahalanobis distance (λ = {self.lam:g})"

    @property
    def space_epsilon(self) -> float:
        """ε/√(λξ+1−λ), which is proven for the Euclidean distance."""
        return self.certified_epsilon * self._norm.euclidean_factor

    @property
    def diameter(self) -> float:
        """The Euclidean bound of the diameter times the largest stretch of the norm."""
        return super().diameter * self._norm.euclidean_factor

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) distances in the regularized Mahalanobis norm."""
        return self._norm.norm(self.space.points(ids_a) - self.space.points(ids_b))

    @lazy_property
    def _whitened(self) -> EmbeddingSpace:
        vectors = (self.space.vectors @ self._norm.inverse_root).astype(np.float32)
        return EmbeddingSpace.from_vectors(self.space.words, vectors)

    def neighbour_distances(self) -> Mapping[int, float]:
        """Median distance to the 1st, 10th, 100th neighbour in the Mahalanobis norm."""
        return self._whitened.neighbour_distances()

    def _shape(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        # λ=0 is exactly the identity; a product with a rounded one would change the last bits.
        return noise if self.lam == 0.0 else noise @ self._norm.root

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        euclidean = upward(self.space_epsilon)
        same = f"For the Euclidean distance the same release is {euclidean}·d-private."
        return (Disclosure(same), *super()._disclosures(noun))


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
        resample: As for `MultivariateLaplace`.
        resample_neighbours: As for `MultivariateLaplace`.

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
        return PoincareSearch(points, gaps).nearest

    def _sample_noise(self, rng: np.random.Generator, size: int) -> Reals:
        radius = riemannian_laplace_radius if self.noise == "riemannian" else lebesgue_radius
        radii = radius(rng, size, self.space.dim, self.epsilon * self.space.scale)
        return ball_points(rng, radii, self.space.dim)

    def _find(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        noise = streams.draw(self._sample_noise, positions).astype(np.float64, copy=False)
        return self._nearest(mobius_add(self.space.points(ids), noise))

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        if self.noise == "riemannian":
            return super()._disclosures(noun)
        dearer = (
            f"The paper's noise at nominal ε = {self.epsilon:g} is certified at ε + n/scale only: "
            "its density refers to Lebesgue measure, which hyperbolic translation does not keep."
        )
        return (Disclosure(dearer), *super()._disclosures(noun))

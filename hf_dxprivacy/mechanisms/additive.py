"""Mechanisms that add noise to a word's vector and release the nearest word.

Finding the nearest word is a fixed function of the noisy vector, so it costs no privacy.
"""

from functools import cached_property, partial
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantees import upward
from hf_dxprivacy.mechanisms.noisy import NEIGHBOURS, RESAMPLING, NoiseMechanism, Search
from hf_dxprivacy.mechanisms.resampling import uniforms
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import Law, RowStreams
from hf_dxprivacy.search import nearest_euclidean, nearest_to_sums
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.search.torch_search import TorchEuclidean
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.mahalanobis import RegularizedMahalanobis, regularized_mahalanobis

# Exact search, which needs no index.
FLAT = "flat"

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
        resample: c > 0 to draw from the neighbours of the word found, as `NoiseMechanism` says.
        resample_neighbours: How many neighbours.

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
        _require_index(space, index)
        self.index = index

    def to(self: L, device: str) -> L:
        """Return this mechanism, searching on another device; see `Mechanism.to`.

        Raises:
            InvalidValueError: If there is no such device, or the search is by an index.
        """
        if device != CPU and self.index != FLAT:
            raise InvalidValueError(
                f"index={self.index!r} is searched by faiss on the processor; take index='flat' "
                f"with device={device!r}, or device='cpu'"
            )
        return super().to(device)

    @property
    def law(self) -> dict[str, float | str | None]:
        """The parameters without the index, which is a function of the noisy vector."""
        return {name: value for name, value in super().law.items() if name != "index"}

    @cached_property
    def _search_vectors(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.space.vectors, dtype=np.float32)

    @cached_property
    def _nearest(self) -> Search:
        if self.index != FLAT and self.space.index is not None:
            return self.space.index.search
        if self.device != CPU:
            return TorchEuclidean(self._search_vectors, self.device).nearest
        return partial(nearest_euclidean, vectors=self._search_vectors)

    @property
    def _law(self) -> Law:
        return partial(multivariate_laplace, dim=self.space.dim, epsilon=self.epsilon)

    def _shape(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        return noise

    def sample_repeatedly(
        self, ids: ArrayLike, runs: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw several outputs for each input word, all words under the same `runs` noises."""
        if self.index != FLAT:
            return super().sample_repeatedly(ids, runs, rng)
        _validate.at_least(1, runs=runs)
        noise = self._shape(self._law(rng, runs))
        found = nearest_to_sums(self.space.points(self._checked(ids)), noise, self._search_vectors)
        if self._neighbours is None:
            return found
        resampled = self._neighbours.resample(found.ravel(), uniforms(rng, found.size))
        return resampled.reshape(found.shape)

    def _find(
        self, ids: NDArray[np.int64], streams: RowStreams, positions: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        noisy = self.space.points(ids)
        noisy += self._shape(streams.draw(self._law, positions))
        return self._nearest(noisy)

    def _assumptions(self) -> tuple[str, ...]:
        if self.index == FLAT:
            return super()._assumptions()
        return (
            f"The nearest word is searched approximately (index {self.index!r}), which changes the "
            "output, not the guarantee: the index is fixed.",
            *super()._assumptions(),
        )


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
        resample_neighbours: How many neighbours.
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
        _validate.within(0.0, 1.0, lam=lam)
        self.lam = float(lam)
        # A covariance that will not do is refused here, not in the middle of a data set.
        self._norm  # noqa: B018

    @cached_property
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

    def pair_distances(
        self, ids_a: NDArray[np.int64], ids_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return (m,) distances in the regularized Mahalanobis norm."""
        difference = self.space.points(ids_a) - self.space.points(ids_b)
        return self._norm.norm(difference)

    @cached_property
    def _whitened(self) -> EmbeddingSpace:
        vectors = (self.space.vectors @ self._norm.inverse_root).astype(np.float32)
        return EmbeddingSpace.from_vectors(self.space.words, vectors)

    def neighbour_distances(self) -> dict[int, float]:
        """Median distance to the 1st, 10th, 100th neighbour in the Mahalanobis norm."""
        return dict(self._whitened.neighbour_distances())

    def _shape(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        # λ=0 is exactly the identity; a product with a rounded one would change the last bits.
        return noise if self.lam == 0.0 else noise @ self._norm.root

    def _assumptions(self) -> tuple[str, ...]:
        euclidean = upward(self.space_epsilon)
        return (
            f"For the Euclidean distance the same release is {euclidean}·d-private.",
            *super()._assumptions(),
        )


def _require_index(space: EmbeddingSpace, kind: str) -> None:
    if not isinstance(kind, str):
        raise InvalidTypeError(f"expected index to be a string such as 'flat', got {kind!r}")
    found = None if space.index is None else space.index.kind
    if kind not in (FLAT, found):
        has = "none" if found is None else f"one of kind {found!r}"
        raise InvalidValueError(
            f"index={kind!r} needs a space with that index, this one has {has}; make one with "
            f"space.build_index({kind!r}), load a space that was saved with one by "
            f"EmbeddingSpace.from_pretrained(..., index={kind!r}), or search exactly with "
            "index='flat'"
        )

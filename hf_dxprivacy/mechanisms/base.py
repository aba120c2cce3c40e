"""Abstract base classes of the mechanisms: the contract of sampling and of the guarantee."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._runtime import CPU, SetOnce, lazy_property
from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    a_kind,
    require_at_least,
    require_positive,
    require_within,
)
from hf_dxprivacy.guarantee import ALWAYS, WORD, Disclosure, Noun, PrivacyGuarantee
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.spaces import EmbeddingSpace

# With a smaller ε noise would leave the range of single precision; no use of one is known.
SMALLEST_EPSILON = 1e-30

# Words, evenly spaced in row order, that show whether nearly every word stays, and what that means.
PROBED_WORDS = 50
NEARLY_ALWAYS = 0.99

# Bytes of one block of distances (words by vocabulary).
BLOCK_BYTES = 1 << 24


# Rows of the vocabulary, −1 for words out of it; and numbers.
Ids = NDArray[np.int64]
Reals = NDArray[np.float64]

M = TypeVar("M", bound="Mechanism")


@dataclass(frozen=True)
class Calibration:
    """An inverse temperature s and its exact privacy level ε*(s)."""

    inverse_temperature: float
    level: float


class Mechanism(SetOnce, ABC):
    """A random map from words to words of one space, private for a metric on the words.

    The inputs are the words of the space and one symbol that stands for everything out of
    vocabulary (id −1), placed at the space's centroid unless the mechanism has a metric of its own.
    The outputs are the words of the space.

    Args:
        space: Where the words lie.
        epsilon: ε > 0, per unit of the metric that the guarantee names. There is no default.

    Raises:
        InvalidTypeError: If `space` is not an `EmbeddingSpace` or ε is not a number.
        InvalidValueError: If ε is not finite and above zero, or the space's metric does not suit.
    """

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ("euclidean", "poincare")
    options: ClassVar[tuple[str, ...]] = ()
    # Whether ε counts per unit of a metric that has nothing to do with distances of the space.
    own_metric: ClassVar[bool] = False
    # How many words are worked on at once; bounds the memory of one step.
    chunk: ClassVar[int] = 4096
    # The paper of a mechanism that is here to be compared with; None for those to be used.
    paper: ClassVar[str | None] = None

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        if not isinstance(space, EmbeddingSpace):
            raise InvalidTypeError(
                f"expected space to be an EmbeddingSpace, got {a_kind(space)}; make one with "
                "EmbeddingSpace.from_pretrained or .from_vectors"
            )
        require_positive("smaller hides more; with 'hierarchical' begin with 1.5", epsilon=epsilon)
        require_within(
            SMALLEST_EPSILON, math.inf, "rescale the space to larger distances", epsilon=epsilon
        )
        if space.metric not in self.metrics:
            raise InvalidValueError(
                f"mechanism {self.name!r} needs a space with the metric "
                f"{' or '.join(map(repr, self.metrics))}, got {space.metric!r}; "
                "'tem' and 'calibrated' work for every metric"
            )
        self.space = space
        self.epsilon = float(epsilon)
        self.device = CPU

    @classmethod
    def suits(cls, space: EmbeddingSpace) -> bool:
        """Tell whether the mechanism can be made over a space, at some ε."""
        return space.metric in cls.metrics

    def __getstate__(self) -> dict[str, Any]:
        # Only the decisions travel, and a calibration, which takes long; the rest is made again.
        kept = ("space", "epsilon", "device", *self.options, "_calibration", "_extent")
        return {name: vars(self)[name] for name in kept if name in vars(self)}

    def to(self: M, device: str) -> M:
        """Return this mechanism, with its search or its distances computed on another device.

        The law is the same, and noise is drawn on the processor from the same source. So the
        device is no parameter, and is not stored.

        Args:
            device: "cpu", "cuda", or "cuda:1" for the second GPU. It is opened when it is first
                used, in each process anew.

        Raises:
            InvalidTypeError: If it is not a string.
            InvalidValueError: If there is no such device.
            MissingExtraError: If torch is needed and not installed.
        """
        from hf_dxprivacy._devices import check_device

        check_device(device)
        moved = copy.copy(self)
        vars(moved)["device"] = device
        return moved

    @property
    def parameters(self) -> dict[str, float | str | None]:
        """The mechanism's name, ε and options, as JSON-ready values."""
        values = {name: self.__dict__[name] for name in ("epsilon", *self.options)}
        return {"mechanism": self.name, **values}

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters that decide what is drawn, to which seeded noise is bound.

        Noise of another law is independent of it: two releases with one noise would cancel it out.
        """
        return self.parameters

    def sample(self, ids: ArrayLike, rng: np.random.Generator | RowStreams) -> Ids:
        """Draw one output word for each input word, independently.

        Args:
            ids: (m,) integers, rows of the space's vocabulary; −1 means out of vocabulary.
            rng: Source of randomness; see `hf_dxprivacy.randomness`.

        Returns:
            (m,) int64, rows of the space's vocabulary.

        Raises:
            InvalidTypeError: If `ids` is not an array of integers, or `rng` no generator.
            InvalidValueError: If an id is not in −1 … V−1, or the streams are for another number
                of words.
        """
        checked = self._checked(ids)
        if isinstance(rng, np.random.Generator):
            streams = RowStreams([rng], [len(checked)])
        elif not isinstance(rng, RowStreams):
            raise InvalidTypeError(
                f"expected rng to be a numpy.random.Generator, got a {type(rng).__name__}; "
                "hf_dxprivacy.randomness.process_generator() makes one"
            )
        elif len(rng) != len(checked):
            raise InvalidValueError(
                f"expected streams for {len(checked)} words, got streams for {len(rng)}"
            )
        else:
            streams = rng
        drawn = np.empty(len(checked), dtype=np.int64)
        for positions in streams.chunks(self.chunk):
            drawn[positions] = self._draw(checked[positions], streams, positions)
        return drawn

    def sample_repeatedly(self, ids: ArrayLike, runs: int, rng: np.random.Generator) -> Ids:
        """Draw several outputs for each input word, for statistics of single words.

        The draws of one word are independent. Those of different words need not be: some
        mechanisms use the same noise for all words, at a fraction of the cost. Never release them.

        Args:
            ids: (m,) integers, as for `sample`.
            runs: Draws for each word, at least 1.
            rng: Source of randomness.

        Returns:
            (m, runs) int64, rows of the space's vocabulary.
        """
        require_at_least(1, runs=runs)
        return self.sample(np.repeat(self._checked(ids), runs), rng).reshape(-1, runs)

    @abstractmethod
    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        """Draw one output for each id; `positions` says which words of the streams they are."""

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return self.space.metric_name

    @property
    def certified_epsilon(self) -> float:
        """The ε that is proven, per unit of `metric`; some mechanisms need more than they name."""
        return self.epsilon

    @property
    def space_epsilon(self) -> float:
        """The ε that is proven per unit of the space's own distance, to compare mechanisms by."""
        return self.certified_epsilon

    @property
    def space_metric(self) -> str:
        """The metric of `space_epsilon`, told apart from any other; ε in one of them add up."""
        name = self.metric if self.own_metric else self.space.metric_name
        return f"{name} in the space {self.space.digest[:12]}"

    @property
    def diameter(self) -> float:
        """An upper bound of the metric of the guarantee over all pairs of inputs."""
        return 2.0 * self.space.radius

    @property
    def local_epsilon(self) -> float:
        """The ε that is proven as pure local DP, for any two inputs; ε·`diameter` at the most."""
        return self.certified_epsilon * self.diameter

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) float64 distances in the metric of the guarantee, pair by pair."""
        return self.space.pair_distances(ids_a, ids_b)

    def neighbour_distances(self) -> Mapping[int, float]:
        """Median distance to the 1st, 10th, 100th neighbour, in the metric of the guarantee."""
        return self.space.neighbour_distances()

    def word_bound(self, word_a: str, word_b: str) -> float:
        """Return ε·d for two words; one that is not in the space is the unknown word."""
        ids = self.space.ids([word_a, word_b])
        return self.id_bound(ids[:1], ids[1:])

    def id_bound(self, ids_a: Ids, ids_b: Ids) -> float:
        """Return Σ ε·d over pairs of ids, where ε·d is not more than `local_epsilon`."""
        bounds = self.certified_epsilon * self.pair_distances(ids_a, ids_b)
        return float(np.minimum(bounds, self.local_epsilon).sum())

    def unknown_input(self, noun: Noun = WORD) -> str:
        """Return where the input that stands for all out of vocabulary is, for statements."""
        if self.own_metric:
            return f"which becomes any {noun.one} of the {noun.space} with the same probability"
        return f"at the centroid of the {noun.space}"

    @lazy_property
    def _caution(self) -> str | None:
        """`caution`, with places for a noun."""
        return None

    @property
    def caution(self) -> str | None:
        """Warning text if outputs equal inputs with probability of 0.99 or more, else None."""
        return self._caution and self._caution.format(WORD)

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        return ()

    def disclosures(self, noun: Noun = WORD) -> tuple[Disclosure, ...]:
        """Return what the guarantee rests on, of words or of what stands in their place."""
        found, commit = [*ALWAYS[noun], *self._disclosures(noun)], self.space.commit
        if self.paper is not None:
            found.insert(0, Disclosure(f"For comparison: a mechanism of {self.paper}."))
        if self._caution is not None:
            found.insert(0, Disclosure(f"WARNING: {self._caution.format(noun)}.", "warning"))
        if commit is not None:
            origin = f"{commit.repo_id} at commit {commit.sha}"
            found.append(Disclosure(f"The {noun.space} is {origin}."))
        return tuple(found)

    @lazy_property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for one word."""
        epsilon, local = self.certified_epsilon, self.local_epsilon
        return PrivacyGuarantee(
            epsilon=epsilon,
            metric=self.metric,
            ldp_epsilon=local,
            neighbour_epsilon={
                k: min(epsilon * d, local) for k, d in self.neighbour_distances().items()
            },
            disclosures=self.disclosures(),
            log_ratio_bound=self.word_bound,
        )

    def _checked(self, ids: ArrayLike) -> Ids:
        array = np.asarray(ids)
        if array.size == 0:
            return np.empty(0, dtype=np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidTypeError(
                "expected ids to be a 1-D array of integers, "
                f"got {array.ndim}-D of {array.dtype}; EmbeddingSpace.ids makes one from words"
            )
        low, high, last = int(array.min()), int(array.max()), len(self.space.words) - 1
        if low < -1 or high > last:
            raise InvalidValueError(
                f"expected ids from -1 (out of vocabulary) to {last}, got {low} to {high}"
            )
        return array.astype(np.int64, copy=False)


class ExactMechanism(Mechanism):
    """A mechanism with a known law: the probability of every output is worked out."""

    @abstractmethod
    def _laws(self, ids: Ids) -> Reals:
        """Return the law of the output for each of a few inputs, (m, V)."""

    def probabilities(self, ids: ArrayLike) -> Reals:
        """Return the exact law of the output for each input.

        Args:
            ids: (m,) integers; −1 means out of vocabulary.

        Returns:
            (m, V) float64; each row adds up to 1.
        """
        checked = self._checked(ids)
        rows = np.empty((len(checked), len(self.space)))
        step = max(1, BLOCK_BYTES // (8 * len(self.space)))
        for start in range(0, len(checked), step):
            rows[start : start + step] = self._laws(checked[start : start + step])
        return rows

    @lazy_property
    def _caution(self) -> str | None:
        """See base class; by the exact law of some words of the space."""
        probed = np.linspace(0, len(self.space) - 1, PROBED_WORDS).astype(np.int64)
        stays = float(self.probabilities(probed)[np.arange(len(probed)), probed].mean())
        if stays < NEARLY_ALWAYS:
            return None
        return (
            f"at ε = {self.epsilon:g} nearly every {{0.one}} of this {{0.space}} stays as it is, "
            f"with probability {stays:.4f} on average over {len(probed)} {{0.many}}. {self._remedy}"
        )

    @property
    def _remedy(self) -> str:
        return "Take a smaller ε"


class ExponentialLaw(ExactMechanism):
    """A mechanism with the law P(y|x) = exp(−s·d(x, y))/Z(x), in the metric of its guarantee.

    By the triangle inequality the log-ratio of two words is largest at one of them, so that the
    exact privacy level is s + max |ln Z(x) − ln Z(x')|/d(x, x').
    """

    _calibration: Calibration

    @property
    def inverse_temperature(self) -> float:
        """s, the slope of the log-probability per unit of distance."""
        return self._calibration.inverse_temperature

    def exact_epsilon(self, progress: bool = False) -> float:
        """Return the true privacy level ε* of this mechanism, over all pairs of inputs.

        The least ε* for which it is ε*·d-private, bounded upward for rounding.

        Args:
            progress: Show a bar if it takes long.
        """
        del progress
        return self._calibration.level

    @abstractmethod
    def output_distances(self, ids: Ids) -> Reals:
        """Return (m, V) distances from inputs to all words, in the metric of the guarantee."""

    def _laws(self, ids: Ids) -> Reals:
        rows = self.output_distances(ids)
        # The unknown word is at no output, and no weight may round to 0 for all of them.
        rows -= rows.min(axis=1, keepdims=True)
        np.exp(np.multiply(-self.inverse_temperature, rows, out=rows), out=rows)
        rows /= rows.sum(axis=1, keepdims=True)
        return rows

    def weights(self, ids: Ids) -> Reals:
        """Return (m, V) exp(−s·d) of words and all words; symmetric, unlike the law itself."""
        weights: Reals = np.exp(-self.inverse_temperature * self.output_distances(ids))
        return weights

    def weighted_sums(self, values: Reals, ids: Ids) -> Reals:
        """Return (m,) sums Σ_x values(x)·exp(−s·d(x, y)) over all words x, for words y.

        With ones that is Z(y); with π(x)/Z(x) the probability that y comes out.

        Args:
            values: (V,) float64, not negative.
            ids: (m,) rows.
        """
        sums = np.empty(len(ids))
        step = max(1, BLOCK_BYTES // (8 * len(self.space)))
        for start in range(0, len(ids), step):
            sums[start : start + step] = self.weights(ids[start : start + step]) @ values
        return sums

    @lazy_property
    def normalizers(self) -> Reals:
        """(V,) Z of each word; for mechanisms over distances in time quadratic in V."""
        size = len(self.space)
        return self.weighted_sums(np.ones(size), np.arange(size))

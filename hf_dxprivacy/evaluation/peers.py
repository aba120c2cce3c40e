"""SanText, Vickrey and 1-Diffractor: mechanisms of other papers, to compare with.

Their guarantee is finite; those of `peer_candidates` is not. What each paper claims and what holds
is in docs/peers.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import require_at_least, require_within
from hf_dxprivacy.guarantee import WORD, Disclosure, Noun
from hf_dxprivacy.mechanisms.base import ExactMechanism, Ids, Mechanism, Reals
from hf_dxprivacy.mechanisms.exponential import LARGEST_EXPONENT, TruncatedExponential
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import RowStreams, Sampler, uniforms
from hf_dxprivacy.search import two_nearest
from hf_dxprivacy.search.knn import squared_norms
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.distances import sample_rows
from hf_dxprivacy.spaces.stored_space import SpaceCache


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
        return self.space.metric_name


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


T = TypeVar("T")


# What mechanisms make of the words of a space and its copies, by their names.
_KEPT: WeakKeyDictionary[SpaceCache, dict[str, Any]] = WeakKeyDictionary()


class ListedWords(ExactMechanism):
    """A mechanism over an arrangement of the words, in which the unknown word is one of them."""

    metrics = ("euclidean",)
    own_metric = True

    def unknown_input(self, noun: Noun = WORD) -> str:
        """See `Mechanism.unknown_input`."""
        return f"which is taken for the {noun.one} nearest to the centroid of the {noun.space}"

    @lazy_property
    def _home(self) -> int:
        return int(self.space.distances(np.array([-1]))[0].argmin())

    def _kept(self, what: str, make: Callable[[], T]) -> T:
        """Return what is made of the words, whatever ε is, and remembered beside the space."""
        known: dict[str, T] = _KEPT.setdefault(self.space.cache, {})
        if (name := f"{self.name} {what}") not in known:
            known[name] = make()
        return known[name]

    def _taken(self, ids: Ids) -> Ids:
        return np.where(np.asarray(ids) < 0, self._home, ids)


# Where double precision ends; a larger probability for an output never breaks a bound.
LEAST = float(np.exp(-LARGEST_EXPONENT))
# Words of a part of a list that is not halved any more.
PART = 8
# Version of the lists and of the mapping from noise to words; see `hierarchical.SAMPLER`.
SAMPLER = 1


class Diffractor(ListedWords):
    """1-Diffractor (Meisenbacher, Chevli, Matthes, IWSPA 2024), with two-sided geometric noise.

    The words stand in several public lists. One list is chosen at random, and k with
    Pr[k] ∝ exp(−ε|k|) is added to the word's place in it; beyond its ends, the word at the end is
    released. With one list that is ε-private per place, as the noise is, since clamping is
    post-processing. With several, each probability is a mean over the lists, and so ε-private per
    unit of the largest distance in any list. The paper makes its lists from several embeddings;
    here they are made from the vectors of the space, each by halving it again and again along the
    line between two far words. Their places are exact, the same on every machine.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0, per place.
        lists: How many lists, at least 1.
    """

    name = "diffractor"
    paper = "Meisenbacher et al. 2024"
    options = ("lists",)

    def __init__(self, space: EmbeddingSpace, epsilon: float, lists: int = 5) -> None:
        super().__init__(space, epsilon)
        require_at_least(1, lists=lists)
        self.lists = int(lists)

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters and the version of the lists."""
        return {**super().noise_parameters, "sampler": SAMPLER}

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        if self.lists == 1:
            return "the distance of the places in a public list"
        return f"the largest distance of the places in {self.lists} public lists"

    @property
    def diameter(self) -> float:
        """V−1, from the first word of a list to its last."""
        return len(self.space) - 1.0

    @lazy_property
    def _orders(self) -> Ids:
        # Whole numbers, whose products are exact.
        largest = float(np.abs(self.space.vectors).max()) or 1.0
        points = np.rint(self.space.vectors.astype(float) * (1023.0 / largest))
        return np.stack(
            [self._kept(str(n), partial(_halved, points, n)) for n in range(self.lists)]
        )

    @lazy_property
    def _places(self) -> Ids:
        return np.argsort(self._orders, axis=1)

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) largest distances of two words in any list."""
        a, b = self._taken(ids_a), self._taken(ids_b)
        farthest = np.zeros(np.shape(a))
        for places in self._places:
            np.maximum(farthest, np.abs(places[a] - places[b]), out=farthest)
        return farthest

    def neighbour_distances(self) -> dict[int, float]:
        """Median of it to the 1st, 10th, 100th neighbour, over all words or 1,000 of them."""
        every = np.arange(len(self.space))
        ranks = [min(k, len(every) - 1) for k in (1, 10, 100)]
        rows = (self.pair_distances(every * 0 + row, every) for row in sample_rows(len(every)))
        near = [np.partition(distances, ranks)[ranks] for distances in rows]
        return dict(zip((1, 10, 100), np.median(near, axis=0).tolist(), strict=True))

    def _laws(self, ids: Ids) -> Reals:
        at, stays = np.arange(len(self.space)), np.tanh(self.epsilon / 2.0)
        rows = np.zeros((len(ids), len(at)))
        for order, places in zip(self._orders, self._places, strict=True):
            away = np.abs(at - places[self._taken(ids)][:, None])
            law = np.exp(-self.epsilon * away) * stays
            # All that would go beyond an end.
            law[:, [0, -1]] /= -np.expm1(-self.epsilon)
            rows[:, order] += law if len(at) > 1 else 1.0
        return np.maximum(rows / self.lists, LEAST)

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        chosen, side, size = streams.draw(lambda rng, m: rng.random((m, 3)), positions).T
        lists, stays = (chosen * self.lists).astype(np.int64), np.tanh(self.epsilon / 2.0)
        last = len(self.space) - 1
        steps = np.minimum(np.ceil(-np.log1p(-size) / self.epsilon), last).astype(np.int64)
        steps = np.where(side < stays, 0, np.where(side < (1.0 + stays) / 2.0, -steps, steps))
        places = np.clip(self._places[lists, self._taken(ids)] + steps, 0, last)
        drawn: Ids = self._orders[lists, places]
        return drawn

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        return (Disclosure(f"The lists are public, made from the vectors of the {noun.space}."),)


def _halved(vectors: Reals, number: int) -> Ids:
    """Return the rows of (V, n) vectors in an order with near ones near each other."""
    order, parts = np.arange(len(vectors)), [(0, len(vectors))]
    norms = squared_norms(vectors)
    while parts:
        start, stop = parts.pop()
        part = order[start:stop]
        points, squared = vectors[part], norms[part]
        # Far from a word that is another one in each list, and far from that.
        one = points[7919 * (number + 1) % len(part)]
        two = points[(squared - points @ (2.0 * one)).argmax()]
        one = points[(squared - points @ (2.0 * two)).argmax()]
        order[start:stop] = part[np.argsort(points @ (one - two), kind="stable")]
        if len(part) > PART:
            middle = (start + stop) // 2
            parts += [(start, middle), (middle, stop)]
    return order

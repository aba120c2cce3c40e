"""CusText, SynTF and truncated Gumbel noise: mechanisms of other papers, to compare with.

Each draws from a few candidates of a word. Where words have different candidates an output can rule
a word out for certain, and no ε bounds that: their guarantees say so. See docs/peers.md.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial

import numpy as np

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_one_of
from hf_dxprivacy.evaluation.peers import Diffractor, ListedWords, SanText, Vickrey
from hf_dxprivacy.mechanisms import MECHANISMS
from hf_dxprivacy.mechanisms.base import BLOCK_BYTES, Ids, Mechanism, Reals
from hf_dxprivacy.randomness import RowStreams, uniforms
from hf_dxprivacy.search.knn import squared_norms
from hf_dxprivacy.spaces import EmbeddingSpace

# Candidates, and their probabilities.
Law = tuple[Ids, Reals]


class CandidateMechanism(ListedWords):
    """A mechanism whose law over a few candidates is worked out for each word, and kept."""

    chunk = 1 << 14
    # Between which words nothing is promised, with a place for what they are called.
    _apart: str

    @abstractmethod
    def _work_out(self, words: Ids) -> Iterator[Law]:
        """Yield the candidates of each word, (k,) rows, and their probabilities."""

    @lazy_property
    def _known(self) -> dict[int, Law]:
        return {}

    def _learn(self, words: Ids) -> dict[int, Law]:
        """Return the laws of all words so far, with those of these."""
        new = np.array([word for word in np.unique(words).tolist() if word not in self._known])
        if len(new):
            self._known.update(zip(new.tolist(), self._work_out(new), strict=True))
        return self._known

    def _laws(self, ids: Ids) -> Reals:
        rows, words = np.zeros((len(ids), len(self.space))), self._taken(ids)
        known = self._learn(words)
        for at, word in enumerate(words.tolist()):
            rows[at, known[word][0]] = known[word][1]
        return rows

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        words, uniform = self._taken(ids), streams.draw(uniforms, positions)
        order = np.argsort(words, kind="stable")
        starts = np.flatnonzero(np.diff(words[order], prepend=-1))
        drawn, known = np.empty(len(ids), dtype=np.int64), self._learn(words)
        for at in np.split(order, starts[1:]):
            candidates, law = known[int(words[at[0]])]
            sums = np.cumsum(law)
            # Never the total, beyond which there is no candidate.
            mass = np.minimum(uniform[at] * sums[-1], np.nextafter(sums[-1], 0.0))
            drawn[at] = candidates[np.searchsorted(sums, mass, side="right")]
        return drawn

    @lazy_property
    def _caution(self) -> str | None:
        """See base class; here that there is no finite guarantee, if so."""
        if math.isfinite(self.diameter):
            return None
        return (
            f"no finite guarantee between {self._apart}: what comes out of one can rule the other "
            "out for certain"
        )


class SetMechanism(CandidateMechanism):
    """The exponential mechanism in a set of words, with distances as parts of the largest one.

    Pr[M(w)=y] ∝ exp(−(ε/2)·d(w, y)/D(w)) for y in the set of w, D(w) being the largest d(w, y).
    The score is between 0 and 1; it and the sum cost ε/2 each, so that two words of one set have a
    log-ratio of at most ε.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0, between words that have the same set.
        k: How many words a set has, at least 2.
    """

    options = ("k",)

    def __init__(self, space: EmbeddingSpace, epsilon: float, k: int) -> None:
        super().__init__(space, epsilon)
        require_at_least(2, k=k)
        self.k = int(k)

    @property
    @abstractmethod
    def _sets(self) -> Ids:
        """(V,) number of the set of each word."""

    @abstractmethod
    def _members(self, number: int) -> Ids:
        """Return the words of a set."""

    @property
    def diameter(self) -> float:
        """1 if all words have one set, otherwise ∞."""
        return math.inf if (self._sets != self._sets[0]).any() else 1.0

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) 0 for the same word, 1 for words that have the same set, ∞ for others."""
        a, b = self._taken(ids_a), self._taken(ids_b)
        return np.where(a == b, 0.0, np.where(self._sets[a] == self._sets[b], 1.0, np.inf))

    def neighbour_distances(self) -> dict[int, float]:
        """Median distance to the 1st, 10th, 100th neighbour: 1, or ∞ in smaller sets."""
        sizes, last = np.bincount(self._sets)[self._sets], len(self._sets) - 1
        if not last:
            return dict.fromkeys((1, 10, 100), 0.0)
        near = (np.where(sizes > min(k, last), 1.0, np.inf) for k in (1, 10, 100))
        return dict(zip((1, 10, 100), map(float, map(np.median, near)), strict=True))

    def _work_out(self, words: Ids) -> Iterator[Law]:
        for word in words:
            members = self._members(int(self._sets[word]))
            distances = self.space.pair_distances(np.full(len(members), word), members)
            largest = float(distances.max()) or 1.0
            weights = np.exp(-self.epsilon / 2.0 * distances / largest)
            yield members, weights / weights.sum()


class CusText(SetMechanism):
    """CusText (Chen et al., Findings of ACL 2023): clusters of k words.

    The first word that is in no cluster yet forms one with the k−1 nearest that are not either, and
    so on, in row order (the most frequent first in most spaces); the last has up to 2k−1. The paper
    claims ε-local DP; it holds inside a cluster, and nothing between two. The clusters of its
    published code are made from the private texts; here they are public.

    Args:
        space: A Euclidean space.
        epsilon: ε > 0, inside a cluster.
        k: Words of a cluster, at least 2; 20 in the paper.
    """

    name = "custext"
    paper = "Chen et al. 2023"
    _apart = "{0.many} of different clusters"

    def __init__(self, space: EmbeddingSpace, epsilon: float, k: int = 20) -> None:
        super().__init__(space, epsilon, k)

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return f"0/1 distance inside a cluster of {self.k}, ∞ between clusters"

    @lazy_property
    def _sets(self) -> Ids:
        return self._kept(f"k={self.k}", self._clusters)

    def _clusters(self) -> Ids:
        points = self.space.points(np.arange(len(self.space))) - self.space.centroid
        rows, of, left = np.arange(len(points)), np.full(len(points), -1), len(points)
        norms = squared_norms(points)
        while left:
            if 2 * left <= len(rows):
                free = of[rows] < 0
                rows, points, norms = rows[free], points[free], norms[free]
            first = int(np.isfinite(norms).argmax())
            # Squared, up to what all have in common; the word itself comes first.
            away = norms - points @ (2.0 * points[first])
            away[first] = -np.inf
            size = self.k if left >= 2 * self.k else left
            found = _smallest(away, size)
            # Of those that are taken, the norm is ∞.
            of[rows[found]], norms[found], left = rows[first], np.inf, left - size
        return of

    def _members(self, number: int) -> Ids:
        return np.flatnonzero(self._sets == number)


class SynTF(SetMechanism):
    """SynTF of public code (after Weggenmann and Kerschbaum, SIGIR 2018): synonyms of a word.

    The candidates of a word are those of the smallest cluster of the space's tree around it that
    has k words or more; for synonyms of WordNet, make the tree from its relations. That holds ε
    between words of the same candidates, and nothing between others. The paper itself weighs the
    whole vocabulary, which is ε-local DP; restricted to synonyms, as public code has it, it is not.

    Args:
        space: A Euclidean space with a tree.
        epsilon: ε > 0, between words with the same candidates.
        k: Least number of candidates, at least 2.

    Raises:
        InvalidValueError: If the space has no tree.
    """

    name = "syntf"
    paper = "Weggenmann and Kerschbaum 2018"
    _apart = "{0.many} with different candidates"

    def __init__(self, space: EmbeddingSpace, epsilon: float, k: int = 5) -> None:
        super().__init__(space, epsilon, k)
        if space.hierarchy is None:
            raise InvalidValueError(
                "mechanism 'syntf' takes its synonyms from a tree, and this space has none; make "
                "one with space.build_hierarchy(), from public relations with relations="
            )

    @classmethod
    def suits(cls, space: EmbeddingSpace) -> bool:
        """Tell whether a space is Euclidean and has a tree."""
        return super().suits(space) and space.hierarchy is not None

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters and the tree; see `Hierarchical.noise_parameters`."""
        assert self.space.hierarchy is not None
        return {**super().noise_parameters, "tree": self.space.hierarchy.sha256}

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return f"0/1 distance between those with the same candidates ({self.k} or more), else ∞"

    @lazy_property
    def _sets(self) -> Ids:
        tree = self.space.hierarchy
        assert tree is not None
        of = tree.homes.astype(np.int64)
        while len(small := np.flatnonzero((tree.sizes[of] < self.k) & (tree.parents[of] >= 0))):
            of[small] = tree.parents[of[small]]
        return of

    def _members(self, number: int) -> Ids:
        assert self.space.hierarchy is not None
        return np.sort(self.space.hierarchy.members(number)).astype(np.int64)


# Numbers of candidates with less probability than this stay out: no draw ever has them.
NEVER = 1e-20
# Nodes of the integral between two candidates, and beyond the last.
NODES, LAST_NODES = 6, 60


class TruncatedGumbel(CandidateMechanism):
    """Truncated Gumbel mechanism (Xu, Feyisetan, Aggarwal, Xu, Teissier, FLAIRS 2021).

    K is drawn by a Poisson law of the mean ln V, given 1 ≤ K ≤ V. Gumbel noise of the scale b,
    given that it is between −Δ and Δ, is added to the distances of the K nearest words, the word
    itself among them; the least sum wins. With δ and Δ the least and the largest distance of two
    words, α = (ε − 2(1+ln V)/δ)/3 and b = 2Δ/min(W(2αΔ), ln(αδ)), W of Lambert. The paper claims
    ε·d. But a word of rank r needs K ≥ r, and ranks do not change as distances do: log-ratios of
    near words go beyond that (docs/errata.md), and in any implementation, which never draws a K of
    100, they are ∞. So no finite guarantee is stated.

    Args:
        space: A Euclidean space.
        epsilon: ε > (5 + 2·ln V)/δ, for which b exists; it only matters through two logarithms.

    Raises:
        InvalidValueError: If ε is not above that.
    """

    name = "truncated-gumbel"
    paper = "Xu, Feyisetan et al. 2021"
    _apart = "any two {0.many}"

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)
        self._extent = self._kept("extent", partial(_extent, space))
        least = self._extent[0]
        floor = (5.0 + 2.0 * math.log(len(space))) / least
        if math.isfinite(least) and self.epsilon <= floor:
            raise InvalidValueError(
                f"the noise of 'truncated-gumbel' exists only for epsilon > (5 + 2·ln V)/δ = "
                f"{floor:.6g}, δ = {least:.3g} being the least distance of two words; got "
                f"epsilon={epsilon}"
            )

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return "a metric that is ∞ between any two inputs"

    @property
    def diameter(self) -> float:
        """∞, if there are two words."""
        return math.inf if len(self.space) > 1 else 0.0

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) 0 for the same word, and ∞ for others."""
        return np.where(self._taken(ids_a) == self._taken(ids_b), 0.0, np.inf)

    def neighbour_distances(self) -> dict[int, float]:
        """∞ to the 1st, 10th, 100th neighbour, if there is another word."""
        return dict.fromkeys((1, 10, 100), self.diameter)

    @lazy_property
    def _scale(self) -> float:
        """Scale b of the noise."""
        least, largest = self._extent
        alpha = (self.epsilon - 2.0 * (1.0 + math.log(len(self.space))) / least) / 3.0
        return 2.0 * largest / min(_lambert(2.0 * alpha * largest), math.log(alpha * least))

    @lazy_property
    def _counts(self) -> Reals:
        """Probabilities of K = 1, 2 and so on."""
        mean = math.log(len(self.space))
        numbers = np.arange(1, min(len(self.space), 1000) + 1)
        logs = numbers * math.log(mean) - np.cumsum(np.log(numbers))
        law: Reals = np.exp(logs - logs.max())
        law /= law.sum()
        return law[law > NEVER]

    def _work_out(self, words: Ids) -> Iterator[Law]:
        size = len(self.space)
        if not math.isfinite(self._extent[0]):  # all words are at one place
            yield from [(np.arange(size), np.full(size, 1.0 / size))] * len(words)
            return
        step = max(1, BLOCK_BYTES // (8 * size))
        for start in range(0, len(words), step):
            for distances in self.space.distances(words[start : start + step]):
                near = _smallest(distances, len(self._counts))
                yield near, self._among(distances[near])

    def _among(self, distances: Reals) -> Reals:
        """Return the probabilities of candidates, the nearest first, by their distances."""
        at, masses = _nodes(distances, self._extent[1])
        density, survival = _gumbel(at - distances[:, None], self._scale, self._extent[1])
        # That none of the first k is below the sum at a node, times Pr[K=k].
        none_below = self._counts[:, None] * np.cumprod(survival, axis=0)
        from_rank = np.cumsum(none_below[::-1], axis=0)[::-1]
        law: Reals = (density * (from_rank / survival) * masses).sum(axis=1)
        law /= law.sum()
        return law


def _smallest(values: Reals, count: int) -> Ids:
    """Return the places of the smallest values, ascending; of equal ones, the first."""
    places = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return places[np.argsort(values[places], kind="stable")[:count]]


def _extent(space: EmbeddingSpace) -> tuple[float, float]:
    """Return the least distance above 0 and the largest of two words; (∞, 0) if all are equal."""
    least, largest = math.inf, 0.0
    points = space.points(np.arange(len(space))) - space.points([0])
    norms, step = squared_norms(points), max(1, 4 * BLOCK_BYTES // (8 * len(space)))
    for start in range(0, len(space), step):
        block, others = slice(start, start + step), slice(start, None)
        squared = -2.0 * points[block] @ points[others].T
        squared += norms[block, None]
        squared += norms[others]
        largest = max(largest, float(squared.max()))
        # Products cancel where words are near.
        rows, columns = np.nonzero(squared <= 1e-6 * norms.max())
        near = space.pair_distances(rows + start, columns + start) ** 2
        squared[rows, columns] = np.where(near > 0, near, np.inf)
        least = min(least, float(squared.min()))
    return math.sqrt(least), math.sqrt(largest if math.isfinite(least) else 0.0)


def _lambert(x: float) -> float:
    """Return W(x), the solution of w·exp(w) = x, for x > 0."""
    w = math.log1p(x)
    for _ in range(50):
        w -= (w - x * math.exp(-w)) / (w + 1.0)
    return w


def _nodes(distances: Reals, reach: float) -> tuple[Reals, Reals]:
    """Return places and masses of an integral from −reach to reach, smooth between candidates."""
    ends = np.unique(np.append(distances - reach, reach))
    at, masses = [], []
    for nodes, part in ((NODES, ends[:-1]), (LAST_NODES, ends[-2:])):
        places, weights = np.polynomial.legendre.leggauss(nodes)
        half = np.diff(part)[:, None] / 2.0
        at.append((part[:-1, None] + half * (1.0 + places)).ravel())
        masses.append((half * weights).ravel())
    return np.concatenate(at), np.concatenate(masses)


def _gumbel(noise: Reals, scale: float, reach: float) -> tuple[Reals, Reals]:
    """Return the density, and the probability of more, of Gumbel noise within ±reach."""
    low, high = (math.exp(-math.exp(-x / scale)) for x in (-reach, reach))
    inside = np.clip(noise, -reach, reach) / scale
    below = np.exp(-np.exp(-inside))
    density = np.where(noise < -reach, 0.0, np.exp(-inside) * below / scale)
    return density / (high - low), (high - below) / (high - low)


# The mechanisms of other papers by name. None of these names stands for a proof of its own.
PEERS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (SanText, Vickrey, Diffractor, CusText, SynTF, TruncatedGumbel)
}


def kind_of(name: str) -> type[Mechanism]:
    """Return the class of a mechanism of this package or of another paper.

    Raises:
        InvalidValueError: If there is no such mechanism.
    """
    require_one_of((*MECHANISMS, *PEERS), mechanism=name)
    return PEERS[name] if name in PEERS else MECHANISMS[name]

"""The hierarchical mechanism: near words are likely and far words are not.

Over a tree on the vocabulary, C(x, y) is the least cluster that holds both words and |C(x, x)| = 1.

    d_T(x, y) = ln |C(x, y)|                (an ultrametric)
    P(y | x) = |C(x, y)|^(−s) / Z(x)
    Z(x) = Σⱼ (|Cⱼ| − |Cⱼ₋₁|)·|Cⱼ|^(−s)     over the chain {x} = C₀ ⊂ C₁ ⊂ … ⊂ C_L of its clusters

*Exact level.* ln P(y|x) − ln P(y|x') = s·(d_T(x', y) − d_T(x, y)) + ln Z(x') − ln Z(x), and by the
triangle inequality d_T(x', y) − d_T(x, y) ≤ d_T(x, x') with equality at y = x. So the least ε for
which the mechanism is ε·d_T-private is

    ε*(s) = s + max over x ≠ x' of |ln Z(x) − ln Z(x')| / d_T(x, x').

Two words of a cluster C are at most ln |C| apart, and exactly so unless they are in the same child,
where they count again with a smaller denominator. So the maximum is, over all clusters C, that of
(max ln Z − min ln Z over C) / ln |C|: no pair is looked at.

*The unknown word* u is one more leaf beside the root: d_T(u, x) = ln(V+1) for all x. It is an input
and no output, all words are equally far from it, and so P(y|u) = 1/V. It never decides the level:
V^(1−s) ≤ Z(x) ≤ V, so that ln P(x|x)/P(x|u) = ln V − ln Z(x) ≤ s·ln V, and at the outputs farthest
from x, ln P(y|u)/P(y|x) = ln Z(x) + (s−1)·ln V ≤ s·ln V, all less than s·ln(V+1); the log-ratios at
the other outputs lie between these two.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.guarantee import Disclosure, Noun, upward
from hf_dxprivacy.mechanisms.base import Calibration, ExponentialLaw, Ids, Reals
from hf_dxprivacy.randomness import RowStreams, uniforms
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.hierarchy import Hierarchy

# Version of the mapping from noise to words. Increment on any change: it is part of the stream key,
# so that releases of two versions under one seed stay independent.
SAMPLER = 1

# Halvings of [ε/2, ε] in the search for s.
BISECTIONS = 40

# A bound of what rounding does to a level, per unit of s·ln V + 64; see `level`.
ROUNDING = 1e-14


class Chains:
    """Masses along the chains of clusters of a tree, which decide the law at one s.

    Attributes:
        above: (C+1,) for each cluster, the weight Σ (|Cⱼ| − |Cⱼ₋₁|)·|Cⱼ|^(−s) over all clusters
            around it; −1 for the number C, which stands for no cluster.
        words: (V+1,) the same around each word by row, which is Z(x) − 1; −1 for the unknown word.
    """

    def __init__(self, tree: Hierarchy, s: float) -> None:
        sizes = tree.sizes.astype(np.float64)
        weights = np.exp(-s * np.log(sizes))
        around = np.maximum(tree.parents[: len(sizes)], 0)
        steps = (sizes[around] - sizes) * weights[around]
        steps[0] = 0.0
        above = tree.path_sums(steps)
        home = tree.homes
        self.above = np.append(above, -1.0)
        self.words = np.append(above[home] + (sizes[home] - 1.0) * weights[home], -1.0)


def level(tree: Hierarchy, s: float) -> float:
    """Return the exact level ε*(s), bounded upward for rounding; O(V·log V).

    A weight has a relative error of at most (s·ln V + 2)·2⁻⁵², a sum along a chain adds
    log₂(depth) + 2 roundings, and the logarithm one of at most ln V + 1 of them: less than
    (s·ln V + 64)·2⁻⁵² in all for each ln Z, twice that for a difference, which is divided by ln 2
    at the least. `ROUNDING` is more than ten times as much. Where that says nothing, at tiny s,
    ε* ≤ 2s does.
    """
    log_sums = np.log1p(Chains(tree, s).words[:-1])
    low, high = tree.range_extremes(log_sums)
    ratios = (high - low)[tree.sizes > 1] / np.log(tree.sizes[tree.sizes > 1])
    margin = ROUNDING * (s * math.log(len(tree)) + 64.0)
    return min(s + float(ratios.max(initial=0.0)) + margin, 2.0 * s)


def calibrate(tree: Hierarchy, epsilon: float) -> Calibration:
    """Return the largest s with an exact level of at most ε.

    s ≤ ε*(s) ≤ 2s, so that ε/2 is feasible and nothing above ε is. Halving the interval keeps its
    lower end feasible, whether or not ε* is monotone, and ends within 1e-12 of an s that is not.
    """
    if len(tree) == 1 or level(tree, epsilon) <= epsilon:
        return Calibration(epsilon, epsilon)
    low, high = epsilon / 2.0, epsilon
    for _ in range(BISECTIONS):
        middle = low + (high - low) / 2.0
        if level(tree, middle) <= epsilon:
            low = middle
        else:
            high = middle
    return Calibration(low, min(level(tree, low), epsilon))


class Hierarchical(ExponentialLaw):
    """Draws a word by the size of the smallest cluster of a tree that holds it and the input.

    P(y|x) ∝ |C(x, y)|^(−s) with the largest s whose exact level ε*(s) is at most ε. Every e-fold of
    the cluster that two words share costs the same: in a cluster of 8 words their log-ratio is at
    most ε·ln 8, and ε·ln V for any two words of the vocabulary. For ε → 0 the law becomes uniform.
    See docs/hierarchical.md for the proof.

    Args:
        space: A space with a tree; `EmbeddingSpace.build_hierarchy` makes one.
        epsilon: ε > 0, per unit of d_T = ln of the size of the smallest common cluster.

    Raises:
        InvalidValueError: If the space has no tree.
    """

    name = "hierarchical"
    own_metric = True
    chunk = 1 << 14

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)
        if space.hierarchy is None:
            raise InvalidValueError(
                "mechanism 'hierarchical' needs a space with a tree, and this one has none; make "
                "one with space.build_hierarchy(), or on the command line with: hf-dxprivacy "
                "hierarchy FOLDER"
            )
        self._calibration = calibrate(space.hierarchy, self.epsilon)

    @classmethod
    def suits(cls, space: EmbeddingSpace) -> bool:
        """Tell whether a space has a tree."""
        return space.hierarchy is not None

    @property
    def tree(self) -> Hierarchy:
        """The tree of the space."""
        assert self.space.hierarchy is not None
        return self.space.hierarchy

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters and the tree: over another one the same noise becomes other words."""
        return {**super().noise_parameters, "tree": f"{SAMPLER}:{self.tree.sha256}"}

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return "ln of the size of the smallest common cluster"

    @property
    def space_metric(self) -> str:
        """See base class; another tree has another metric."""
        return f"{super().space_metric} by the tree {self.tree.sha256[:12]}"

    @property
    def diameter(self) -> float:
        """ln(V+1), from the unknown word to any other."""
        return math.log(len(self.space) + 1)

    @lazy_property
    def local_epsilon(self) -> float:
        """A bound of the log-ratio of any two inputs, s·ln V + max ln Z − min ln Z, at most ε·ln V.

        It is attained unless the extremes of ln Z are in one child of the root.
        """
        log_sums = np.log1p(self._chains.words[:-1])
        size = math.log(len(self.space))
        spread = float(log_sums.max() - log_sums.min())
        spread += ROUNDING * (self.inverse_temperature * size + 64.0) * (len(self.space) > 1)
        return min(self.inverse_temperature * size + spread, self.epsilon * size)

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) float64 d_T = ln |C(a, b)|; ln(V+1) between the unknown word and another."""
        return np.log(self.tree.common_sizes(np.asarray(ids_a), np.asarray(ids_b)))

    def neighbour_distances(self) -> dict[int, float]:
        """Median of d_T to the 1st, 10th, 100th neighbour, over all words."""
        return {
            k: float(np.median(np.log(self.tree.enclosing_sizes(min(k + 1, len(self.space))))))
            for k in (1, 10, 100)
        }

    def output_distances(self, ids: Ids) -> Reals:
        """Return (m, V) d_T from inputs to all words; ln(V+1) from the unknown word."""
        rows = np.full((len(ids), len(self.space)), math.log(len(self.space) + 1))
        for row, word in zip(rows, np.asarray(ids).tolist(), strict=True):
            if word >= 0:
                chain = self.tree.chain(word)
                starts = np.append(self.tree.places[word], self._starts[chain])
                sizes = np.append(1, self._sizes[chain])
                # From the first place to the word clusters get smaller, and larger again behind it.
                left, right = -np.diff(starts), np.diff(starts + sizes)
                lengths = np.concatenate([left[::-1], [1], right])
                distances = np.log(np.concatenate([sizes[:0:-1], sizes]))
                row[self.tree.order] = np.repeat(distances, lengths)
        return rows

    def weighted_sums(self, values: Reals, ids: Ids) -> Reals:
        """See base class; in O(V) for any number of words, by what each cluster adds."""
        starts, sizes, home = self._starts, self._sizes, self.tree.homes[ids]
        before = np.append(0.0, np.cumsum(values[self.tree.order]))
        held = before[starts + sizes] - before[starts]
        weights = np.exp(-self.inverse_temperature * np.log(sizes.astype(np.float64)))
        around = np.maximum(self.tree.parents[: len(sizes)], 0)
        steps = np.maximum(held[around] - held, 0.0) * weights[around]
        steps[0] = 0.0
        above = self.tree.path_sums(steps)[home]
        near = np.maximum(held[home] - values[ids], 0.0) * weights[home]
        sums: Reals = values[ids] + near + above
        return sums

    def rings(self, word: int) -> tuple[Ids, Reals]:
        """Return how the law of a word falls with the size of the cluster, in O(depth).

        Args:
            word: Its row.

        Returns:
            For the chain C₀ ⊂ C₁ ⊂ … of clusters around it, C₀ the word itself: (L+1,) the number
            of words of Cⱼ outside Cⱼ₋₁, and (L+1,) the probability of each of them, in descending
            order.
        """
        sizes = np.append(1, self._sizes[self.tree.chain(word)])
        weights = np.exp(-self.inverse_temperature * np.log(sizes))
        return np.diff(sizes, prepend=0), weights / (1.0 + self._chains.words[word])

    @lazy_property
    def _chains(self) -> Chains:
        return Chains(self.tree, self.inverse_temperature)

    @lazy_property
    def _starts(self) -> Ids:
        return self.tree.starts.astype(np.int64)

    @lazy_property
    def _sizes(self) -> Ids:
        return self.tree.sizes.astype(np.int64)

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        """Draw the cluster Cⱼ, then a uniform place of it outside Cⱼ₋₁.

        Both are exact but for the 53 bits of a uniform number and the rounding of the masses: no
        probability of a cluster is off by more than (log₂(depth) + 6)·2⁻⁵³, and none of a place in
        it by more than V·2⁻⁵³ of its own.
        """
        others = self._chains.words.take(ids)
        mass = streams.draw(uniforms, positions) * (1.0 + others)
        drawn = ids.copy()
        moved = np.flatnonzero(mass < others)
        if len(moved):
            uniform = streams.draw(uniforms, positions[moved])
            drawn[moved] = self._draw_others(ids.take(moved), mass.take(moved), uniform)
        unknown = np.flatnonzero(ids < 0)
        if len(unknown):
            uniform = streams.draw(uniforms, positions[unknown])
            drawn[unknown] = (uniform * len(self.space)).astype(np.int64)
        return drawn

    def _draw_others(
        self, words: Ids, mass: NDArray[np.floating], uniform: NDArray[np.floating]
    ) -> Ids:
        """Return other words, by a mass on [0, Z(x) − 1) and a uniform place in the cluster."""
        # On the masses the clusters lie from the root down.
        tree, above, starts, sizes = self.tree, self._chains.above, self._starts, self._sizes
        outer, inner_start = tree.homes.take(words), tree.places.take(words)
        inner_size = np.ones(len(words), dtype=np.int64)
        # Cⱼ is the first cluster on the way up with no more mass above it than was drawn.
        climbing = np.flatnonzero(above.take(outer) > mass)
        current, mass = outer.take(climbing), mass.take(climbing)
        for step in reversed(tree.ancestors):
            candidate = step.take(current)
            np.copyto(current, candidate, where=above.take(candidate) > mass)
        outer[climbing] = tree.ancestors[0].take(current)
        inner_start[climbing] = starts.take(current)
        inner_size[climbing] = sizes.take(current)
        free = sizes.take(outer) - inner_size
        places = starts.take(outer) + (uniform * free).astype(np.int64)
        # The places of Cⱼ₋₁ are passed over.
        places += inner_size * (places >= inner_start)
        return tree.order.take(places).astype(np.int64)

    def _disclosures(self, noun: Noun) -> tuple[Disclosure, ...]:
        size, local = len(self.space), self.local_epsilon
        eight = upward(min(self.epsilon * math.log(8), local))
        level, s = upward(self.exact_epsilon(), 6), self.inverse_temperature
        exact = f"The exact level over all pairs of {noun.many} is {level} (s = {s:.4g})."
        return (
            Disclosure(
                f"Two {noun.many} that share a cluster of 8 {noun.many}: log-ratio at most "
                f"{eight}; any two of the {size} {noun.many}, and the unknown {noun.one}: at most "
                f"{upward(local)}. The tree is public; {noun.lacking} beside its root."
            ),
            Disclosure(exact, "exact_level", level),
        )

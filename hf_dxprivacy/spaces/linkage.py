"""Agglomerative clustering of vectors, in memory linear in their number.

Average linkage of cosine distances, Ward's linkage, and average linkage of hyperbolic cosines have
one thing in common: the dissimilarity of two clusters is a function of their means and sizes. So no
matrix of distances is kept. In each round the nearest cluster of every cluster that needs one is
found by matrix products, and all pairs that are nearest to each other are merged. For these three,
which are reducible, that gives the same tree as merging the nearest pair one at a time (Müllner,
"Modern hierarchical, agglomerative clustering algorithms", 2011, section 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import faiss
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError, require_one_of
from hf_dxprivacy.spaces import metrics
from hf_dxprivacy.spaces.hierarchy import Hierarchy

METHODS = ("average", "ward", "parts")

# From so many different vectors on, they are first cut into parts of at most `PART` by k-means.
LARGEST = 40_000
PART = 20_000
ROUNDS = 10
POINTS_PER_PART = 256

# Entries of one block of dissimilarities.
BLOCK_ENTRIES = 1 << 23

Linkage = Literal["average", "ward", "hyperbolic"]


def build(
    vectors: NDArray[np.floating], metric: str, method: str, progress: bool = False
) -> Hierarchy:
    """Cluster the words of a space by their vectors.

    Words with the same vector form one cluster without further structure.

    Args:
        vectors: (V, n).
        metric: "euclidean": the vectors are scaled to length 1. "poincare": points of the ball.
        method: "average" linkage of cosine distances, in the ball of cosh d; "ward"; "parts":
            average linkage inside parts of 20,000 vectors and of the parts, as the other two do
            from 40,000 vectors on. In the ball there is only "average".
        progress: Show a bar.

    Raises:
        InvalidValueError: If there is no such method for this metric.
    """
    require_one_of(METHODS if metric == "euclidean" else METHODS[:1], method=method)
    linkage: Linkage = "ward" if method == "ward" else "average"
    points: Any
    if metric == "poincare":
        points, linkage = metrics.lorentz_image(vectors), "hyperbolic"
    else:
        points = np.zeros(vectors.shape, dtype=np.float32)
        for block in metrics.blocks(0, len(vectors)):
            exact = vectors[block].astype(np.float64)
            lengths = np.linalg.norm(exact, axis=1, keepdims=True)
            points[block] = exact / np.where(lengths > 0, lengths, 1.0)
    # Different vectors, numbered in the order they first come in. −0 is 0.
    known: dict[bytes, int] = {}
    groups = np.array([known.setdefault((row + 0.0).tobytes(), len(known)) for row in points])
    first = np.unique(groups, return_index=True)[1]
    different, counts = points[first], np.bincount(groups)
    by_parts = method == "parts" or (linkage != "hyperbolic" and len(different) > LARGEST)
    with tqdm(total=len(different) - 1, desc="Clustering", disable=not progress) as bar:
        merges = (
            agglomerate_by_parts(different, linkage, PART, counts, bar)
            if by_parts
            else agglomerate(different, linkage, counts, bar)
        )
    size = len(points)
    parents = np.full(size + 2 * len(different) - 1, -1)
    parents[:size] = size + groups
    parents[size + merges] = size + len(different) + np.arange(len(merges))[:, None]
    name = "average" if method == "parts" else method
    return Hierarchy.from_parents(parents, size, name + " linkage" + " by parts" * by_parts)


def from_relations(words: Sequence[str], relations: Iterable[tuple[str, str]]) -> Hierarchy:
    """Make a tree whose clusters are the classes of a taxonomy.

    Each class holds the words and classes that are a kind of it, and the word of its own name. Of
    several classes of one name the first counts, unless it would close a circle; words without a
    class lie beside the top classes.

    Args:
        words: (V,) words in row order.
        relations: (name, class) pairs, at least one, such as ("dog", "animal").

    Raises:
        InvalidValueError: If there are no pairs.
    """
    above: dict[str, str] = {}
    for name, kind in relations:
        if name in above:
            continue
        top = kind
        while top in above and top != name:
            top = above[top]
        if top != name:
            above[name] = kind
    if not above:
        raise InvalidValueError("expected relations, pairs of a name and its class; got none")
    clusters = {kind: len(words) + at for at, kind in enumerate(dict.fromkeys(above.values()))}
    # A word that is a class lies in the cluster of its name.
    homes = [clusters.get(word, clusters.get(above.get(word, ""), -1)) for word in words]
    parents = [clusters.get(above.get(kind, ""), -1) for kind in clusters]
    return Hierarchy.from_parents([*homes, *parents], len(words), "taxonomy")


@dataclass
class _Clusters:
    """Clusters that are not merged yet, A of them.

    Of each the mean and the number of its points, its number in the tree, the position of the
    nearest other cluster, −1 if not known, and the dissimilarity to it.
    """

    linkage: Linkage
    means: NDArray[np.floating]
    counts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    nearest: NDArray[np.int64]
    gaps: NDArray[np.float64]

    def find_nearest(self) -> None:
        """Fill `nearest` and `gaps` where they are not known."""
        missing = np.flatnonzero(self.nearest < 0)
        others = self.means.copy()
        if self.linkage == "hyperbolic":
            # cosh d(u, v) = u₀v₀ − Σ uᵢvᵢ of points of the hyperboloid.
            others[:, 0] *= -1.0
        squared = np.einsum("ij,ij->i", self.means, self.means)
        weights = self.counts.astype(self.means.dtype)
        step = max(1, BLOCK_ENTRIES // len(self.nodes))
        for start in range(0, len(missing), step):
            rows = missing[start : start + step]
            here = np.arange(len(rows))
            gaps = self.means[rows] @ others.T
            np.negative(gaps, out=gaps)
            if self.linkage == "ward":
                # ‖a−b‖²·|a||b|/(|a|+|b|), the growth of the sum of squares.
                gaps *= 2.0
                gaps += squared
                gaps += squared[rows, None]
                gaps *= weights
                gaps *= weights[rows, None]
                gaps /= weights + weights[rows, None]
            gaps[here, rows] = np.inf
            self.nearest[rows] = gaps.argmin(axis=1)
            self.gaps[rows] = gaps[here, self.nearest[rows]]

    def merge(self, first: int) -> NDArray[np.int64]:
        """Merge all pairs that are nearest to each other, into nodes from `first` on; (k, 2)."""
        here = np.arange(len(self.nodes))
        a = np.flatnonzero((self.nearest[self.nearest] == here) & (here < self.nearest))
        if not len(a):
            # Products are rounded by place, so that equal gaps may chase each other in a circle.
            a = np.array([self.gaps.argmin()])
        b = self.nearest[a]
        pairs = np.stack([self.nodes[a], self.nodes[b]], axis=1)
        total = self.counts[a] + self.counts[b]
        share = (self.counts[b] / total).astype(self.means.dtype)[:, None]
        self.means[a] += share * (self.means[b] - self.means[a])
        self.counts[a] = total
        self.nodes[a] = first + np.arange(len(a))
        kept = np.ones(len(here), dtype=np.bool_)
        kept[b] = False
        changed = ~kept
        changed[a] = True
        # No other cluster has come nearer: that is what reducible means.
        self.nearest[changed | changed[self.nearest]] = -1
        known = self.nearest >= 0
        self.nearest[known] = (np.cumsum(kept) - 1)[self.nearest[known]]
        for name in ("means", "counts", "nodes", "nearest", "gaps"):
            setattr(self, name, getattr(self, name)[kept])
        return pairs


def agglomerate(
    points: NDArray[np.floating],
    linkage: Linkage,
    counts: NDArray[np.int64] | None = None,
    bar: "tqdm[NoReturn] | None" = None,
) -> NDArray[np.int64]:
    """Cluster points from the bottom up.

    Args:
        points: (V, n): unit vectors for "average", any vectors for "ward", points of the
            hyperboloid with the time coordinate first for "hyperbolic".
        linkage: "average" of cosine distances, "ward", or "hyperbolic": the average of cosh d.
        counts: (V,) how many words each point stands for; one by default.
        bar: Is told of every merge.

    Returns:
        (V−1, 2) merges: leaves are 0 … V−1, and merge k makes node V+k of two earlier nodes. Takes
        about 2.5·V²·n multiplications and O(V·n) memory.
    """
    size = len(points)
    clusters = _Clusters(
        linkage,
        points.copy(),
        np.ones(size, dtype=np.int64) if counts is None else counts.copy(),
        np.arange(size),
        np.full(size, -1),
        np.full(size, np.inf),
    )
    found = [np.empty((0, 2), dtype=np.int64)]
    while len(clusters.nodes) > 1:
        clusters.find_nearest()
        found.append(clusters.merge(2 * size - len(clusters.nodes)))
        if bar is not None:
            bar.update(len(found[-1]))
    return np.concatenate(found)


def agglomerate_by_parts(
    points: NDArray[np.float32],
    linkage: Linkage,
    part_size: int,
    counts: NDArray[np.int64] | None = None,
    bar: "tqdm[NoReturn] | None" = None,
) -> NDArray[np.int64]:
    """Cluster points inside parts that k-means makes, and then the parts.

    Args:
        points: (V, n) float32, as for `agglomerate`.
        linkage: "average" or "ward".
        part_size: The most points of a part, at least 1.
        counts: As for `agglomerate`.
        bar: As for `agglomerate`.

    Returns:
        (V−1, 2) merges, as `agglomerate` does.
    """
    size = first = len(points)
    counts = np.ones(size, dtype=np.int64) if counts is None else counts
    merges, tops, means, totals = [], [], [], []
    for part in _parts(points, np.arange(size), part_size):
        inside = agglomerate(points[part], linkage, counts[part], bar)
        # Numbers of the part's own become numbers of the whole.
        numbers = np.concatenate([part, first + np.arange(len(inside))])
        merges.append(numbers[inside])
        first += len(inside)
        tops.append(numbers[-1])
        means.append(np.average(points[part], axis=0, weights=counts[part]))
        totals.append(counts[part].sum())
    above = agglomerate(np.array(means, dtype=points.dtype), linkage, np.array(totals), bar)
    return np.concatenate([*merges, np.concatenate([tops, first + np.arange(len(above))])[above]])


def _parts(
    points: NDArray[np.float32], rows: NDArray[np.int64], part_size: int
) -> list[NDArray[np.int64]]:
    """Cut rows into parts of at most `part_size` points that lie together."""
    if len(rows) <= part_size:
        return [rows]
    count = -(-len(rows) * 3 // (2 * part_size))
    means = faiss.Kmeans(
        points.shape[1], count, niter=ROUNDS, seed=1, max_points_per_centroid=POINTS_PER_PART
    )
    here = np.ascontiguousarray(points[rows])
    means.train(here)
    of = means.index.search(here, 1)[1][:, 0]
    parts = [rows[of == part] for part in range(count)]
    if max(map(len, parts)) == len(rows):
        # Points that all coincide can be cut anywhere.
        parts = np.array_split(rows, count)
    return [smaller for part in parts if len(part) for smaller in _parts(points, part, part_size)]

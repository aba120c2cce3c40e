"""A rooted tree over the words of a space, laid out so that every cluster is a range of places."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub import tensors

_FIELDS = ("order", "parents", "sizes", "starts")
_DTYPE = np.dtype("<i4")


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A tree whose leaves are the V words of a vocabulary; immutable.

    The words are laid out in tree order, so that a cluster is the range of places from its start to
    start + size. The C clusters are numbered from the root, 0, in preorder: each before those that
    it holds, and these from left to right. A cluster of one word is no cluster of its own, except
    the root of a single word. Every other cluster has at least two children.

    Attributes:
        order: (V,) int32, the word (row of the vocabulary) at each place.
        parents: (C+V,) int32: the cluster around each cluster, −1 for the root, followed by the
            least cluster around the word at each place.
        starts: (C,) int32, first place of each cluster.
        sizes: (C,) int32, number of words of each cluster.
        method: How the tree was made, in words.
        stored_sha256: `sha256` if a digest check has found it already.

    Raises:
        InvalidValueError: If the arrays are not such a tree; says why.
    """

    order: NDArray[np.int32]
    parents: NDArray[np.int32]
    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    method: str = field(default="", compare=False)
    stored_sha256: str | None = None

    def __post_init__(self) -> None:
        for name in _FIELDS:
            view = np.ascontiguousarray(getattr(self, name), dtype=_DTYPE).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
        _check(self.order, self.parents, self.starts, self.sizes)

    def __len__(self) -> int:
        """Number of words V."""
        return len(self.order)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self)} words in {len(self.sizes)} clusters, "
            f"depth {int(self.depths.max())}, {self.method!r})"
        )

    @classmethod
    def from_parents(cls, parents: ArrayLike, size: int, method: str = "") -> "Hierarchy":
        """Lay out a tree that is given by the parent of each node.

        Clusters with no word are left out, and those with a single child are one with it. If there
        are several tops, a root is put above them.

        Args:
            parents: (N,) integers, N ≥ V: the first V nodes are the words, by row; the parent of
                a node is one of the others, or −1 for a top.
            size: V, at least 1.
            method: How the tree was made.

        Raises:
            InvalidValueError: If a parent is out of range, or nodes form a circle.
        """
        return cls(**_laid_out(parents, size), method=method)

    @classmethod
    def from_merges(cls, merges: ArrayLike, size: int, method: str = "") -> "Hierarchy":
        """Lay out a binary tree that is given from the bottom up.

        Args:
            merges: (V−1, 2) integers: words are 0 … V−1, and merge k makes node V+k of two earlier
                nodes.
            size: V.
            method: How the tree was made.
        """
        return cls.from_parents(_parents_of_merges(merges, size), size, method)

    def with_leaves(self, groups: Sequence[tuple[int, int]]) -> "Hierarchy":
        """Return a tree with further words, those of a group together in a new cluster.

        Args:
            groups: For each group the cluster that it is put into, and its number of words. They
                are numbered from V on.
        """
        clusters, counts = len(self.sizes), [count for _, count in groups]
        size = len(self) + sum(counts)
        parents = [
            self.homes + size,
            np.repeat(size + clusters + np.arange(len(groups)), counts),
            np.append(-1, self.parents[1:clusters].astype(np.int64) + size),
            np.array([size + cluster for cluster, _ in groups], dtype=np.int64),
        ]
        return self.from_parents(np.concatenate(parents), size, self.method)

    def restricted(self, rows: NDArray[np.int64]) -> "Hierarchy":
        """Return the tree that this one induces over some words.

        Args:
            rows: (m,) different rows, at least one; the word of rows[k] becomes word k.
        """
        clusters = np.append(-1, self.parents[1 : len(self.sizes)].astype(np.int64) + len(rows))
        parents = np.concatenate([self.homes[rows] + len(rows), clusters])
        return self.from_parents(parents, len(rows), self.method)

    def cluster_of(self, rows: NDArray[np.int64]) -> int:
        """Return the least cluster that holds at least half of some words.

        Args:
            rows: (m,) different rows, at least one.
        """
        before = np.append(0, np.cumsum(np.isin(self.order, rows)))
        held = before[self.starts + self.sizes] - before[self.starts]
        enough = np.flatnonzero(2 * held >= len(rows))
        return int(enough[self.sizes[enough].argmin()])

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as they are stored."""
        return {name: getattr(self, name) for name in _FIELDS}

    @lazy_property
    def sha256(self) -> str:
        """SHA-256 of the file of `tensors`, in hexadecimal."""
        return self.stored_sha256 or tensors.sha256(self.tensors)

    @property
    def pieces(self) -> Iterable[bytes | memoryview]:
        """The file of `tensors`, in pieces."""
        return tensors.pieces(self.tensors)

    @property
    def described(self) -> dict[str, Any]:
        """What ``config.json`` says of it beside digests."""
        return {"method": self.method, "clusters": len(self.sizes)}

    @classmethod
    def restored(
        cls,
        stored: Mapping[str, NDArray[Any]],
        entry: Mapping[str, Any],
        vectors: NDArray[np.floating],
    ) -> "Hierarchy":
        """Make a tree of `tensors` that were stored; they are used in place.

        Args:
            stored: The arrays by name.
            entry: "clusters" C, "method", and "sha256" of the file.
            vectors: (V, n), those of the space.

        Raises:
            InvalidValueError: If they are no such tree.
        """
        clusters, size = entry["clusters"], len(vectors)
        lengths = dict(zip(_FIELDS, (size, clusters + size, clusters, clusters), strict=True))
        if {name: (array.dtype, array.shape) for name, array in stored.items()} != {
            name: (_DTYPE, (length,)) for name, length in lengths.items()
        }:
            raise InvalidValueError(f"this is no tree of {clusters} clusters over {size} words")
        return cls(**stored, method=entry["method"], stored_sha256=entry["sha256"])

    @lazy_property
    def places(self) -> NDArray[np.int64]:
        """(V,) place of each word."""
        places = np.empty(len(self), dtype=np.int64)
        places[self.order] = np.arange(len(self))
        return places

    @lazy_property
    def homes(self) -> NDArray[np.int64]:
        """(V,) least cluster around each word, by row."""
        return self.parents[len(self.sizes) :][self.places].astype(np.int64)

    @lazy_property
    def depths(self) -> NDArray[np.int64]:
        """(V,) number of clusters around each word, the root included."""
        return self.path_sums(np.ones(len(self.sizes)))[self.homes].astype(np.int64)

    @lazy_property
    def ancestors(self) -> tuple[NDArray[np.int64], ...]:
        """The 2ᵏ-th cluster around each cluster, (C+1,) for k = 0, 1, …, as deep as the tree is.

        The number C stands for there being none, and is its own parent.
        """
        none = len(self.sizes)
        parents = np.append(self.parents[:none], none).astype(np.int64)
        parents[0] = none
        found = [parents]
        while ((farther := found[-1][found[-1]]) != none).any():
            found.append(farther)
        return tuple(found)

    def path_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each cluster, the sum of (C,) values over it and all clusters around it.

        By doubling, in O(C·log depth): log₂(depth) roundings, whatever the shape of the tree.
        """
        sums = np.append(values, 0.0)
        for above in self.ancestors:
            sums = sums + sums[above]
        return sums[:-1]

    def _climbed(
        self, current: NDArray[np.int64], is_too_small: Callable[[NDArray[np.int64]], Any]
    ) -> NDArray[np.int64]:
        """Return the first cluster on the way up from each, itself included, that is large enough.

        Those around one that is large enough are so too.
        """
        for above in reversed(self.ancestors):
            candidate = above[current]
            current = np.where(is_too_small(candidate), candidate, current)
        return np.where(is_too_small(current), self.ancestors[0][current], current)

    def common_sizes(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return |C(a, b)|, the size of the least cluster that holds both words, (m,) int64.

        A word and itself have 1. The unknown word, −1, is one more leaf beside the root: it has
        V+1 in common with any word, and 1 with itself.

        Args:
            a: (m,) rows; −1 is the unknown word.
            b: (m,) rows.
        """
        known = (a >= 0) & (b >= 0)
        place = self.places[b[known]]
        # The sentinel holds everything, so that no climb ends there.
        starts, stops = np.append(self.starts, -1), np.append(self.starts + self.sizes, 2**31 - 1)
        common = self._climbed(
            self.homes[a[known]], lambda around: (place < starts[around]) | (place >= stops[around])
        )
        sizes = np.full(len(a), len(self) + 1, dtype=np.int64)
        sizes[known] = self.sizes[common]
        sizes[a == b] = 1
        return sizes

    def enclosing_sizes(self, least: int) -> NDArray[np.int64]:
        """Return the size of the least cluster of at least so many words around each word, (V,).

        V where there is none.
        """
        sizes = np.append(self.sizes, 2**31 - 1)
        enclosing = sizes[self._climbed(self.homes, lambda around: sizes[around] < least)]
        capped: NDArray[np.int64] = np.minimum(enclosing, len(self))
        return capped

    def chain(self, row: int) -> list[int]:
        """Return the clusters around a word, from the least to the root."""
        cluster, found = int(self.homes[row]), []
        while cluster >= 0:
            found.append(cluster)
            cluster = int(self.parents[cluster])
        return found

    def members(self, cluster: int) -> NDArray[np.int32]:
        """Return the words of a cluster in tree order, (size,) rows."""
        return self.order[self.starts[cluster] : self.starts[cluster] + self.sizes[cluster]]

    def range_extremes(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest value over the words of each cluster, (C,) each.

        By ranges of lengths 2ᵏ, two of which cover a cluster: O(V·log V), whatever the shape.

        Args:
            values: (V,) float64 by row.
        """
        low = high = values[self.order]
        least, most = np.empty(len(self.sizes)), np.empty(len(self.sizes))
        for half, (here, first, second) in self._ranges.items():
            least[here] = np.minimum(low[first], low[second])
            most[here] = np.maximum(high[first], high[second])
            low = np.minimum(low[:-half], low[half:])
            high = np.maximum(high[:-half], high[half:])
        return least, most

    @lazy_property
    def _ranges(self) -> dict[int, tuple[NDArray[Any], ...]]:
        """By length 2ᵏ: the clusters that two ranges of it cover, and where these start."""
        octaves = np.frexp(self.sizes)[1] - 1
        found: dict[int, tuple[NDArray[Any], ...]] = {}
        for octave in range(int(octaves.max()) + 1):
            here = np.flatnonzero(octaves == octave)
            first = self.starts[here]
            found[1 << octave] = here, first, first + self.sizes[here] - (1 << octave)
        return found


def _check(
    order: NDArray[Any], parents: NDArray[Any], starts: NDArray[Any], sizes: NDArray[Any]
) -> None:
    """Require the arrays to be a tree: each word once, sizes add up, ranges nest."""
    size, clusters = len(order), len(sizes)
    if not size or not clusters or len(starts) != clusters or len(parents) != clusters + size:
        raise InvalidValueError("a tree has at least one word and a root, and a parent of each")
    if not np.array_equal(np.sort(order), np.arange(size)):
        raise InvalidValueError("the order of the tree does not name every word once")
    if parents[0] != -1 or starts[0] != 0 or sizes[0] != size:
        raise InvalidValueError(f"the root of the tree is not the cluster of all {size} words")
    around = parents[1:]
    if len(around) and not (around.min() >= 0 and around.max() < clusters):
        raise InvalidValueError("a parent in the tree is no cluster")
    if size > 1 and np.bincount(around, minlength=clusters).min() < 2:
        raise InvalidValueError("a cluster of the tree has fewer than two children")
    # The children of each cluster, from left to right, must tile its range.
    first = np.concatenate([starts[1:], np.arange(size)]).astype(np.int64)
    stop = first + np.concatenate([sizes[1:], np.ones(size, dtype=np.int64)])
    if (stop <= first).any():
        raise InvalidValueError("a cluster of the tree is empty")
    by_parent = np.lexsort((first, around))
    first, stop, around = first[by_parent], stop[by_parent], around[by_parent]
    leftmost = np.append(True, around[1:] != around[:-1])
    rightmost = np.append(leftmost[1:], True)
    before = np.where(leftmost, starts[around], np.append(0, stop[:-1]))
    ends = starts[around].astype(np.int64) + sizes[around]
    if (first != before).any() or (stop != ends)[rightmost].any():
        raise InvalidValueError("the children of a cluster of the tree do not add up to it")
    ascending = np.diff(starts) > 0
    if not (ascending | ((np.diff(starts) == 0) & (np.diff(sizes) < 0))).all():
        raise InvalidValueError("the clusters of the tree are not in preorder")


def _laid_out(parents: ArrayLike, size: int) -> dict[str, Any]:
    """Return the arrays of a `Hierarchy` by name; see `Hierarchy.from_parents`."""
    above = np.asarray(parents, dtype=np.int64)
    if size < 1 or above.ndim != 1 or len(above) < size:
        raise InvalidValueError(
            f"expected the parents of {size} words and of their clusters, got an array of "
            f"shape {above.shape}"
        )
    if ((above != -1) & ((above < size) | (above >= len(above)))).any():
        raise InvalidValueError(
            f"expected each parent to be -1 or a cluster, from {size} to {len(above) - 1}"
        )
    root = len(above)
    around = np.append(np.where(above < 0, root, above), -1)
    by_parent = np.argsort(around[:root], kind="stable")
    first = np.searchsorted(around[:root][by_parent], np.arange(root + 2)).tolist()
    children, up = by_parent.tolist(), around.tolist()
    preorder, stack = [], [root]
    while stack:
        node = stack.pop()
        preorder.append(node)
        stack += children[first[node] : first[node + 1]][::-1]
    if len(preorder) != root + 1:
        raise InvalidValueError("expected a tree, but some of the clusters lie around themselves")
    words = [1] * size + [0] * (root + 1 - size)
    branches = [0] * (root + 1)
    for node in reversed(preorder[1:]):
        words[up[node]] += words[node]
        branches[up[node]] += words[node] > 0
    number = [-1] * (root + 1)
    order: list[int] = []
    of_clusters: list[int] = []
    of_words: list[int] = []
    starts: list[int] = []
    sizes: list[int] = []
    for node in preorder:
        outside = number[up[node]] if node != root else -1
        if node < size:
            order.append(node)
            of_words.append(outside)
        elif branches[node] > 1 or (node == root and size == 1):
            number[node] = len(sizes)
            of_clusters.append(outside)
            starts.append(len(order))
            sizes.append(words[node])
        else:
            number[node] = outside
    return {"order": order, "parents": of_clusters + of_words, "starts": starts, "sizes": sizes}


def _parents_of_merges(merges: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return the parents of the nodes of a binary tree; see `Hierarchy.from_merges`."""
    pairs = np.asarray(merges, dtype=np.int64).reshape(-1, 2)
    if len(pairs) != size - 1 or not np.array_equal(
        np.sort(pairs, axis=None), np.arange(2 * len(pairs))
    ):
        raise InvalidValueError(
            f"expected {size - 1} merges in which each of {2 * size - 2} nodes below the root "
            "is merged once"
        )
    parents = np.full(2 * size - 1, -1)
    parents[pairs] = size + np.arange(len(pairs))[:, None]
    return parents

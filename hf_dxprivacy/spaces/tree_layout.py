"""Trees laid out: words in tree order, clusters in preorder, from the parents of their nodes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy.errors import InvalidValueError


def laid_out(parents: ArrayLike, size: int) -> dict[str, Any]:
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


def parents_of_merges(merges: ArrayLike, size: int) -> NDArray[np.int64]:
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

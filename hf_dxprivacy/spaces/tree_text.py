"""A few branches of a tree as text, for a card."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from hf_dxprivacy.spaces.hierarchy import Hierarchy

# What `branches` draws: words that most English vocabularies have, in the largest of
# their clusters up to each size, and so many new words of each cluster.
EXAMPLES = ("soup", "doctor", "monday", "guitar")
LARGEST = (300, 30, 5)
SHOWN = 6


def branches(tree: Hierarchy, words: Sequence[str]) -> str:
    """Draw a few branches as text: some words in their small, middle and large clusters.

    Args:
        tree: The tree.
        words: (V,) the words by row. Those of `EXAMPLES` are drawn; if there are none, words
            evenly spaced in row order.

    Returns:
        A line for each cluster, below the next larger one: the number of its words, and the
        first of them, in row order, that no line below it is about.
    """
    rows = [words.index(word) for word in EXAMPLES if word in words]
    spaced = np.linspace(0, len(tree) - 1, len(EXAMPLES) + 2)[1:-1].astype(int)
    below: dict[int, dict[int, None]] = {}
    for row in rows or spaced.tolist():
        chain = tree.chain(row)[::-1]
        found = [next((c for c in chain if tree.sizes[c] <= most), 0) for most in LARGEST]
        for outer, inner in pairwise(dict.fromkeys([0, *found])):
            below.setdefault(outer, {})[inner] = None

    def lines(cluster: int) -> Iterator[str]:
        inner = [*below.get(cluster, ())]
        told = [tree.members(c) for c in inner]
        new = np.setdiff1d(tree.members(cluster), np.concatenate([[], *told])).tolist()
        more = ", …" if len(new) > SHOWN else ""
        named = ", ".join(words[row] for row in new[:SHOWN])
        yield f"{tree.sizes[cluster]:,} words: {named}{more}"
        for c in inner:
            first, rest = ("└─ ", "   ") if c == inner[-1] else ("├─ ", "│  ")
            for number, line in enumerate(lines(c)):
                yield (rest if number else first) + line

    return "\n".join(lines(0))

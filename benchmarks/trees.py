"""Trees compared for `hierarchical`, over the words of `english`, at equal local DP.

average, ward: linkage of the 300-dimensional vectors of GloVe. stored: average linkage of the fewer
dimensions that `english` holds. parts: average linkage inside parts of at most 8,000 words that
k-means makes. all but the top: average linkage without the mean and the three main components.
octaves: average linkage, in which a cluster stays only if it is at most half of the one around it.
taxonomy: WordNet 3.0, each word in the synset of its first sense (Debian: wordnet-base).

Each row is a mean over releases: share of running words that stay; share of the changed ones that
are among the 100 nearest; accuracy on movie reviews (MR) of a model trained on the release, and of
one that was trained on plain text and reads the release; e-mails (PAN11) whose author is found.

    python benchmarks/trees.py --json benchmarks/out/trees.json
"""

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.mechanisms.hierarchical import Hierarchical
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from hf_dxprivacy.spaces.linkage import agglomerate, agglomerate_by_parts
from hf_dxprivacy.training.wordnet import (
    DEFAULT_PATH,
    PARTS_OF_SPEECH,
    read_morphology,
    read_senses,
    read_synsets,
)
from released_words import Authors, Task, Vectors

PART_SIZE = 8000
# Pointers to what a synset without a hypernym belongs to: similar to, pertains to, derived from.
BESIDE = ("&", "\\", "+", "<")


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return vectors of length 1."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def all_but_the_top(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit vectors without their mean and three main components."""
    centred = points - points.mean(axis=0)
    top = np.linalg.eigh(centred.T @ centred)[1][:, -3:]
    return unit(centred - centred @ top @ top.T)


def octaves(tree: Hierarchy) -> Hierarchy:
    """Return the tree with clusters of at most half of the size of that around them only."""
    clusters, size = len(tree.sizes), len(tree)
    around, kept = np.zeros(clusters, dtype=np.int64), np.zeros(clusters, dtype=bool)
    kept[0] = True
    for cluster in range(1, clusters):
        parent = tree.parents[cluster]
        around[cluster] = parent if kept[parent] else around[parent]
        kept[cluster] = 2 * tree.sizes[cluster] <= tree.sizes[around[cluster]]
    number = size + np.cumsum(kept) - 1
    home = np.where(kept, number, number[around])
    parents = np.empty(size + kept.sum(), dtype=np.int64)
    parents[tree.order] = home[tree.parents[clusters:]]
    parents[size:] = number[around[kept]]
    parents[size] = -1
    return Hierarchy.from_parents(parents, size, "octaves")


def taxonomy(words: tuple[str, ...], wordnet: Path) -> Hierarchy:
    """Return the tree of synsets above the first sense of each word, or of its base form."""
    synsets = {synset.key: synset for synset in read_synsets(wordnet)}
    number = {key: len(words) + k for k, key in enumerate(synsets)}
    senses = {part: read_senses(wordnet, part) for part in PARTS_OF_SPEECH}
    kinds = {key[0] for key in synsets}
    morphology = read_morphology(wordnet)
    letters = {part: next(k for k in kinds if part.startswith({"n": "noun", "v": "verb",
               "a": "adj", "r": "adv"}.get(k, "?"))) for part in PARTS_OF_SPEECH}  # fmt: skip

    def home(word: str) -> int:
        for form in (word, *morphology.bases(word)):
            for part in PARTS_OF_SPEECH:
                for offset in senses[part].get(form, ()):
                    if (letters[part], offset) in number:
                        return number[letters[part], offset]
        return -1

    above = [-1] * len(synsets)
    for row, synset in enumerate(synsets.values()):
        targets = synset.hypernyms() or [
            link.target for link in synset.pointers if link.symbol in BESIDE
        ]
        above[row] = next((number[target] for target in targets if target in number), -1)
    parents = np.array([home(word) for word in words] + above)
    return Hierarchy.from_parents(without_circles(parents), len(words), "taxonomy")


def without_circles(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parents, with a circle of "similar to" cut where it is entered."""
    state = np.zeros(len(parents), dtype=np.int8)
    for start in range(len(parents)):
        path, node = [], start
        while node >= 0 and state[node] == 0:
            state[node] = 1
            path.append(node)
            node = int(parents[node])
        if node >= 0 and state[node] == 1:
            parents[path[-1]] = -1
        state[path] = 2
    return parents


def trees(
    space: EmbeddingSpace, points: NDArray[np.float32], wordnet: Path
) -> dict[str, Callable[[], Hierarchy]]:
    """Return how to make each tree."""
    size = len(space)

    def merged(merges: NDArray[np.int64]) -> Hierarchy:
        return Hierarchy.from_merges(merges, size)

    @cache
    def average() -> Hierarchy:
        return merged(agglomerate(points, "average"))

    return {
        "ward": lambda: merged(agglomerate(points, "ward")),
        "average": average,
        "octaves": lambda: octaves(average()),
        "taxonomy": lambda: taxonomy(space.words, wordnet),
        "parts": lambda: merged(agglomerate_by_parts(points, "average", PART_SIZE)),
        "stored": lambda: merged(agglomerate(unit(space.vectors), "average")),
        "all but the top": lambda: merged(agglomerate(all_but_the_top(points), "average")),
    }


def at_local_level(space: EmbeddingSpace, level: float) -> Hierarchical:
    """Return the mechanism of the largest ε whose bound for any two words is at most this."""
    low, high = 0.1, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        feasible = Hierarchical(space, middle).local_epsilon <= level
        low, high = (middle, high) if feasible else (low, middle)
    return Hierarchical(space, low)


def measure(
    mechanism: Hierarchical, reviews: Task, mails: Authors, repeats: int
) -> dict[str, float]:
    """Return the means over releases."""
    found = []
    privatizer = DxPrivatizer(mechanism.space, "hierarchical", mechanism.epsilon)
    for _ in range(repeats):
        released = privatizer.privatize(reviews.words)
        mail = privatizer.privatize(mails.texts)
        found.append(
            reviews.kept(released) | reviews.scores(released) | {"PAN11": mails.found(mail)}
        )
    return {name: float(np.mean([row[name] for row in found])) for name in found[0]}


def main() -> None:
    """Build, measure and print all trees."""
    parser = common.parser(__doc__)
    parser.add_argument("--levels", type=float, nargs="+", default=[13.5, 15.0, 16.5])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trees", nargs="+", help="all by default")
    parser.add_argument("--page", type=Path, help="write the table into docs/results/trees.md")
    parser.add_argument("--wordnet", type=Path, default=Path(DEFAULT_PATH))
    options = parser.parse_args()
    rows = run(options)
    common.report("Trees at equal local DP", rows, options.json)
    if options.page:
        common.write_into(options.page, "table", common.markdown([shown(row) for row in rows]))


def shown(row: dict[str, object]) -> dict[str, str]:
    """Return a row as the page has it."""
    digits = {"local DP": 1, "ε": 2, "PAN11": 0, "mean depth": 1}
    return {
        name: f"{value:.{digits.get(name, 3)}f}" if isinstance(value, float) else str(value)
        for name, value in row.items()
    }


def run(options: argparse.Namespace) -> list[dict[str, object]]:
    """Return the rows of the table."""
    glove = common.glove(options.data)
    vectors = Vectors(glove)
    space = EmbeddingSpace.from_pretrained("english")
    ids = glove.ids(space.words)
    known = np.flatnonzero(ids >= 0)
    whole = space
    space = EmbeddingSpace.from_vectors(
        [whole.words[row] for row in known], whole.vectors[known], provenance=whole.provenance
    )
    points = unit(glove.vectors[ids[known]])
    reviews = Task(options.data / "utility" / "mr.jsonl.gz", vectors)
    mails = Authors(
        options.data / "authorship" / "pan11_enron_small.jsonl.gz", ("validation", "test")
    )
    rows: list[dict[str, object]] = []
    for name, make in trees(space, points, options.wordnet).items():
        if options.trees and name not in options.trees:
            continue
        tree = make()
        with_tree = space.with_hierarchy(tree)
        for level in options.levels:
            mechanism = at_local_level(with_tree, level)
            row = {"tree": name, "local DP": level, "ε": mechanism.epsilon}
            row |= measure(mechanism, reviews, mails, options.repeats)
            row |= {"mean depth": float(tree.depths.mean()), "depth": int(tree.depths.max())}
            rows.append(row)
            print(row, flush=True)
    return rows


if __name__ == "__main__":
    main()

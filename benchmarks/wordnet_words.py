"""What lies near the words of wordnet-poincare, and what they become, as a page of the docs.

    python benchmarks/wordnet_words.py > docs/results/wordnet-poincare.md

Needs the WordNet 3.0 database (Debian: wordnet-base). The draws are seeded: the page is the same
again for the same space.
"""

import argparse
import sys
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms import CalibratedExponential
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.training import Relations, read_wordnet, reconstruction
from hf_dxprivacy.training.wordnet import DEFAULT_PATH

NOUNS = (
    "london paris ohio river mountain city island country guitar piano music song cheese bread "
    "apple wine soup dog cat horse bird fish tree flower doctor teacher lawyer nurse car train "
    "bicycle ship house restaurant school hospital money bank book newspaper"
).split()
EPSILONS = (4.0, 6.0, 8.0)
WORDS, DRAWS, RANKED = 1_000, 20, 2_000


def main() -> int:
    """Print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\\n")[0])
    parser.add_argument("--wordnet", default=DEFAULT_PATH, help="folder of the database files")
    arguments = parser.parse_args()
    space = EmbeddingSpace.from_pretrained("wordnet-poincare")
    closed = read_wordnet(arguments.wordnet, nodes="words", max_senses=1).among(space.words)
    direct = closed.direct()
    found = reconstruction(space, closed, RANKED)
    quality = {"precision": found.mean_average_precision, "rank": found.mean_rank}
    print(HEAD.format(words=len(space), dim=space.dim, ranked=RANKED, **quality))
    classes = _by_word(direct)
    print("| word | nearest words | its classes in WordNet |\n|---|---|---|")
    for noun in NOUNS:
        near = ", ".join(f"{word} {distance:.2f}" for word, distance in space.neighbours(noun, 5))
        above = ", ".join(sorted(classes[noun])[:4])
        print(f"| {noun} | {near} | {above} |")
    print(FATES.format(words=WORDS, draws=DRAWS))
    ancestors, parents = (_in_space(relations, space) for relations in (closed, direct))
    chance = _related(*_at_random(space), ancestors, parents)
    for epsilon in EPSILONS:
        inputs, outputs = _drawn(space, epsilon)
        changed = inputs != outputs
        found = _related(inputs[changed], outputs[changed], ancestors, parents)
        ratio = found.sum() / chance.sum()
        shares = f"{changed.mean():.0%} | {found[0]:.1%} | {found[1]:.1%}"
        print(f"| {epsilon:g} | {shares} | {ratio:.0f} × |")
    print(f"| at random | | {chance[0]:.2%} | {chance[1]:.2%} | 1 × |")
    return 0


HEAD = """# The words of wordnet-poincare

What a reader finds in the built-in space `wordnet-poincare` ({words:,} nouns, {dim} dimensions).
Made by `python benchmarks/wordnet_words.py`. Distances are in steps: 1 is the median distance to
the nearest word. Each word has the classes of its first sense in WordNet, which is not always the
one a reader thinks of, and lies near all of them: "entity" or "object" is near to many.

Ranking all words by distance, with the classes of a word at any height as what should come first,
has a mean average precision of {precision:.3f} and a mean rank of {rank:.2f} over {ranked:,} words
([what that is](poincare-training.md)).
"""

FATES = """
## What words become

{draws} draws of the calibrated mechanism for each of {words:,} words: how often the word changes,
and how often what it becomes is one of its classes at any height (a hypernym) or shares a direct
class with it (a sibling); beside it two words at random.

| ε | changed | hypernym | sibling | of both, times chance |
|---|---:|---:|---:|---:|"""


def _by_word(relations: Relations) -> dict[str, set[str]]:
    above: dict[str, set[str]] = defaultdict(set)
    for node, top in relations.pairs.tolist():
        above[relations.nodes[node]].add(relations.nodes[top])
    return above


def _in_space(relations: Relations, space: EmbeddingSpace) -> dict[int, set[int]]:
    """Return the classes of each row of the space, as rows."""
    rows = space.ids(relations.nodes)
    above: dict[int, set[int]] = defaultdict(set)
    for node, top in rows[relations.pairs].tolist():
        if node >= 0 and top >= 0:
            above[node].add(top)
    return above


def _at_random(space: EmbeddingSpace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = keyed_generator(0, "chance")
    inputs = np.repeat(_words(space), 100 * DRAWS)
    return inputs, (inputs + rng.integers(1, len(space), size=len(inputs))) % len(space)


def _words(space: EmbeddingSpace) -> NDArray[np.int64]:
    return np.linspace(0, len(space) - 1, WORDS).round().astype(np.int64)


def _drawn(space: EmbeddingSpace, epsilon: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = keyed_generator(0, "draws", repr(epsilon))
    inputs = np.repeat(_words(space), DRAWS)
    return inputs, CalibratedExponential(space, epsilon).sample(inputs, rng)


def _related(
    inputs: NDArray[np.int64],
    outputs: NDArray[np.int64],
    ancestors: dict[int, set[int]],
    parents: dict[int, set[int]],
) -> NDArray[np.float64]:
    """Return the shares of hypernyms, and of siblings that are none."""
    nothing: set[int] = set()
    hypernyms = siblings = 0
    for word, output in zip(inputs.tolist(), outputs.tolist(), strict=True):
        if output in ancestors.get(word, nothing):
            hypernyms += 1
        elif parents.get(word, nothing) & parents.get(output, nothing):
            siblings += 1
    return np.array([hypernyms, siblings]) / len(inputs)


if __name__ == "__main__":
    sys.exit(main())

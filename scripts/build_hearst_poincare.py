"""Build hearst-poincare, the space of is-a pairs found in texts, into artifacts/.

    pip install 'hf-dxprivacy[train,report]'
    apt-get install wordnet-base
    python scripts/build_hearst_poincare.py hearst_counts.txt.gz --checkpoints out

The pairs are those of Roller, Kiela & Nickel, "Hearst patterns revisited: automatic hypernym
detection from large text corpora" (ACL 2018), hearst_counts.txt.gz of
https://github.com/facebookresearch/hypernymysuite, under CC BY-NC 4.0. WordNet 3.0 tells which
words are plurals of which. What is made with WebIsADB as well is under CC BY-NC-SA 3.0, so that
what ships is made without it; give --also and --output to make such a space.
"""

import argparse
import gzip
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from build_builtin_spaces import save, versions

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.text.stopwords import ENGLISH
from hf_dxprivacy.training import PoincareConfig, Relations, WebIsADB, read_webisadb
from hf_dxprivacy.training.poincare import train_space
from hf_dxprivacy.training.webisadb import webisadb_origin
from hf_dxprivacy.training.wordnet import (
    DEFAULT_PATH,
    Morphology,
    is_word,
    read_licence,
    read_morphology,
)

ARTIFACTS = Path(__file__).resolve().parents[1] / "artifacts"
NAME = "hearst-poincare"
SOURCE = {
    "source": "Hearst patterns in Wikipedia and Gigaword (Roller, Kiela and Nickel, ACL 2018)",
    "licence": "cc-by-nc-4.0",
    "language": "en",
}
LICENCE = """hearst-poincare

Made from hearst_counts.txt.gz by Stephen Roller, Douwe Kiela and Maximilian Nickel, published with
their paper "Hearst Patterns Revisited: Automatic Hypernym Detection from Large Text Corpora" (ACL
2018) at https://github.com/facebookresearch/hypernymysuite, (c) Facebook, Inc. and its affiliates,
under the Creative Commons Attribution-NonCommercial 4.0 International licence (CC BY-NC 4.0):
https://creativecommons.org/licenses/by-nc/4.0/legalcode

Changes: pairs were filtered, phrases replaced by their heads, plurals added, and points of a ball
and a tree over them computed from the pairs; the pairs themselves are not part of this folder. The
files of this folder are under the same licence: they may be shared and changed with attribution,
and not for commercial purposes. They come without warranty of any kind.

Which words are plurals comes from WordNet 3.0, under this licence:

"""
FILTERS: dict[str, Any] = {
    "min_frequency": 2,
    "min_links": 1,
    "phrases": "head",
    "max_classes": 5,
    "acyclic": True,
    "connected": True,
}
# More dimensions tell nodes apart sooner.
RECIPES = {
    10: PoincareConfig(
        epochs=300,
        learning_rate=0.04,
        burn_in=10,
        burn_in_rate=0.08,
        negatives=200,
        refinement=60,
    ),
    100: PoincareConfig(
        epochs=60,
        learning_rate=0.08,
        burn_in=5,
        burn_in_rate=0.08,
        negatives=100,
        refinement=20,
    ),
}


def read(paths: Iterable[Path]) -> WebIsADB:
    """Read the pairs between any two single words; of phrases the heads."""
    files = list(paths)
    names: set[str] = set()
    with gzip.open(files[0], "rt", encoding="utf-8") as lines:
        for line in lines:
            names.update(line.lower().rpartition("\t")[0].replace("\t", "_").split("_"))
    return read_webisadb(files, vocabulary=filter(is_word, names), **FILTERS)


def with_plurals(relations: Relations, words: Iterable[str], morphology: Morphology) -> Relations:
    """Give inflected forms of nouns among some words the classes of the noun, and the noun itself.

    The patterns' pairs are of base forms, and texts are not. The nodes are in the order of the
    words, and then of the number of pairs that they are in.
    """
    above: dict[str, list[str]] = {}
    for node, top in relations.pairs.tolist():
        above.setdefault(relations.nodes[node], []).append(relations.nodes[top])
    known, common = set(relations.nodes), list(words)
    pairs = {(node, top) for node, tops in above.items() for top in tops}
    # "Was" and "has" are no plurals.
    for form in filter(is_word, common):
        if form not in known and form not in ENGLISH:
            for base in known.intersection(morphology.bases(form, ("noun",))):
                pairs.update((form, top) for top in (base, *above.get(base, ())))
    rank = {word: place for place, word in enumerate(common)}
    degree = dict(zip(relations.nodes, relations.degrees().tolist(), strict=True))
    names = {name for pair in pairs for name in pair}
    order = sorted(names, key=lambda name: (rank.get(name, len(rank)), -degree.get(name, 0), name))
    return Relations.from_names(pairs, order)


def rounded(space: EmbeddingSpace) -> EmbeddingSpace:
    """Return the space as it is stored, in single precision, at unit distance."""
    vectors = space.vectors.astype(np.float32)
    step = EmbeddingSpace.from_vectors(space.words, vectors, "poincare").unit_distance
    return EmbeddingSpace.from_vectors(
        space.words, vectors, "poincare", 1.0 / step, space.provenance
    )


def main() -> int:
    """Read, train and save."""
    arguments = parse_arguments()
    found = read([arguments.pairs, *arguments.also])
    print(found.summary)
    words = EmbeddingSpace.from_pretrained("english").words
    relations = with_plurals(found, words, read_morphology(arguments.wordnet))
    origin = webisadb_origin(found, FILTERS)
    if not arguments.also:
        licence = LICENCE + read_licence(arguments.wordnet)
        origin |= SOURCE | {"licence_file": "LICENSE", "licence_text": licence}
    plurals = f"{len(relations.nodes) - len(found.nodes)} plurals, by WordNet 3.0"
    origin |= {"added": plurals, "script": f"scripts/{Path(__file__).name}", "versions": versions()}
    for dim in arguments.dims:
        name = NAME if dim == min(RECIPES) else f"{NAME}-{dim}d"
        space = train_space(
            *(relations, dim, RECIPES[dim]),
            provenance=origin,
            threads=arguments.threads,
            checkpoint=arguments.checkpoints and arguments.checkpoints / f"{name}.npz",
        )
        folder = arguments.output / name
        save(rounded(space).build_hierarchy(), folder, np.float32, {})
        EmbeddingSpace.from_pretrained(folder).write_card(folder)
    return 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("pairs", type=Path, help="hearst_counts.txt.gz")
    add("--also", type=Path, nargs="+", default=[], help="files to add up with it")
    add("--wordnet", default=DEFAULT_PATH, help="folder of the database (%(default)s)")
    add("--dims", type=int, nargs="+", choices=RECIPES, default=[10], help="of the balls")
    add("--threads", type=int, default=1, help="with 1 (default) the result is reproducible")
    add("--checkpoints", type=Path, help="folder from which an interrupted training goes on")
    add("--output", type=Path, default=ARTIFACTS, help="folder for the spaces (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Build the two spaces that ship inside the package from the WordNet 3.0 database.

    pip install 'hf-dxprivacy[train]'
    apt-get install wordnet-base
    python scripts/build_builtin_spaces.py

The database files come with Debian's package wordnet-base (Ubuntu's too), in /usr/share/wordnet;
give another folder with --wordnet. Nothing else is read. With more dimensions:

    python scripts/build_builtin_spaces.py --only wordnet-poincare --dim 100 --output spaces
"""

import argparse
import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.hub.writing import write_artifact
from hf_dxprivacy.mechanisms.certificate import certify
from hf_dxprivacy.report import measure
from hf_dxprivacy.spaces import space_artifact
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.text.slurs import is_slur
from hf_dxprivacy.training.gloss import GlossConfig, frequent_words, train_gloss
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.poincare import train_poincare
from hf_dxprivacy.training.ranking import reconstruction
from hf_dxprivacy.training.relations import Relations, read_wordnet
from hf_dxprivacy.training.wordnet import (
    DEFAULT_PATH,
    LICENCE_FILE,
    read_licence,
    read_morphology,
    read_synsets,
    read_tag_counts,
    wordnet_origin,
)

GLOSS, POINCARE = "wordnet-gloss", "wordnet-poincare"
BUILTIN = Path(__file__).resolve().parents[1] / "hf_dxprivacy" / "builtin"
DATABASE = [
    f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv")
]

# Noun lemmas with fewer direct hypernyms and hyponyms are kept only if the glosses use them.
LINKS = 2
SENSES = 1
DIM = 10

# Least and largest ε for which the calibrated mechanism finds its levels in the artifact. It is
# somewhat more than 1 to 16: a suggestion divides these by the median step, which is rounded.
CERTIFIED = (0.98, 16.2)

# A steep loss and many negatives, for long, put the classes of a word first. Drawing more of them
# among words with many relations keeps siblings near, which near negatives would drive apart.
POINCARE_RECIPE = PoincareConfig(
    epochs=150,
    learning_rate=0.1,
    negatives=200,
    negative_exponent=0.25,
    near_negatives=0.0,
    sharpness=4.0,
)


def main() -> int:
    """Build what is asked for."""
    arguments = parse_arguments()
    gloss_folder, poincare_folder = arguments.output / GLOSS, arguments.output / POINCARE
    if arguments.only in (None, GLOSS):
        space = without_slurs(train_gloss(arguments.wordnet))
        save_wordnet(space, gloss_folder, arguments.wordnet, np.float16)
    if arguments.only in (None, POINCARE):
        space = without_slurs(build_poincare(arguments.wordnet, arguments.dim, arguments.threads))
        save_wordnet(space, poincare_folder, arguments.wordnet, np.float64)
    return 0


def wordnet_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows where WordNet is and where the result goes."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--wordnet",
        type=Path,
        default=Path(DEFAULT_PATH),
        help="folder of the WordNet 3.0 database (Debian: wordnet-base; default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, default=BUILTIN, help="default: the package itself")
    return parser


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = wordnet_parser(__doc__)
    parser.add_argument("--only", choices=(GLOSS, POINCARE), help="default: both")
    parser.add_argument("--dim", type=int, default=DIM, help=f"of {POINCARE} (%(default)s)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help=f"threads that train {POINCARE}; with 1 (default) the result is reproducible",
    )
    return parser.parse_args()


def without_slurs(space: EmbeddingSpace) -> EmbeddingSpace:
    """Return the space less the rows of the words that no vocabulary may hold, at unit distance.

    They take part in the training, so that a longer list does not move the other words.
    """
    kept = [row for row, word in enumerate(space.words) if not is_slur(word)]
    gone = len(space) - len(kept)
    provenance = space.provenance | {
        "left_out": f"{gone} words of hf_dxprivacy/text/slurs.txt, after the training"
    }
    words, vectors = [space.words[row] for row in kept], space.vectors[kept]
    found = EmbeddingSpace.from_vectors(words, vectors, space.metric, space.scale)
    nearest = found.neighbour_distances((1,))[1]
    if space.metric == "poincare":
        scale = space.scale / nearest
        return EmbeddingSpace.from_vectors(words, vectors, "poincare", scale, provenance)
    # Rounded as it is stored, before anything is measured.
    stored = (vectors / nearest).astype(np.float16)
    return EmbeddingSpace.from_vectors(words, stored, provenance=provenance)


def build_poincare(wordnet: Path, dim: int, threads: int) -> EmbeddingSpace:
    """Train wordnet-poincare on the single-word noun lemmas that are common or well connected."""
    synsets, morphology = read_synsets(wordnet), read_morphology(wordnet)
    common = frequent_words(synsets, morphology, read_tag_counts(wordnet), GlossConfig().size)
    relations = noun_relations(wordnet, common)
    # Classes drawn to their direct members as well come to lie among them, not all at the centre.
    both_ways = relations.joined(relations.direct().reversed())
    space = train_poincare(both_ways, dim, POINCARE_RECIPE, threads=threads)
    print(reconstruction(space, relations, sample=2000))
    provenance = space.provenance["recipe"] | {
        "relations": len(relations),
        "reversed_direct_relations": len(both_ways) - len(relations),
        "links": LINKS,
        "max_senses": SENSES,
    }
    return EmbeddingSpace(space.words, space.vectors, "poincare", provenance={"recipe": provenance})


def noun_relations(wordnet: Path, common: Sequence[str]) -> Relations:
    """Return the word-level closure of is-a over the nouns to embed, most common word first."""
    direct = read_wordnet(wordnet, nodes="words", closure=False, max_senses=SENSES)
    linked = [direct.nodes[row] for row in np.flatnonzero(direct.degrees() >= LINKS)]
    closed = read_wordnet(wordnet, nodes="words", max_senses=SENSES)
    kept = closed.among({*common, *linked})
    names = ((kept.nodes[node], kept.nodes[above]) for node, above in kept.pairs)
    rank = {word: place for place, word in enumerate(common)}
    order = sorted(kept.nodes, key=lambda word: (rank.get(word, len(rank)), word))
    return Relations.from_names(names, nodes=order)


def save_wordnet(
    space: EmbeddingSpace, folder: Path, wordnet: Path, dtype: type[np.floating]
) -> None:
    """Save a space of WordNet with the tree of its vectors."""
    described = EmbeddingSpace.from_vectors(
        space.words, space.vectors, space.metric, space.scale, origin(wordnet) | space.provenance
    )
    licences = {LICENCE_FILE: read_licence(wordnet)}
    save(described.build_hierarchy(), folder, dtype, licences)


def save(
    space: EmbeddingSpace,
    folder: Path,
    dtype: type[np.floating],
    licences: Mapping[str, str],
) -> None:
    """Write a space with its tree, its licences, its certified levels and measured figures.

    Args:
        space: The space, with a tree.
        folder: Where to.
        dtype: How the vectors are stored.
        licences: Texts by the names of their files.
    """
    assert space.hierarchy is not None
    vectors = space.vectors.astype(dtype)
    config: dict[str, Any] = {
        "metric": space.metric,
        "scale": space.scale,
        "provenance": space.provenance,
        "neighbour_distances": {str(k): d for k, d in space.neighbour_distances().items()},
    } | ({"shapes": list(space.shapes)} if space.shapes else {})
    write_artifact(folder, vectors=vectors, words=space.words, config=config)
    stored = EmbeddingSpace.from_pretrained(folder).with_hierarchy(space.hierarchy)
    certify(stored, *CERTIFIED)
    stored = measure(stored)
    entries, files = space_artifact.written_parts(stored)
    config |= {"certificates": stored.certificates, "figures": stored.figures, **entries}
    files |= {name: [text.encode()] for name, text in licences.items()}
    write_artifact(folder, vectors=vectors, words=space.words, config=config, files=files)
    print(f"{folder.name}: {space!r}, {space.hierarchy!r}, {space.neighbour_distances()}")


def origin(wordnet: Path) -> dict[str, Any]:
    """Describe the source and the software."""
    digest = hashlib.sha256()
    for name in DATABASE:
        digest.update((wordnet / name).read_bytes())
    return {
        **wordnet_origin(wordnet),
        "source_package": debian_package(),
        "source_sha256": digest.hexdigest(),
        "script": f"scripts/{Path(__file__).name}",
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the software that the spaces depend on."""
    names = ("hf-dxprivacy", "numpy", "scipy", "numba")
    return {name: importlib.metadata.version(name) for name in names}


def debian_package() -> str | None:
    """Return name and version of the package that brings WordNet, if there is one."""
    if shutil.which("dpkg-query") is None:
        return None
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version}", "wordnet-base"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())

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
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.cards import measure
from hf_dxprivacy.hub.folder import update_config, write_artifact
from hf_dxprivacy.mechanisms.certificate import certify
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.artifact import WORDNET_LICENCE_FILE, wordnet_origin
from hf_dxprivacy.training.evaluation import reconstruction
from hf_dxprivacy.training.gloss import train_gloss
from hf_dxprivacy.training.poincare import train_poincare
from hf_dxprivacy.training.recipe import PoincareRecipe
from hf_dxprivacy.training.relations import Relations, read_wordnet
from hf_dxprivacy.training.wordnet import DEFAULT_PATH, read_licence

GLOSS, POINCARE = "wordnet-gloss", "wordnet-poincare"
BUILTIN = Path(__file__).resolve().parents[1] / "hf_dxprivacy" / "builtin"
DATABASE = [
    f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv")
]

# Noun lemmas with fewer direct hypernyms and hyponyms are kept only if the glosses use them.
LINKS = 2
SENSES = 1
DIM = 10

# Least and largest ε for which the calibrated mechanism finds its levels in the artifact.
CERTIFIED = (1.0, 16.0)

# A steep loss and many negatives, for long, put the classes of a word first. Drawing more of them
# among words with many relations keeps siblings near, which near negatives would drive apart.
POINCARE_RECIPE = PoincareRecipe(
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
        save(build_gloss(arguments.wordnet), gloss_folder, arguments.wordnet, np.float16)
    if arguments.only in (None, POINCARE):
        gloss = EmbeddingSpace.from_pretrained(GLOSS if arguments.only else gloss_folder)
        space = build_poincare(arguments.wordnet, gloss.words, arguments.dim, arguments.threads)
        save(space, poincare_folder, arguments.wordnet, np.float64)
    return 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--wordnet",
        type=Path,
        default=Path(DEFAULT_PATH),
        help="folder of the WordNet 3.0 database (Debian: wordnet-base; default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, default=BUILTIN, help="default: the package itself")
    parser.add_argument("--only", choices=(GLOSS, POINCARE), help="default: both")
    parser.add_argument("--dim", type=int, default=DIM, help=f"of {POINCARE} (%(default)s)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help=f"threads that train {POINCARE}; with 1 (default) the result is reproducible",
    )
    return parser.parse_args()


def build_gloss(wordnet: Path) -> EmbeddingSpace:
    """Train wordnet-gloss."""
    return train_gloss(wordnet)


def build_poincare(
    wordnet: Path, common: tuple[str, ...], dim: int, threads: int
) -> EmbeddingSpace:
    """Train wordnet-poincare on the single-word noun lemmas that are common or well connected."""
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
    return EmbeddingSpace(
        space.words,
        space.vectors,
        "poincare",
        scale=1.0 / space.neighbour_distances((1,))[1],
        provenance={"recipe": provenance},
    )


def noun_relations(wordnet: Path, common: tuple[str, ...]) -> Relations:
    """Return the word-level closure of is-a over the nouns to embed, most common word first."""
    direct = read_wordnet(wordnet, nodes="words", closure=False, max_senses=SENSES)
    linked = [direct.nodes[row] for row in np.flatnonzero(direct.degrees() >= LINKS)]
    closed = read_wordnet(wordnet, nodes="words", max_senses=SENSES)
    kept = closed.among({*common, *linked})
    names = ((kept.nodes[node], kept.nodes[above]) for node, above in kept.pairs)
    rank = {word: place for place, word in enumerate(common)}
    order = sorted(kept.nodes, key=lambda word: (rank.get(word, len(rank)), word))
    return Relations.from_names(names, nodes=order)


def save(space: EmbeddingSpace, folder: Path, wordnet: Path, dtype: type[np.floating]) -> None:
    """Write a space with its licence, its origin, its certified levels and measured figures."""
    config = {
        "metric": space.metric,
        "scale": space.scale,
        "provenance": origin(wordnet) | space.provenance,
        "neighbour_distances": {str(k): d for k, d in space.neighbour_distances().items()},
    }
    write_artifact(folder, vectors=space.vectors.astype(dtype), words=space.words, config=config)
    (folder / WORDNET_LICENCE_FILE).write_text(read_licence(wordnet), encoding="utf-8")
    stored = EmbeddingSpace.from_pretrained(folder)
    certify(stored, *CERTIFIED)
    measure(stored)
    update_config(folder, {"certificates": stored.certificates, "figures": stored.figures})
    print(f"{folder.name}: {len(space)} words x {space.dim}, {space.neighbour_distances()}")


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
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("hf-dxprivacy", "numpy", "scipy", "numba")
        },
    }


def debian_package() -> str | None:
    """Return name and version of the package that brings WordNet, if there is one."""
    if shutil.which("dpkg-query") is None:
        return None
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version}", "wordnet-base"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())

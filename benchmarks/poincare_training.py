"""Poincaré training on WordNet's nouns: quality by dimension, and speed beside gensim.

    python benchmarks/poincare_training.py --dims 5 10 100
    python benchmarks/poincare_training.py --task mammals --dims 2 5 10
    python benchmarks/poincare_training.py --task gensim

Needs the WordNet 3.0 database (Debian: wordnet-base) and the extra ``train``. The published figures
are for the same relations: [N] Nickel & Kiela (NIPS 2017), Table 1; [L] the same (ICML 2018), Table
2. gensim is installed into an environment of its own and trains in one process and one thread, as
it does; so do we for that comparison, with the same relations, dimensions, epochs and number of
negatives. gensim draws them for each relation, we for each node with all its relations. What is
compared is the time of the processor, which other work on the machine does not change much.
"""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.training import (
    PoincareRecipe,
    Relations,
    depth_correlation,
    read_wordnet,
    reconstruction,
    train_poincare,
)

NOUNS = PoincareRecipe(
    epochs=500, learning_rate=0.04, final_rate=0.1, burn_in=10, burn_in_rate=0.08, negatives=200
)
MAMMALS = PoincareRecipe(epochs=600, learning_rate=0.03)
RECIPES = {"nouns": NOUNS, "mammals": MAMMALS}

# Mean rank and mean average precision of the nouns.
PUBLISHED = {
    5: {"[N] Poincaré": (4.9, 0.823), "[L] Lorentz": (3.18, 0.923)},
    10: {"[N] Poincaré": (4.02, 0.851), "[L] Lorentz": (2.95, 0.928)},
    100: {"[N] Poincaré": (3.9, 0.857)},
}

GENSIM_DIM, GENSIM_EPOCHS, GENSIM_NEGATIVES = 10, 50, 10
GENSIM_BURN_IN = 10
# gensim's default.
GENSIM_RATE = 0.1

GENSIM = """
import sys, time
import numpy as np
from gensim.models.poincare import PoincareModel
source, target, dim, negatives, epochs, burn_in = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
pairs = [tuple(pair) for pair in np.load(source).tolist()]
model = PoincareModel(
    [(str(a), str(b)) for a, b in pairs], size=dim, negative=negatives, burn_in=burn_in, seed=1
)
started = time.process_time()
model.train(epochs=epochs - burn_in)
seconds = time.process_time() - started
rows = [int(key) for key in model.kv.index_to_key]
np.savez(target, rows=rows, vectors=model.kv.vectors, seconds=seconds)
"""


def main() -> None:
    """Run what is asked for and print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--task", choices=("nouns", "mammals", "gensim"), default="nouns")
    arguments.add_argument("--dims", type=int, nargs="+", default=[5, 10])
    arguments.add_argument("--epochs", type=int, help="instead of those of the recipe")
    arguments.add_argument("--threads", type=int, help="default: all processors")
    arguments.add_argument("--save", type=Path, help="folder for checkpoints and trained spaces")
    options = arguments.parse_args()
    nouns = read_wordnet()
    if options.task == "gensim":
        common.report(
            "Poincaré training beside gensim", beside_gensim(mammals(nouns)), options.json
        )
        return
    relations = nouns if options.task == "nouns" else mammals(nouns)
    recipe = RECIPES[options.task]
    if options.epochs:
        recipe = replace(recipe, epochs=options.epochs)
    rows: list[dict[str, Any]] = []
    for dim in options.dims:
        rows.append(trained(relations, dim, recipe, options.threads, options.save))
        if options.task == "nouns":
            rows += published(dim)
        print(rows, flush=True)
    title = f"{len(relations):,} relations of {len(relations.nodes):,} {options.task}"
    common.report(title, rows, options.json)


def mammals(nouns: Relations) -> Relations:
    """Return the closure of what is below mammal.n.01."""
    top = nouns.nodes.index("mammal.n.01")
    below = nouns.pairs[nouns.pairs[:, 1] == top, 0]
    return nouns.among({"mammal.n.01", *(nouns.nodes[row] for row in below)})


def trained(
    relations: Relations,
    dim: int,
    recipe: PoincareRecipe,
    threads: int | None,
    folder: Path | None,
) -> dict[str, Any]:
    """Train and rank from all nodes; the time is that of the training."""
    checkpoint = folder and folder / f"{len(relations.nodes)}-{dim}.npz"
    started = time.perf_counter()
    space = train_poincare(relations, dim, recipe, threads=threads, checkpoint=checkpoint)
    seconds = time.perf_counter() - started
    if folder:
        space.save_pretrained(folder / f"{len(relations.nodes)}-{dim}")
    found = reconstruction(space, relations)
    return {
        "dimensions": dim,
        "system": recipe.parametrisation,
        "mean rank": found.mean_rank,
        "MAP": found.mean_average_precision,
        "depth correlation": depth_correlation(space, relations),
        "minutes": seconds / 60.0,
        "threads": space.provenance["recipe"]["threads"],
        "epochs": recipe.epochs,
    }


def published(dim: int) -> list[dict[str, Any]]:
    """Return the printed figures of a dimension."""
    return [
        {"dimensions": dim, "system": system, "mean rank": rank, "MAP": precision}
        for system, (rank, precision) in PUBLISHED.get(dim, {}).items()
    ]


def beside_gensim(relations: Relations) -> Sequence[dict[str, Any]]:
    """Train with gensim and with us, one after the other."""
    settings = (GENSIM_DIM, GENSIM_NEGATIVES, GENSIM_EPOCHS, GENSIM_BURN_IN)
    python = common.peer_python("gensim", "gensim==4.4.0")
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "pairs.npy", Path(folder) / "vectors.npz"
        np.save(source, relations.pairs)
        subprocess.run([python, "-c", GENSIM, source, target, *map(str, settings)], check=True)
        peer = np.load(target)
    words = [relations.nodes[row] for row in peer["rows"]]
    rows = [_beside("gensim", float(peer["seconds"]), words, peer["vectors"], relations)]
    for parametrisation in ("poincare", "lorentz"):
        recipe = PoincareRecipe(
            parametrisation,
            epochs=GENSIM_EPOCHS,
            burn_in=GENSIM_BURN_IN,
            learning_rate=GENSIM_RATE,
            negatives=GENSIM_NEGATIVES,
        )
        # Compiling is not training.
        train_poincare(relations, GENSIM_DIM, replace(recipe, epochs=1), threads=1, progress=False)
        started = time.process_time()
        space = train_poincare(relations, GENSIM_DIM, recipe, threads=1, progress=False)
        seconds = time.process_time() - started
        rows.append(_beside(parametrisation, seconds, space.words, space.vectors, relations))
    for row in rows:
        row["times gensim"] = rows[0]["CPU seconds"] / row["CPU seconds"]
    return rows


def _beside(
    system: str, seconds: float, words: Sequence[str], vectors: Any, relations: Relations
) -> dict[str, Any]:
    found = reconstruction(EmbeddingSpace.from_vectors(words, vectors, "poincare"), relations)
    return {
        "system": system,
        "CPU seconds": seconds,
        "relations per CPU second": GENSIM_EPOCHS * len(relations) / seconds,
        "MAP": found.mean_average_precision,
        "mean rank": found.mean_rank,
    }


if __name__ == "__main__":
    main()

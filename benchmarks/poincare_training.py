"""Poincaré training on WordNet's nouns: quality by dimension, and speed beside gensim.

    python benchmarks/poincare_training.py --task gensim
    python benchmarks/poincare_training.py --task mammals --dims 2 5 10
    python benchmarks/poincare_training.py --task nouns --dims 5 10
    python benchmarks/poincare_training.py --task nouns --dims 100 --epochs 150

Needs the WordNet 3.0 database (Debian: wordnet-base) and the extra ``train``. The published figures
are for the same relations: [N] Nickel & Kiela (NIPS 2017), Table 1; [L] the same (ICML 2018), Table
2. gensim is installed into an environment of its own and trains in one process and one thread, as
it does; so do we for that comparison, with the same relations, dimensions and epochs. gensim draws
negatives for each relation, we for each node with all its relations, and as many in an epoch. What
is compared is the time of the processor, which other work on the machine does not change much.
"""

import argparse
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
    PoincareConfig,
    Relations,
    depth_correlation,
    read_wordnet,
    reconstruction,
    train_poincare,
)

NOUNS = PoincareConfig(
    epochs=300,
    learning_rate=0.04,
    burn_in=10,
    burn_in_rate=0.08,
    negatives=200,
    refinement=120,
    refinement_rank_weight=30.0,
)
MAMMALS = PoincareConfig(epochs=600, learning_rate=0.03)
CONFIGS = {"nouns": NOUNS, "mammals": MAMMALS}

# Mean rank and mean average precision of the nouns.
PUBLISHED = {
    5: {"[N] Poincaré": (4.9, 0.823), "[L] Lorentz": (3.18, 0.923)},
    10: {"[N] Poincaré": (4.02, 0.851), "[L] Lorentz": (2.95, 0.928)},
    100: {"[N] Poincaré": (3.9, 0.857)},
}

DIM, EPOCHS, BURN_IN = 10, 50, 10
# Negatives that gensim draws for each relation, by its default.
NEGATIVES = 10
# Its default and what it does best with; and what we do best with.
GENSIM_RATES, RATE = (0.1, 0.4), 0.15

GENSIM = """
import sys, time
import numpy as np
from gensim.models.poincare import PoincareModel
source, target, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
dim, negatives, epochs, burn_in = map(int, sys.argv[4:])
pairs = [tuple(pair) for pair in np.load(source).tolist()]
model = PoincareModel(
    [(str(a), str(b)) for a, b in pairs],
    size=dim, negative=negatives, burn_in=burn_in, alpha=rate, seed=1,
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
    arguments.add_argument("--task", choices=("nouns", "mammals", "gensim"), default="gensim")
    arguments.add_argument("--dims", type=int, nargs="+", default=[5, 10])
    arguments.add_argument(
        "--epochs", type=int, help="before the refinement, instead of those of the recipe"
    )
    arguments.add_argument("--refinement", type=int, help="epochs of it")
    arguments.add_argument("--rank-weight", type=float, help="in it")
    arguments.add_argument("--threads", type=int, help="default: all processors")
    arguments.add_argument("--sample", type=int, help="nodes to rank from instead of all")
    arguments.add_argument("--save", type=Path, help="folder for checkpoints and trained spaces")
    options = arguments.parse_args()
    nouns = read_wordnet()
    if options.task == "gensim":
        common.report(
            "Poincaré training beside gensim",
            beside_gensim(nouns.below("mammal.n.01")),
            options.json,
        )
        return
    relations = nouns if options.task == "nouns" else nouns.below("mammal.n.01")
    asked = {
        "epochs": options.epochs,
        "refinement": options.refinement,
        "refinement_rank_weight": options.rank_weight,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    config = replace(CONFIGS[options.task], **given)
    rows = []
    for dim in options.dims:
        rows.append(trained(relations, dim, config, options))
        if options.task == "nouns":
            rows += published(dim)
        print(rows, flush=True)
    title = f"{len(relations):,} relations of {len(relations.nodes):,} {options.task}"
    common.report(title, rows, options.json)


def trained(
    relations: Relations, dim: int, config: PoincareConfig, options: argparse.Namespace
) -> dict[str, Any]:
    """Train and rank; the time is that of the training."""
    name = f"{len(relations.nodes)}-{dim}"
    checkpoint = options.save and options.save / f"{name}.npz"
    started, worked = time.perf_counter(), time.process_time()
    space = train_poincare(relations, dim, config, threads=options.threads, checkpoint=checkpoint)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    if options.save:
        space.save_pretrained(options.save / name)
    found = reconstruction(space, relations, options.sample)
    return {
        "dimensions": dim,
        "system": "train_poincare",
        "mean rank": found.mean_rank,
        "without the worst hundredth": found.trimmed_mean_rank,
        "MAP": found.mean_average_precision,
        "depth correlation": depth_correlation(space, relations),
        "epochs": config.all_epochs,
        "minutes": seconds / 60.0,
        "CPU minutes": work / 60.0,
        "threads": space.provenance["recipe"]["threads"],
        "ranked from": found.nodes,
    }


def published(dim: int) -> list[dict[str, Any]]:
    """Return the printed figures of a dimension."""
    return [
        {"dimensions": dim, "system": system, "mean rank": rank, "MAP": precision}
        for system, (rank, precision) in PUBLISHED.get(dim, {}).items()
    ]


def beside_gensim(relations: Relations) -> Sequence[dict[str, Any]]:
    """Train with gensim and with us, one after the other."""
    rows = [by_gensim(relations, rate) for rate in GENSIM_RATES]
    rows.append(by_us(relations))
    for row in rows:
        row["times gensim"] = rows[0]["CPU seconds"] / row["CPU seconds"]
    return rows


def by_gensim(relations: Relations, rate: float) -> dict[str, Any]:
    """Train with gensim."""
    settings = map(str, (rate, DIM, NEGATIVES, EPOCHS, BURN_IN))
    python = common.peer_python("gensim", "gensim==4.4.0")
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "pairs.npy", Path(folder) / "vectors.npz"
        np.save(source, relations.pairs)
        subprocess.run([python, "-c", GENSIM, source, target, *settings], check=True)
        peer = np.load(target)
    words = [relations.nodes[row] for row in peer["rows"]]
    space = EmbeddingSpace.from_vectors(words, peer["vectors"], "poincare")
    return _beside("gensim", rate, float(peer["seconds"]), space, relations)


def by_us(relations: Relations) -> dict[str, Any]:
    """Train on one thread, with as many negatives in all as gensim draws."""
    config = PoincareConfig(
        epochs=EPOCHS,
        burn_in=BURN_IN,
        learning_rate=RATE,
        negatives=round(NEGATIVES * len(relations) / len(np.unique(relations.pairs[:, 0]))),
        near_negatives=0.0,
    )
    # Compiling is not training.
    train_poincare(relations, DIM, replace(config, epochs=1), threads=1, progress=False)
    started = time.process_time()
    space = train_poincare(relations, DIM, config, threads=1, progress=False)
    return _beside("train_poincare", RATE, time.process_time() - started, space, relations)


def _beside(
    system: str, rate: float, seconds: float, space: EmbeddingSpace, relations: Relations
) -> dict[str, Any]:
    found = reconstruction(space, relations)
    return {
        "system": system,
        "learning rate": rate,
        "CPU seconds": seconds,
        "relations per CPU second": EPOCHS * len(relations) / seconds,
        "MAP": found.mean_average_precision,
        "mean rank": found.mean_rank,
    }


if __name__ == "__main__":
    main()

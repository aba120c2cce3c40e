"""Laplace noise with an approximate index against exact search: speed, and agreement with it.

Two vocabularies: GloVe 840B 300-d (33,860 words), and random vectors of the size of all of GloVe,
400,000 × 300. Random vectors have no structure that an index could use, which real ones have: they
are the worst case; a graph over so many takes long to build and is left out unless --kinds asks for
it. Each kind is drawn with the same noise as exact search, so "agreement" is the
part of the words for which both release the same. ε is given as the standard deviation of the noise
along one direction, in median distances to the nearest neighbour.

    python benchmarks/index_speed.py
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms import MultivariateLaplace
from hf_dxprivacy.randomness import keyed_generator

KINDS = ("pq", "ivf", "hnsw")
NOISE = (0.125, 0.25)


def random_space(size: int, dim: int) -> EmbeddingSpace:
    """Return a space of standard normal vectors."""
    vectors = np.random.default_rng(0).standard_normal((size, dim), dtype=np.float32)
    return EmbeddingSpace(tuple(map(str, range(size))), vectors)


def drawn(space: EmbeddingSpace, epsilon: float, index: str, words: int) -> tuple[Any, float]:
    """Return what is released for evenly spaced words, and how many words a second."""
    mechanism = MultivariateLaplace(space, epsilon, index=index)
    ids = np.linspace(0, len(space) - 1, words).astype(np.int64)
    mechanism.sample(ids[:100], keyed_generator(0))
    start = time.perf_counter()
    outputs = mechanism.sample(ids, keyed_generator(1))
    return outputs, words / (time.perf_counter() - start)


def compare(
    name: str, space: EmbeddingSpace, words: int, kinds: Sequence[str] = KINDS
) -> list[dict[str, Any]]:
    """Return the rows of one vocabulary."""
    step = space.neighbour_distances()[1]
    epsilons = {noise: math.sqrt(space.dim) / (noise * step) for noise in NOISE}
    exact = {noise: drawn(space, epsilon, "flat", words) for noise, epsilon in epsilons.items()}
    ids = np.linspace(0, len(space) - 1, words).astype(np.int64)
    rows: list[dict[str, Any]] = [
        {
            "vectors": name,
            "noise": noise,
            "index": "flat",
            "words/s": speed,
            "of flat": 1.0,
            "agreement": 1.0,
            "words kept": float((outputs == ids).mean()),
            "build s": 0.0,
            "MB": 0.0,
        }
        for noise, (outputs, speed) in exact.items()
    ]
    for kind in kinds:
        start = time.perf_counter()
        indexed = space.build_index(kind)
        built = time.perf_counter() - start
        for noise, epsilon in epsilons.items():
            outputs, speed = drawn(indexed, epsilon, kind, words)
            # Again, beside the index: the speed of a machine drifts.
            flat, limit = drawn(space, epsilon, "flat", words)
            rows.append(
                {
                    "vectors": name,
                    "noise": noise,
                    "index": kind,
                    "words/s": speed,
                    "of flat": speed / limit,
                    "agreement": float((outputs == flat).mean()),
                    "words kept": float((outputs == ids).mean()),
                    "build s": built,
                    "MB": indexed.index.content.nbytes / 1e6 if indexed.index else 0.0,
                }
            )
    return rows


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--words", type=int, default=8_192, help="words drawn for each row")
    arguments.add_argument("--size", type=int, default=400_000, help="random vectors")
    arguments.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=["pq", "ivf"], help="for the random vectors"
    )
    options = arguments.parse_args()
    rows = compare("GloVe 33,860 x 300", common.glove(options.data), options.words)
    random = random_space(options.size, 300)
    rows += compare(f"random {options.size:,} x 300", random, options.words, options.kinds)
    common.report("Laplace with an index", rows, options.json)


if __name__ == "__main__":
    main()

"""Ways to find the nearest word to a noisy vector, beside bare faiss search and a bare product.

Words of GloVe 840B (33,860), cut to 50, 100, 200 and 300 dimensions, and random vectors of the size
of all of GloVe, 400,000 × 300, under Laplace noise. All ways answer the same; "of flat" and "of
product" are ratios to `IndexFlatL2.search` and to the matrix product of all queries and vectors in
blocks, taken in turn in one run.

A second table asks what a list of a word's nearest neighbours is good for: the word nearest to
φ(w)+z is w itself if 2‖z‖ is at most the distance to its nearest neighbour, and one of the list if
2‖z‖ is at most the distance to the last of the list. ε is what keeps that part of the words.

    python benchmarks/search_kernels.py
"""

import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import nearest_euclidean
from hf_dxprivacy.search.knn import rank

try:
    import torch
except ImportError:
    torch = None

DIMENSIONS = (50, 100, 200, 300)
FEW = 256
BLOCK = 1024
LISTED = 100
KEPT = (0.5, 0.9, 0.99, 0.999)

Floats = NDArray[np.float32]


def noisy(vectors: Floats, size: int, epsilon: float) -> tuple[NDArray[np.int64], Floats]:
    """Return evenly spaced rows, and their vectors under Laplace noise."""
    rows = np.linspace(0, len(vectors) - 1, size).astype(np.int64)
    noise = multivariate_laplace(keyed_generator(0), size, vectors.shape[1], epsilon)
    return rows, (vectors[rows] + noise).astype(np.float32)


def product(queries: Floats, vectors: Floats) -> None:
    """Multiply block by block into the same memory."""
    for first in range(0, len(vectors), BLOCK):
        transposed = vectors[first : first + BLOCK].T
        out = np.empty((min(BLOCK, len(queries)), transposed.shape[1]), dtype=np.float32)
        for start in range(0, len(queries), BLOCK):
            part = queries[start : start + BLOCK]
            np.matmul(part, transposed, out=out[: len(part)])


def ranked(queries: Floats, vectors: Floats) -> NDArray[np.int64]:
    """Take two candidates from faiss and compare them in float64."""
    return rank(queries, vectors, faiss.knn(queries, vectors, 2)[1])


def torch_product(queries: Floats, vectors: Floats, precision: str) -> Callable[[], object]:
    """Return the work of multiplying in blocks with torch, in some precision."""
    dtype = getattr(torch, precision)
    left, right = (torch.tensor(array, dtype=dtype) for array in (queries, vectors))
    return lambda: [left @ block.T for block in right.split(BLOCK)]


def ways(queries: Floats, vectors: Floats) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    result: dict[str, Callable[[], object]] = {
        "faiss flat": lambda: index.search(queries, 1),
        "product alone": lambda: product(queries, vectors),
        "faiss, two candidates ranked": lambda: ranked(queries, vectors),
        "nearest_euclidean": lambda: nearest_euclidean(queries, vectors),
    }
    if torch is not None:
        for precision in ("float32", "bfloat16"):
            result[f"torch {precision}, product alone"] = torch_product(
                queries[:FEW], vectors, precision
            )
    return result


def compare(
    name: str, vectors: Floats, size: int, rounds: int, epsilon: float
) -> list[dict[str, Any]]:
    """Return the rows of one vocabulary and number of queries."""
    _, queries = noisy(vectors, size, epsilon)
    work = ways(queries, vectors)
    taken: dict[str, list[float]] = {way: [] for way in work}
    for _ in range(rounds):
        for way, run in work.items():
            start = time.perf_counter()
            run()
            share = min(FEW, size) / size if way.startswith("torch") else 1.0
            taken[way].append((time.perf_counter() - start) / share)
    limits = [np.array(taken[way]) for way in ("faiss flat", "product alone")]
    return [
        {
            "vectors": name,
            "queries": size,
            "way": way,
            "queries/s": size / float(np.median(times)),
            "of flat": float(np.median(limits[0] / times)),
            "of product": float(np.median(limits[1] / times)),
        }
        for way, times in taken.items()
    ]


def epsilon_keeping(vectors: Floats, part: float, size: int) -> float:
    """Return the ε under which a part of the words stays, by bisection over one draw of noise."""
    rows = np.linspace(0, len(vectors) - 1, size).astype(np.int64)
    noise = multivariate_laplace(keyed_generator(0), size, vectors.shape[1], 1.0)
    low, high = 1.0, 200.0
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        found = nearest_euclidean(vectors[rows] + noise / middle, vectors)
        low, high = (low, middle) if (found == rows).mean() >= part else (middle, high)
    return high


def pruned(dim: int, vectors: Floats, part: float, size: int) -> dict[str, Any]:
    """Return for how many words neighbour lists decide."""
    epsilon = epsilon_keeping(vectors, part, size)
    rows, queries = noisy(vectors, size, epsilon)
    lengths = np.linalg.norm(queries - vectors[rows], axis=1)
    squared, _ = faiss.knn(vectors[rows], vectors, LISTED + 1)
    nearest, last = np.sqrt(np.maximum(squared[:, [1, LISTED]].T, 0.0))
    return {
        "dimensions": dim,
        "ε": epsilon,
        "words kept": part,
        "nearest neighbour decides": float((2.0 * lengths <= nearest).mean()),
        f"{LISTED} neighbours decide": float((2.0 * lengths <= last).mean()),
    }


def main() -> None:
    """Run everything and print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--queries", type=int, default=8_192)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--size", type=int, default=400_000, help="random vectors")
    arguments.add_argument("--epsilon", type=float, default=10.0)
    options = arguments.parse_args()
    whole = np.asarray(common.glove(options.data).vectors)
    rows, lists = [], []
    for dim in DIMENSIONS:
        vectors = np.ascontiguousarray(whole[:, :dim])
        for size in (FEW, options.queries):
            rows += compare(f"GloVe, {dim}", vectors, size, options.rounds, options.epsilon)
        lists += [pruned(dim, vectors, part, 1024) for part in KEPT if dim in (50, 300)]
    large = np.random.default_rng(0).standard_normal((options.size, 300), dtype=np.float32)
    rows += compare(f"random {options.size:,} x 300", large, 1_024, 1, options.epsilon)
    common.report("Ways to find the nearest word", rows, options.json)
    target = options.json and options.json.with_stem(f"{options.json.stem}_lists")
    common.report("Lists of neighbours", lists, target)


if __name__ == "__main__":
    main()

"""device="cuda" beside the processor, and beside what the card could do at best.

The floor of a search is its operations, 2·V·n for each query, over the rate at which the card
multiplies matrices of that precision, which is measured first: float32 for vectors, float64 in the
ball. "search" has its queries ready; "laplace" and "tem" are whole mechanisms, of which the
processor draws the noise, and every word of "tem" comes for the first time. Words are released by
both devices from one source of noise, and compared: "same" is the part that is equal.

    python benchmarks/gpu.py

Without CUDA it says so and measures nothing. --device cpu:0 runs the same code on the processor.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy._devices import full_float32
from hf_dxprivacy.mechanisms import (
    HyperbolicLaplace,
    Mechanism,
    TruncatedExponential,
    create_mechanism,
)
from hf_dxprivacy.noise import multivariate_laplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import nearest_euclidean
from hf_dxprivacy.search.torch_search import TorchEuclidean
from index_speed import random_space

REPEATS = 5


def matrix_rate(torch: Any, device: str, dtype: Any, size: int) -> float:
    """Return how many operations a second products of square matrices reach."""
    a, b = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))

    def products() -> None:
        with full_float32(torch):
            for _ in range(REPEATS):
                torch.matmul(a, b)
        if a.is_cuda:
            torch.cuda.synchronize(device)

    products()
    return REPEATS * 2.0 * size**3 / common.seconds(products)


def compared(
    what: str,
    there: Callable[[int], Any],
    here: Callable[[int], Any],
    words: tuple[int, int],
    limit: float,
) -> dict[str, Any]:
    """Return the row of a table.

    Args:
        what: Its name.
        there: Does so many words on the device.
        here: The same on the processor.
        words: How many there, and how many here, which may be fewer.
        limit: Words a second that the card could do at best.
    """
    # The device is opened and has the vectors before the clock starts.
    same = there(words[1]) == here(words[1])
    fast = words[0] / common.seconds(lambda: there(words[0]))
    slow = words[1] / common.seconds(lambda: here(words[1]))
    return {
        "what": what,
        "words": words[0],
        "device words/s": fast,
        "cpu words/s": slow,
        "of cpu": fast / slow,
        "limit words/s": limit,
        "of limit": fast / limit,
        "same": float(same.mean()),
    }


def sampled(mechanism: Mechanism) -> Callable[[int], Any]:
    """Return what draws outputs for so many words, none of which it remembers."""

    def work(count: int) -> Any:
        ids = np.arange(count) % len(mechanism.space)
        exponential = isinstance(mechanism, TruncatedExponential)
        fresh = mechanism.to(mechanism.device) if exponential else mechanism
        return fresh.sample(ids, keyed_generator(1))

    return work


def main() -> None:
    """Measure, and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--device", default="cuda", help="(%(default)s)")
    arguments.add_argument("--words", type=int, default=65_536, help="words for the device")
    arguments.add_argument("--cpu-words", type=int, default=4_096, help="words for the processor")
    arguments.add_argument("--size", type=int, default=400_000, help="random vectors")
    arguments.add_argument("--matrix", type=int, default=8_192, help="rows of a square matrix")
    options = arguments.parse_args()
    try:
        import torch
    except ModuleNotFoundError:
        skip("torch is not installed: pip install 'hf-dxprivacy[gpu]'", options)
        return
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        skip("torch finds no CUDA here", options)
        return
    measure(torch, options)


def skip(why: str, options: argparse.Namespace) -> None:
    """Say why nothing is measured."""
    common.report("On a GPU", [{"what": "skipped", "why": why}], options.json)


def measure(torch: Any, options: argparse.Namespace) -> None:
    """Measure everything."""
    device, counts = options.device, (options.words, options.cpu_words)
    single = matrix_rate(torch, device, torch.float32, options.matrix)
    double = matrix_rate(torch, device, torch.float64, options.matrix)
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "processor"
    rows: list[dict[str, Any]] = [
        {"what": f"{name}: float32 TFLOP/s {single / 1e12:.3g}, float64 {double / 1e12:.3g}"}
    ]
    for space in (common.glove(options.data), random_space(options.size, 300)):
        rows += euclidean(space, device, counts, single)
    rows.append(ball(device, counts, double))
    common.report("On a GPU", rows, options.json)


def euclidean(
    space: EmbeddingSpace, device: str, counts: tuple[int, int], rate: float
) -> list[dict[str, Any]]:
    """Return the rows of a vocabulary."""
    size, limit = f"{len(space):,} x {space.dim}", rate / (2.0 * len(space) * space.dim)
    # Noise as long as the distance to the nearest neighbour is at its median.
    epsilon = space.dim / space.neighbour_distances()[1]
    vectors = np.ascontiguousarray(space.vectors)
    search = TorchEuclidean(vectors, device)
    ids = np.arange(max(counts)) % len(space)
    noise = multivariate_laplace(keyed_generator(0), len(ids), space.dim, epsilon)
    queries = (vectors[ids] + noise).astype(np.float32)
    rows = [
        compared(
            f"search {size}",
            lambda count: search.nearest(queries[:count]),
            lambda count: nearest_euclidean(queries[:count], vectors),
            counts,
            limit,
        )
    ]
    for mechanism in ("laplace", "tem"):
        made = create_mechanism(mechanism, space, epsilon if mechanism == "laplace" else 6.0)
        few = (min(counts[0], len(space)), counts[1]) if mechanism == "tem" else counts
        rows.append(
            compared(f"{mechanism} {size}", sampled(made.to(device)), sampled(made), few, limit)
        )
    return rows


def ball(device: str, counts: tuple[int, int], rate: float) -> dict[str, Any]:
    """Return the row of the hyperbolic mechanism."""
    space = EmbeddingSpace.from_pretrained("wordnet-poincare")
    mechanism = HyperbolicLaplace(space, 3.0 * (space.dim - 1) / space.scale)
    limit = rate / (2.0 * len(space) * (space.dim + 2))
    size = f"{len(space):,} x {space.dim}"
    there, here = sampled(mechanism.to(device)), sampled(mechanism)
    return compared(f"hyperbolic {size}", there, here, counts, limit)


if __name__ == "__main__":
    main()

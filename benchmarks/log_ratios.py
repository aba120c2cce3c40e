"""Compare every log-ratio of the mechanisms whose law is known with what they state, on odd spaces.

    python benchmarks/log_ratios.py

For each space, mechanism and ε: all ordered pairs of inputs (the unknown word among them) and all
outputs, against ε·d of the pair. Prints the number of ratios, the largest share of its bound that
one reaches, and how many exceed it; exits with 1 if any does.
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms import create_mechanism

EPSILONS = (0.05, 0.5, 1.5, 4.0, 12.0)
MECHANISMS = ("tem", "calibrated", "hierarchical", "krr")
# Rounding of float64 probabilities and of their logarithms, relative and absolute.
RELATIVE, ABSOLUTE = 1e-9, 1e-9


def spaces(size: int, rng: np.random.Generator) -> Iterator[tuple[str, EmbeddingSpace]]:
    """Make spaces with shapes that are hard on a normaliser, a tree or a rounding."""

    def make(points: NDArray[np.float64], metric: str = "euclidean") -> EmbeddingSpace:
        words = [f"w{chr(97 + i % 26)}{i}" for i in range(len(points))]
        kind = {"dtype": np.float32} if metric == "euclidean" else {"dtype": np.float64}
        return EmbeddingSpace.from_vectors(words, points.astype(**kind), metric=metric)

    normal = rng.normal(size=(size, 8))
    yield "one word", make(normal[:1])
    yield "two words", make(normal[:2])
    yield "normal", make(normal)
    yield "small", make(normal * 1e-3)
    yield "large", make(normal * 1e3)
    yield "many dimensions", make(rng.normal(size=(size, 200)))
    yield "line", make(np.arange(size, dtype=np.float64)[:, None])
    yield "geometric line", make(np.geomspace(1e-3, 1e3, size)[:, None])
    yield "one far word", make(np.vstack([normal[:-1], np.full((1, 8), 500.0)]))
    yield "copies", make(np.repeat(normal[: size // 4], 4, axis=0))
    yield "all the same", make(np.ones((size, 3)))
    yield "crowd and hermits", make(normal * np.where(np.arange(size) % 10, 0.01, 5.0)[:, None])
    yield (
        "nearly copies",
        make(np.repeat(normal[: size // 2], 2, 0) + rng.normal(size=(size // 2 * 2, 8)) * 1e-5),
    )
    directions = rng.normal(size=(size, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    yield "ball", make(directions * rng.uniform(0, 0.9, (size, 1)), "poincare")
    edge = 1.0 - 10.0 ** -rng.uniform(1, 6, (size, 1))
    yield "edge of the ball", make(directions * edge, "poincare")


def main() -> int:
    """Compare, print a line for each space and mechanism, and the sum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=150, help="words of a space")
    parser.add_argument("--seeds", type=int, default=1, help="how often all spaces are made")
    parser.add_argument("--json", help="write the figures to this file, too")
    options = parser.parse_args()
    count = above = 0
    worst: dict[str, float] = {}
    for seed in range(options.seeds):
        for title, space in spaces(options.size, np.random.default_rng(seed)):
            space = space.build_hierarchy(progress=False)
            for name in MECHANISMS:
                for epsilon in EPSILONS:
                    ratios, share, exceeding = compare(space, name, epsilon)
                    count, above = count + ratios, above + exceeding
                    worst[name] = max(worst.get(name, 0.0), share)
                    if exceeding:
                        print(f"{title}, {name}, ε = {epsilon:g}: {exceeding} above, {share:.6f}")
    print(f"{count:,} log-ratios, {above:,} above their bound")
    for name, share in worst.items():
        print(f"{name:<14} reaches {share:.6f} of the bound at most")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"ratios": count, "above": above, "largest_share": worst}, file, indent=2)
    return int(above > 0)


def compare(space: EmbeddingSpace, name: str, epsilon: float) -> tuple[int, float, int]:
    """Return the number of ratios, the largest share of a bound, and how many exceed theirs."""
    mechanism = create_mechanism(name, space, epsilon)
    ids = np.arange(-1, len(space))
    logs = np.log(mechanism.probabilities(ids))
    count = above = 0
    largest = 0.0
    for at, row in enumerate(logs):
        with np.errstate(invalid="ignore"):
            ratios = np.nan_to_num(row - logs, nan=0.0, posinf=np.inf)
        allowed = mechanism.certified_epsilon * mechanism.pair_distances(
            np.full(len(ids), ids[at]), ids
        )
        count += ratios.size
        top = ratios.max(axis=1)
        above += int((ratios > allowed[:, None] * (1 + RELATIVE) + ABSOLUTE).sum())
        apart = allowed > ABSOLUTE
        largest = max(largest, float((top[apart] / allowed[apart]).max(initial=0.0)))
    return count, largest, above


if __name__ == "__main__":
    raise SystemExit(main())

"""Seconds to work out the exact privacy levels of a space for one ε, as `calibrated` first does.

Random spaces of several sizes, and GloVe 840B 300-d with 33,860 words. Time grows with the square
of the vocabulary: the last column scales each row up to 400,000 words.

    python benchmarks/certification.py --sizes 10000 20000 --epsilon 2
"""

import time

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms.certificate import truncation_weight, wanted_steps
from hf_dxprivacy.mechanisms.levels import privacy_curve

LARGE = 400_000


def random_space(size: int, dim: int = 300) -> EmbeddingSpace:
    """Return words at random places, about as far from each other as those of GloVe."""
    vectors = np.random.default_rng(0).normal(size=(size, dim)) * 0.35
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(size)], vectors.astype(np.float32))


def measure(name: str, space: EmbeddingSpace, epsilon: float) -> dict[str, object]:
    """Certify a space anew, whatever is remembered of it."""
    steps = wanted_steps(epsilon, epsilon)
    wall, cpu = time.perf_counter(), time.process_time()
    levels = privacy_curve(space, steps, truncation_weight(len(space), 0.001))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "space": name,
        "words": len(space),
        "dimensions": space.dim,
        "slopes": len(steps),
        "seconds": wall,
        "CPU seconds": cpu,
        "feasible slopes": sum(level <= epsilon for level in levels.values()),
        "CPU hours for 400,000 words": cpu * (LARGE / len(space)) ** 2 / 3600,
    }


def main() -> None:
    """Measure all spaces and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="*", default=[10_000, 20_000])
    arguments.add_argument("--epsilon", type=float, default=2.0)
    options = arguments.parse_args()
    rows = [measure("random", random_space(size), options.epsilon) for size in options.sizes]
    rows.append(measure("GloVe 840B", common.glove(options.data), options.epsilon))
    common.report("Certification for one ε", rows, options.json)


if __name__ == "__main__":
    main()

"""Tokens per second of an exponential mechanism by size of vocabulary, cold, warm and with lists.

"cold" starts with nothing, "again" draws the same corpus once more, "lists" starts with the lists
of neighbours that `build_neighbours` stores. GloVe (33,860 words) with the words of movie reviews,
and random vectors of the same dimensions with a Zipfian corpus. Lists of more words than
``--listed`` are not built, since that takes minutes: 12 for the second line on two cores.

    python benchmarks/exponential_rows.py
    python benchmarks/exponential_rows.py --sizes 400000 --listed 400000 --epsilons 2
    python benchmarks/exponential_rows.py --certify --sizes 20000 --epsilons 2

With --certify: seconds to work out the exact privacy levels of each space for the first ε, as
`calibrated` first does. Time grows with the square of the vocabulary.
"""

import time
from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.mechanisms.certificate import truncation_weight, wanted_steps
from hf_dxprivacy.mechanisms.levels import privacy_curve
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.text import RowReader

SIZES = (10_000, 100_000, 400_000)
LARGE = 400_000
# Random words are about as far from each other as those of GloVe with coordinates of this size.
SPREAD = 0.35
DIM = 300


def zipfian(size: int, tokens: int) -> NDArray[np.int64]:
    """Return ids of a corpus in which the r-th word has a frequency ∝ 1/r."""
    cumulative = np.cumsum(1.0 / np.arange(1, size + 1))
    uniform = np.random.default_rng(1).random(tokens)
    return np.searchsorted(cumulative, uniform * cumulative[-1]).astype(np.int64)


def tokens_per_second(mechanism: TruncatedExponential, ids: NDArray[np.int64]) -> float:
    """Return the speed of one draw for each id."""
    start = time.perf_counter()
    mechanism.sample(ids, process_generator())
    return len(ids) / (time.perf_counter() - start)


def compare(
    name: str, space: EmbeddingSpace, ids: NDArray[np.int64], epsilons: Sequence[float], listed: int
) -> list[dict[str, Any]]:
    """Return the rows of one vocabulary."""
    start, with_lists = time.perf_counter(), None
    if len(space) <= listed:
        with_lists = space.build_neighbours(progress=False)
    built = time.perf_counter() - start
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        mechanism = TruncatedExponential(space, epsilon)
        row: dict[str, Any] = {"vectors": name, "words": len(space), "epsilon": epsilon}
        row |= {"tokens": len(ids), "different": len(np.unique(ids))}
        row["cold, tokens/s"] = tokens_per_second(mechanism, ids)
        row["again, tokens/s"] = tokens_per_second(mechanism, ids)
        if with_lists is not None:
            fresh = TruncatedExponential(with_lists, epsilon)
            row |= {"lists, tokens/s": tokens_per_second(fresh, ids), "lists built, s": built}
        rows.append(row)
    return rows


def mapped(space: EmbeddingSpace, texts: list[str], epsilon: float) -> list[dict[str, Any]]:
    """Return rows of `Dataset.map` with one worker and with two, without lists and with them."""
    reader = RowReader()
    tokens = sum(len(reader.read_text(text).words) for text in texts)
    data = Dataset.from_dict({"text": texts})
    rows: list[dict[str, Any]] = []
    for name, some in (("cold", space), ("lists", space.build_neighbours(progress=False))):
        for workers in (None, 2):
            privatizer = DxPrivatizer(some, "tem", epsilon)
            start = time.perf_counter()
            data.map(privatizer, batched=True, num_proc=workers)
            speed = tokens / (time.perf_counter() - start)
            row = {"start": name, "epsilon": epsilon, "workers": workers or 1}
            rows.append(row | {"tokens": tokens, "tokens/s": speed})
    return rows


def certified(name: str, space: EmbeddingSpace, epsilon: float) -> dict[str, Any]:
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
        f"CPU hours for {LARGE:,} words": cpu * (LARGE / len(space)) ** 2 / 3600,
    }


def random_space(size: int) -> EmbeddingSpace:
    """Return words at random places."""
    vectors = np.random.default_rng(0).standard_normal((size, DIM), dtype=np.float32)
    return EmbeddingSpace(tuple(map(str, range(size))), vectors)


def main() -> None:
    """Run everything and print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--tokens", type=int, default=200_000, help="of the Zipfian corpora")
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    arguments.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="random vectors")
    arguments.add_argument("--listed", type=int, default=40_000, help="build lists up to this size")
    arguments.add_argument("--certify", action="store_true", help="time exact levels instead")
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    glove = common.glove(options.data)
    if options.certify:
        spaces = [("random", random_space(size).rescale(SPREAD)) for size in options.sizes]
        spaces.append(("GloVe 840B", glove))
        found = [certified(name, each, options.epsilons[0]) for name, each in spaces]
        common.report("Certification for one ε", found, options.json)
        return
    texts = [e["text"] for e in common.jsonl(options.data / "utility" / "mr.jsonl.gz")]
    reader = RowReader()
    words = [word.lower() for text in texts for word in reader.read_text(text).words]
    rows = compare("GloVe", glove, glove.ids(words), options.epsilons, options.listed)
    for size in options.sizes:
        space = random_space(size)
        # Distances of random vectors are about 24: with a lower ε all outputs are equally likely.
        tokens = options.tokens if size <= options.listed else options.tokens // 10
        rows += compare("random", space, zipfian(size, tokens), [1.0], options.listed)
    common.report("Exponential mechanisms by vocabulary", rows, options.json)
    part = options.json and options.json.with_name(f"{options.json.stem}_map.json")
    common.report("Dataset.map on movie reviews", mapped(glove, texts, options.epsilons[0]), part)


if __name__ == "__main__":
    main()

"""Speed and memory of `hierarchical`: the sampler, `Dataset.map`, trees, exact levels, workers.

    python benchmarks/hierarchical_speed.py
    python benchmarks/hierarchical_speed.py --size 400000 --page docs/results/hierarchical.md

The limit of `Dataset.map` is a privatizer that keeps every word, on the same rows: it splits, looks
no word up and joins. Reviews: MR five times, and a sample of IMDB.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from map_speed import Reviews
from startup import memory

EPSILON = 1.5
DRAWS = 2_000_000
BUILDER = Path(__file__).resolve()

Row = dict[str, Any]


def sampler(space: EmbeddingSpace, rounds: int) -> list[Row]:
    """Measure one call of the mechanism, on rows of uniform words."""
    mechanism = create_mechanism("hierarchical", space, EPSILON)
    ids = np.random.default_rng(0).integers(len(space), size=DRAWS)
    mechanism.sample(ids, keyed_generator(0))
    took = [
        common.seconds(lambda: mechanism.sample(ids, keyed_generator(1))) for _ in range(rounds)
    ]
    return [
        {
            "what": f"one call, {len(space):,} words",
            "figure": DRAWS / np.median(took),
            "unit": "words/s",
        }
    ]


def mapped(space: EmbeddingSpace, reviews: dict[str, Reviews], rounds: int) -> list[Row]:
    """Measure `Dataset.map` against a privatizer that keeps all words, and two processes."""
    privatizer = DxPrivatizer(space, "hierarchical", EPSILON)
    words = {word for corpus in reviews.values() for word in _words(corpus)}
    copying = DxPrivatizer(space, "hierarchical", EPSILON, oov="keep", stopwords=words)
    ways: dict[str, Callable[[Reviews], float]] = {
        "copying": lambda corpus: corpus.speed(copying),
        "map": lambda corpus: corpus.speed(privatizer),
        "num_proc=1": lambda corpus: corpus.speed(privatizer, workers=1),
        "num_proc=2": lambda corpus: corpus.speed(privatizer, workers=2),
    }
    rows: list[Row] = []
    for name, corpus in reviews.items():
        ways["map"](corpus)
        speeds = np.array([[way(corpus) for way in ways.values()] for _ in range(rounds)])
        copied, once, one, two = np.median(speeds, axis=0)
        ratios = np.median(speeds[:, [1, 3]] / speeds[:, [0, 2]], axis=0)
        rows += [
            {"what": f"{name}, words kept", "figure": copied, "unit": "words/s"},
            {"what": f"{name}, map", "figure": once, "unit": "words/s", "ratio": ratios[0]},
            {"what": f"{name}, num_proc=1", "figure": one, "unit": "words/s"},
            {"what": f"{name}, num_proc=2", "figure": two, "unit": "words/s", "ratio": ratios[1]},
        ]
    return rows


def _words(corpus: Reviews) -> set[str]:
    from hf_dxprivacy.text import RowReader

    reader = RowReader()
    return {word for text in corpus.texts for word in reader.read_text(text).words}


def tree(folder: Path, name: str) -> list[Row]:
    """Build the tree of a saved space in a process of its own; measure time and peak memory."""
    code = [sys.executable, str(BUILDER), "--build", str(folder)]
    seconds, megabytes, before = map(float, subprocess.check_output(code, text=True).split())
    return [
        {"what": f"tree, {name}", "figure": seconds, "unit": "s"},
        {"what": f"tree, {name}, peak memory", "figure": megabytes, "unit": "MiB"},
        {"what": f"tree, {name}, memory before", "figure": before, "unit": "MiB"},
    ]


def build(folder: Path) -> None:
    """Build and store a tree; print seconds and the peak of resident memory after and before."""

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    space = EmbeddingSpace.from_pretrained(folder)
    before, start = peak(), time.perf_counter()
    with_tree = space.build_hierarchy(progress=False)
    took = time.perf_counter() - start
    with_tree.save_pretrained(folder)
    print(took, peak(), before)


def used(space: EmbeddingSpace, rounds: int) -> list[Row]:
    """Measure the largest slope and its exact level, which a new mechanism works out."""
    took = [
        common.seconds(lambda k=k: create_mechanism("hierarchical", space, EPSILON + 0.01 * k))
        for k in range(rounds + 1)
    ]
    return [
        {
            "what": f"slope for an ε, {len(space):,} words",
            "figure": np.median(took[1:]),
            "unit": "s",
        }
    ]


def workers(folder: Path, size: int) -> list[Row]:
    """Measure the memory of one worker and of four, as `startup.py` does."""
    privatizer = DxPrivatizer(folder, "hierarchical", EPSILON)
    one, four = memory(privatizer, 1), memory(privatizer, 4)
    return [
        {"what": f"{size:,} words, 1 worker", "figure": one, "unit": "MiB"},
        {"what": f"{size:,} words, 4 workers", "figure": four, "unit": "MiB", "ratio": four / one},
    ]


def main() -> None:
    """Measure everything and print the table."""
    parser = common.parser(__doc__)
    parser.add_argument("--size", type=int, help="measure a space of so many random vectors, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--page", type=Path, help="write the table into docs/results/hierarchical.md"
    )
    parser.add_argument("--build", type=Path, help="only build the tree of a saved space")
    options = parser.parse_args()
    if options.build:
        build(options.build)
        return
    datasets.disable_caching()
    datasets.disable_progress_bars()
    english = EmbeddingSpace.from_pretrained("english")
    mr, imdb = Reviews.of(options.data, "mr"), Reviews.of(options.data, "imdb_sample")
    reviews = {"MR × 5": Reviews(mr.texts * 5), "IMDB": imdb}
    rows = sampler(english, options.rounds) + used(english, options.rounds)
    rows += mapped(english, reviews, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        spaces = {"33,860 × 300": common.glove(options.data)}
        if options.size:
            vectors = np.random.default_rng(0).standard_normal(
                (options.size, 300), dtype=np.float32
            )
            words = [f"word{i}" for i in range(options.size)]
            spaces[f"{options.size:,} × 300"] = EmbeddingSpace.from_vectors(words, vectors)
            del vectors
        for name, space in list(spaces.items()):
            place = Path(folder) / str(len(space))
            space.save_pretrained(place)
            del spaces[name], space
            rows += tree(place, name)
            loaded = EmbeddingSpace.from_pretrained(place)
            rows += used(loaded, options.rounds) + sampler(loaded, options.rounds)
            rows += workers(place, len(loaded))
    common.report("hierarchical", rows, options.json)
    if options.page:
        common.write_into(options.page, "speed", common.markdown(rows))


if __name__ == "__main__":
    main()

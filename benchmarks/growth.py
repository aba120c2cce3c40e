"""How time grows with rows, vocabulary, dimension and workers.

    python benchmarks/growth.py --json growth.json    measure, 4 minutes on two free cores
    python benchmarks/growth.py --page growth.json    put tables and pictures on the page

Generated text: words with Zipf's frequencies. Rows and workers: `wordnet-gloss`, through
`Dataset.map`. Vocabulary and dimension: random vectors, scaled so that the median distance to the
nearest neighbour is 1, through the mechanism alone. TEM is timed on text whose rows of
probabilities it has worked out already ("warm"), and on text for which it has not ("cold").
"""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator

DOCS = common.HERE.parent / "docs" / "results"
PICTURE = "growth.png"

WORDS_OF_A_ROW = 5
ROWS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
VOCABULARIES = (10_000, 33_860, 100_000, 400_000)
DIMENSIONS = (50, 100, 200, 300)
WORKERS = (1, 2, 4)

# Words that are drawn where a mechanism is timed alone.
SEARCHED, DRAWN = 1_024, 20_000
EPSILONS = {"laplace": 40.0, "tem": 10.0, "calibrated": 8.0}
MAPPED = {"calibrated": 200_000, "laplace": 2_000}

Curve = list[dict[str, Any]]


def frequencies(size: int) -> np.ndarray:
    """Return probabilities by rank, after Zipf."""
    weights = 1 / np.arange(1, size + 1)
    return weights / weights.sum()


def text_of(space: EmbeddingSpace, rows: int) -> Dataset:
    """Return rows of text."""
    rng = np.random.default_rng(0)
    words = rng.permutation(space.words)
    drawn = rng.choice(words, (rows, WORDS_OF_A_ROW), p=frequencies(len(words)))
    return Dataset.from_dict({"text": [" ".join(row) for row in drawn.tolist()]})


def random_space(size: int, dim: int) -> EmbeddingSpace:
    """Return standard normal vectors, one to the nearest neighbour."""
    vectors = np.random.default_rng(0).standard_normal((size, dim), dtype=np.float32)
    space = EmbeddingSpace(tuple(map(str, range(size))), vectors)
    return space.rescale(1 / space.neighbour_distances((1,))[1])


def curve(grows: str, mechanism: str, points: Iterable[tuple[int, int, float]]) -> Curve:
    """Return the rows of a table: sizes, words, seconds, and the slope of log time by log size."""
    points = list(points)
    sizes, _, seconds = np.array(points).T
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return [
        {
            "grows": grows,
            "mechanism": mechanism,
            "size": size,
            "words": count,
            "seconds": took,
            "words/s": count / took,
            "exponent": exponent,
        }
        for size, count, took in points
    ]


def by_rows() -> Curve:
    """Time `Dataset.map` on more and more rows."""
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    privatizer = DxPrivatizer(space, "calibrated", EPSILONS["calibrated"])
    data = text_of(space, ROWS[-1])
    data.map(privatizer, batched=True)
    points = []
    for rows in ROWS:
        part = data.select(range(rows))
        took = common.seconds(lambda part=part: part.map(privatizer, batched=True))
        points.append((rows, rows * WORDS_OF_A_ROW, took))
    return curve("rows", "calibrated, map", points)


def by_workers() -> Curve:
    """Time `Dataset.map` with more and more processes of one thread, and what starting them takes.

    The words from which on two processes pay off follow from that, and stand in a row of their own.
    """
    rows: Curve = []
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    for name, size in MAPPED.items():
        privatizer = DxPrivatizer(space, name, EPSILONS[name])
        data, words = text_of(space, size), size * WORDS_OF_A_ROW
        data.select(range(min(size, 20_000))).map(privatizer, batched=True)

        def seconds(part: Dataset, workers: int, privatizer: DxPrivatizer = privatizer) -> float:
            return common.seconds(lambda: part.map(privatizer, batched=True, num_proc=workers))

        starts = {n: seconds(data.select(range(n)), n) for n in WORKERS}
        found = [(n, words, seconds(data, n)) for n in WORKERS]
        alone, pair = found[0][2] - starts[1], found[1][2] - starts[2]
        pays = words * (starts[2] - starts[1]) / (alone - pair) if alone > pair else float("inf")
        rows += [
            row | {"start, s": starts[row["size"]]}
            for row in curve("workers", f"{name}, map", found)
        ]
        rows[-len(WORKERS) + 1]["pays from words"] = max(0.0, pays)
    return rows


def mechanisms(grows: str, spaces: Iterable[tuple[int, EmbeddingSpace]]) -> Curve:
    """Time exact search, and rows and draws of TEM, in larger and larger spaces."""
    found: dict[str, list[tuple[int, int, float]]] = {
        "laplace": [],
        "tem, cold": [],
        "tem, warm": [],
    }
    for size, space in spaces:
        ids = np.random.default_rng(1).choice(len(space), DRAWN, p=frequencies(len(space)))
        laplace = create_mechanism("laplace", space, EPSILONS["laplace"])
        tem = create_mechanism("tem", space, EPSILONS["tem"])
        laplace.sample(ids[:10], keyed_generator(0))
        # What belongs to the space and not to a word.
        tem.sample(ids[-1:], keyed_generator(0))
        timed: dict[str, tuple[Any, np.ndarray]] = {
            "laplace": (laplace, ids[:SEARCHED]),
            "tem, cold": (tem, ids),
            "tem, warm": (tem, ids),
        }
        for what, (mechanism, drawn) in timed.items():
            start = time.perf_counter()
            mechanism.sample(drawn, keyed_generator(1))
            found[what].append((size, len(drawn), time.perf_counter() - start))
    return [row for what, points in found.items() for row in curve(grows, what, points)]


def measure() -> Curve:
    """Measure all curves."""
    return [
        *by_rows(),
        *mechanisms("vocabulary", ((size, random_space(size, 100)) for size in VOCABULARIES)),
        *mechanisms("dimension", ((dim, random_space(33_860, dim)) for dim in DIMENSIONS)),
        *by_workers(),
    ]


def groups(rows: Curve, by: Callable[[dict[str, Any]], str]) -> dict[str, Curve]:
    """Return rows by a name, in order."""
    found: dict[str, Curve] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def draw(rows: Curve, target: Path) -> None:
    """Draw time by size on log axes, one picture for each thing that grows.

    In seconds for rows; otherwise for each word, as the words are the same for all sizes.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for axis, (grows, part) in zip(
        axes, groups(rows, lambda row: row["grows"]).items(), strict=True
    ):
        for name, points in groups(part, lambda row: row["mechanism"]).items():
            sizes = [row["size"] for row in points]
            times = [row["seconds"] / (1 if grows == "rows" else row["words"]) for row in points]
            label = f"{name}: time ∝ size^{points[0]['exponent']:.2f}"
            axis.loglog(sizes, times, marker="o", label=label)
        axis.set(xlabel=grows, ylabel="seconds" if grows == "rows" else "seconds a word")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize="small")
    figure.savefig(target, dpi=80)


def write_page(results: Path) -> None:
    """Put tables and pictures of stored results on the page."""
    content = json.loads(results.read_text("utf-8"))
    page = DOCS / "growth.md"
    facts = ", ".join(f"{name} {value}" for name, value in content["machine"].items())
    tables = [f"{facts}\n", f"![Time by size, on logarithmic axes]({PICTURE})\n"]
    for rows in groups(content["rows"], lambda row: row["grows"]).values():
        short = [{k: v for k, v in row.items() if k != "grows"} for row in rows]
        tables += [f"### {rows[0]['grows'].capitalize()}\n", common.markdown(short)]
    common.write_into(page, "growth: made by benchmarks/growth.py", "\n".join(tables))
    draw(content["rows"], DOCS / PICTURE)


def main() -> None:
    """Measure, or write the page."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--page", type=Path, help="stored results to put on the page")
    options = arguments.parse_args()
    if options.page is not None:
        write_page(options.page)
        return
    datasets.disable_caching()
    datasets.disable_progress_bars()
    common.report("Growth of time", measure(), options.json)


if __name__ == "__main__":
    main()

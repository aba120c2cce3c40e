"""End-to-end speed of `Dataset.map` on movie reviews (MR), against the search it stands on.

Laplace is compared with bare faiss flat search of as many vectors in the same run; TEM and
calibrated are reported with cold and with warm rows. Vectors: GloVe 840B 300-d, 33,860 words.

    python benchmarks/map_speed.py
"""

import time
from collections.abc import Callable

import datasets
import faiss
import numpy as np
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.text import RowReader


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bare_search(space: EmbeddingSpace, size: int) -> float:
    """Return queries per second of a faiss flat index on noisy vectors."""
    index = faiss.IndexFlatL2(space.dim)
    index.add(np.asarray(space.vectors))
    rng = np.random.default_rng(0)
    queries = space.points(rng.integers(len(space), size=size)).astype(np.float32)
    queries += rng.standard_normal(queries.shape, dtype=np.float32)
    return size / seconds(lambda: index.search(queries, 1))


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--rows", type=int, default=2_000, help="movie reviews for Laplace")
    arguments.add_argument("--rounds", type=int, default=5, help="of search and Laplace in turn")
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    space, reader = common.glove(options.data), RowReader()
    texts = [e["text"] for e in common.jsonl(options.data / "utility" / "mr.jsonl.gz")]
    data = Dataset.from_dict({"text": texts})
    words = [len(reader.read_text(text).words) for text in texts]

    def speed(privatizer: DxPrivatizer, count: int, workers: int | None = None) -> float:
        part = data.select(range(count))
        took = seconds(lambda: part.map(privatizer, batched=True, num_proc=workers))
        return sum(words[:count]) / took

    laplace = DxPrivatizer(space, "laplace", options.epsilon)
    speed(laplace, 100)
    # In turn, because the speed of a shared machine drifts.
    pairs = [
        (bare_search(space, 16_384), speed(laplace, options.rows)) for _ in range(options.rounds)
    ]
    bare, mapped = np.median(pairs, axis=0)
    share = float(np.median([fast / limit for limit, fast in pairs]))
    rows: list[dict[str, object]] = [
        {"what": "bare faiss flat search", "words/s": float(bare), "of bare search": 1.0},
        {"what": "laplace", "words/s": float(mapped), "of bare search": share},
    ]
    for name in ("tem", "calibrated"):
        privatizer = DxPrivatizer(space, name, options.epsilon)
        figures = {
            "cold": speed(privatizer, len(texts)),
            "warm": float(np.median([speed(privatizer, len(texts)) for _ in range(3)])),
            "num_proc=2, cold": speed(privatizer, len(texts), 2),
        }
        rows += [{"what": f"{name}, {k}", "words/s": v} for k, v in figures.items()]
    common.report("Dataset.map on MR", rows, options.json)


if __name__ == "__main__":
    main()

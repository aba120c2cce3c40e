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
    """Run everything once and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--rows", type=int, default=10_662, help="movie reviews for Laplace")
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    space, reader = common.glove(options.data), RowReader()
    texts = [e["text"] for e in common.jsonl(options.data / "utility" / "mr.jsonl.gz")]
    data = Dataset.from_dict({"text": texts})
    words = [len(reader.read_text(text).words) for text in texts]

    bare = bare_search(space, 16_384)
    rows = [{"what": "bare faiss flat search", "words/s": bare}]

    def measure(what: str, privatizer: DxPrivatizer, count: int, workers: int | None) -> None:
        part = data.select(range(count))
        took = seconds(lambda: part.map(privatizer, batched=True, num_proc=workers))
        speed = sum(words[:count]) / took
        rows.append({"what": what, "words/s": speed, "of bare search": speed / bare})
        print(rows[-1], flush=True)

    laplace = DxPrivatizer(space, "laplace", options.epsilon)
    measure("laplace", laplace, options.rows, None)
    again = bare_search(space, 16_384)
    rows.append({"what": "bare faiss flat search, again", "words/s": again})
    for name in ("tem", "calibrated"):
        privatizer = DxPrivatizer(space, name, options.epsilon)
        measure(f"{name}, cold", privatizer, len(texts), None)
        measure(f"{name}, warm", privatizer, len(texts), None)
        measure(f"{name}, warm, num_proc=2", privatizer, len(texts), 2)
    common.report("Dataset.map on MR", rows, options.json)


if __name__ == "__main__":
    main()

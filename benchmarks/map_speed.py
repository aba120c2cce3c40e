"""End-to-end speed of `Dataset.map` on movie reviews (MR), against the search it stands on.

Laplace is compared with bare faiss flat search of as many vectors in the same run, and that with
the bare matrix product. TEM and calibrated are reported on all reviews, 200,000 words, with nothing
worked out before ("cold"), again ("warm") and with stored lists; and on these and a sample of IMDB
together, cold, with one process and with two. Vectors: GloVe 840B 300-d, 33,860 words.

    python benchmarks/map_speed.py
    python benchmarks/map_speed.py --mixed    # one process and two on MR and IMDB only
    python benchmarks/map_speed.py --chats    # messages of chats beside the same texts in a column

Chats are reviews, four to each, through `hierarchical`. `datasets` itself takes longer to read and
write nested rows, which a function that returns them as they are measures; the least processor time
of each way counts.
"""

import pickle
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import faiss
import numpy as np
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.text import RowReader

QUERIES = 8_192
A_CHAT, ROUNDS_OF_CHATS = 4, 15
# Rows of one product: 1,024 × 33,860 results fill 139 MB.
PRODUCT = 1_024


@dataclass
class Reviews:
    """Reviews, and how fast they are mapped."""

    texts: list[str]

    def __post_init__(self) -> None:
        reader = RowReader()
        self._words = [len(reader.read_text(text).words) for text in self.texts]

    @classmethod
    def of(cls, data: Path, *names: str) -> "Reviews":
        """Return all reviews of some corpora, mixed: workers get as many rows, not words, each."""
        files = [data / "utility" / f"{name}.jsonl.gz" for name in names]
        texts = [row["text"] for file in files for row in common.jsonl(file)]
        if len(names) > 1:
            np.random.default_rng(0).shuffle(texts)
        return cls(texts)

    @property
    def words(self) -> int:
        """How many words they have."""
        return sum(self._words)

    @cached_property
    def dataset(self) -> Dataset:
        """The reviews as `datasets` holds them."""
        return Dataset.from_dict({"text": self.texts})

    def speed(
        self,
        privatizer: DxPrivatizer,
        rows: int | None = None,
        workers: int | None = None,
    ) -> float:
        """Return words a second of `Dataset.map` over the first rows, or all."""
        part = self.dataset.select(range(rows or len(self.dataset)))
        took = common.seconds(lambda: part.map(privatizer, batched=True, num_proc=workers))
        return sum(self._words[: len(part)]) / took


class Limits:
    """What the machine does with noisy vectors of a space: search, and the product within it."""

    def __init__(self, space: EmbeddingSpace) -> None:
        rng = np.random.default_rng(0)
        self._vectors = np.asarray(space.vectors)
        self._queries = space.points(rng.integers(len(space), size=QUERIES)).astype(np.float32)
        self._queries += rng.standard_normal(self._queries.shape, dtype=np.float32)
        self._index = faiss.IndexFlatL2(space.dim)
        self._index.add(self._vectors)
        self._out = np.empty((PRODUCT, len(space)), dtype=np.float32)

    def search(self) -> float:
        """Return queries a second of a faiss flat index."""
        return QUERIES / common.seconds(lambda: self._index.search(self._queries, 1))

    def product(self) -> float:
        """Return queries a second of their products with all vectors, by NumPy's BLAS."""
        queries = self._queries[:PRODUCT]
        took = common.seconds(lambda: np.matmul(queries, self._vectors.T, out=self._out))
        return PRODUCT / took


def laplace(
    space: EmbeddingSpace, reviews: Reviews, epsilon: float, rows: int, rounds: int
) -> list[dict[str, Any]]:
    """Measure Laplace noise and its limits in turn, because the speed of a machine drifts."""
    privatizer, limits = DxPrivatizer(space, "laplace", epsilon), Limits(space)
    ids = np.random.default_rng(1).integers(len(space), size=QUERIES)

    def sample() -> float:
        sampled = common.seconds(lambda: privatizer.mechanism.sample(ids, keyed_generator(0)))
        return QUERIES / sampled

    ways: dict[str, Callable[[], float]] = {
        "bare faiss flat search": limits.search,
        "bare BLAS product": limits.product,
        "laplace, one call of the mechanism": sample,
        "laplace, map": lambda: reviews.speed(privatizer, rows),
    }
    for way in ways.values():
        way()
    found = np.array([[way() for way in ways.values()] for _ in range(rounds)])
    shares = np.median(found / found[:, :1], axis=0)
    operations = 2e-9 * space.vectors.size
    return [
        {"what": name, "words/s": float(speed), "of bare search": float(share)}
        | ({"GFLOP/s": float(speed * operations)} if name.startswith("bare") else {})
        for name, speed, share in zip(ways, np.median(found, axis=0), shares, strict=True)
    ]


def workers(
    name: str, privatizer: DxPrivatizer, reviews: Reviews, rounds: int, **part: int
) -> list[dict[str, Any]]:
    """Measure two processes against one, in turn; every process has one thread."""

    def measure(workers: int) -> tuple[float, float]:
        before = processor_seconds()
        speed = reviews.speed(privatizer, workers=workers, **part)
        return speed, processor_seconds() - before

    found = np.array([[measure(1), measure(2)] for _ in range(rounds)])
    (one, one_cpu), (two, two_cpu) = np.median(found, axis=0).tolist()
    ratio = float(np.median(found[:, 1, 0] / found[:, 0, 0]))
    return [
        {"what": f"{name}, num_proc=1", "words/s": one, "CPU s": one_cpu},
        {"what": f"{name}, num_proc=2", "words/s": two, "CPU s": two_cpu, "of num_proc=1": ratio},
    ]


def processor_seconds() -> float:
    """Return what this process and its workers that have ended have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def exponential(
    name: str, space: EmbeddingSpace, reviews: Reviews, epsilon: float, rounds: int
) -> list[dict[str, Any]]:
    """Measure an exponential mechanism on all reviews, with what it has to work out and without."""
    cold, warm, listed = [], [], []
    with_lists = space.build_neighbours(progress=False)
    for _ in range(rounds):
        privatizer = DxPrivatizer(space, name, epsilon)
        cold.append(reviews.speed(privatizer))
        warm.append(reviews.speed(privatizer))
        listed.append(reviews.speed(DxPrivatizer(with_lists, name, epsilon)))
    return [
        {"what": f"{name}, map, cold", "words/s": float(np.median(cold))},
        {"what": f"{name}, map, warm", "words/s": float(np.median(warm))},
        {"what": f"{name}, map, cold, with lists", "words/s": float(np.median(listed))},
    ]


def large(
    name: str, space: EmbeddingSpace, corpus: Reviews, epsilon: float, rounds: int
) -> list[dict[str, Any]]:
    """Measure an exponential mechanism on more words, cold."""
    named = f"{name}, MR and IMDB mixed"
    cold = [corpus.speed(DxPrivatizer(space, name, epsilon)) for _ in range(rounds)]
    row = {"what": f"{named}, map, cold", "words/s": float(np.median(cold)), "words": corpus.words}
    with_lists = DxPrivatizer(space.build_neighbours(progress=False), name, epsilon)
    # What travels to workers is the place of the space, which is written the first time.
    pickle.dumps(with_lists)
    return [
        row,
        *workers(named, DxPrivatizer(space, name, epsilon), corpus, rounds),
        # Short, and so they vary more.
        *workers(f"{named}, with lists", with_lists, corpus, 3 * rounds),
    ]


def chats(reviews: Reviews) -> list[dict[str, Any]]:
    """Measure messages beside texts, in turn."""
    said = [{"role": "user", "content": text} for text in reviews.texts]
    starts = range(0, len(said), A_CHAT)
    nested = Dataset.from_dict({"messages": [said[at : at + A_CHAT] for at in starts]})
    path, made = "messages[].content", ("english", "hierarchical", 1.5)
    ways: dict[str, tuple[Dataset, Callable[[Any], Any]]] = {
        "text": (reviews.dataset, DxPrivatizer(*made)),
        "text, nothing done": (reviews.dataset, dict),
        "messages, nothing done": (nested, dict),
        path: (nested, DxPrivatizer(*made, text_column=path)),
        f"{path}, roles": (nested, DxPrivatizer(*made, text_column=path, roles=("user",))),
    }

    def seconds(rows: Dataset, function: Callable[[Any], Any]) -> float:
        start = time.process_time()
        rows.map(function, batched=True)
        return time.process_time() - start

    found = [[seconds(*way) for way in ways.values()] for _ in range(ROUNDS_OF_CHATS)]
    least = np.min(found, axis=0).tolist()
    return [
        {"what": name, "words/s": reviews.words / took, "time, of text": took / least[0]}
        for name, took in zip(ways, least, strict=True)
    ]


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--rows", type=int, default=1_000, help="movie reviews for Laplace")
    arguments.add_argument("--rounds", type=int, default=5, help="of search and Laplace in turn")
    arguments.add_argument("--mixed", action="store_true", help="MR and IMDB only, without Laplace")
    arguments.add_argument("--chats", action="store_true", help="messages of chats only")
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    reviews = Reviews.of(options.data, "mr")
    if options.chats:
        common.report("Dataset.map on chats", chats(reviews), options.json)
        return
    space = common.glove(options.data)
    corpus = Reviews.of(options.data, "mr", "imdb_sample")
    rows: list[dict[str, Any]] = []
    if not options.mixed:
        rows = laplace(space, reviews, options.epsilon, options.rows, options.rounds)
        privatizer = DxPrivatizer(space, "laplace", options.epsilon)
        rows += workers("laplace", privatizer, reviews, 2, rows=2 * options.rows)
    for name in ("tem", "calibrated"):
        if not options.mixed:
            rows += exponential(name, space, reviews, options.epsilon, 3)
        rows += large(name, space, corpus, options.epsilon, 2)
    common.report("Dataset.map on MR", rows, options.json)


if __name__ == "__main__":
    main()

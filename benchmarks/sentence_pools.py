"""Time and memory of building pools of many sentences, and of releasing texts from them.

    python benchmarks/sentence_pools.py --sizes 20000 100000             minutes
    python benchmarks/sentence_pools.py --sizes 1000000                  an hour on a busy core
    python benchmarks/sentence_pools.py --sizes 20000 --encoder FOLDER   with a transformers encoder

Sentences are those of WordNet's examples and of a sample of IMDB reviews, some 40,000; beyond that
number they are recombined, the beginning of one with the end of another, so that words and lengths
are real and sentences are not. Texts are sentences of movie reviews (MR). Each size is measured in
a process of its own, on one thread, in processor time, which other programs hardly change; with
`WordEncoder("english")` unless --encoder names another.

build s   cleaning, encoding, projection and tree
peak MB   largest resident memory of the process, sentences and word vectors included
load s    reading the stored pool
encode, look up, draw: texts a second of each step; text/s: of all of them
shared    part of look-up and draw in the time of a release
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import common
from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.sentences import TransformersEncoder, WordEncoder, split_sentences

EPSILON = 1.2


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def sentences(data: Path, size: int) -> Iterator[str]:
    """Yield so many different sentences, real ones first."""
    reviews = common.jsonl(data / "utility" / "imdb_sample.jsonl.gz")
    real = [
        *SentencePool.from_pretrained("wordnet-sentences").sentences,
        *(s for row in reviews for s in split_sentences(row["text"].replace("<br />", " "))),
    ]
    known = dict.fromkeys(s for s in real if 4 <= len(s.split()) <= 30)
    real = list(known)
    rng = np.random.default_rng(0)
    rng.shuffle(real)
    yield from real[:size]
    words = [sentence.split() for sentence in real]
    while len(known) < size:
        first, second = (words[i] for i in rng.integers(len(words), size=2))
        made = " ".join(first[: len(first) // 2] + second[len(second) // 2 :])
        if made not in known:
            known[made] = None
            yield made


def measured(data: Path, size: int, folder: str | None) -> dict[str, Any]:
    """Return the figures of a pool of one size."""
    texts = [row["text"] for row in common.jsonl(data / "utility" / "mr.jsonl.gz")]
    texts = texts[:: len(texts) // (500 if folder else 5000)]
    given = list(sentences(data, size))
    with threadpool_limits(1), tempfile.TemporaryDirectory() as place:
        start = time.process_time()
        encoder = WordEncoder("english") if folder is None else TransformersEncoder(folder)
        pool = SentencePool.from_sentences(given, encoder, progress=False)
        built = time.process_time() - start
        pool.save_pretrained(place)
        start = time.process_time()
        pool = SentencePool.from_pretrained(place)
        loaded = time.process_time() - start
        privatizer = SentencePrivatizer(pool, epsilon=EPSILON)
        privatizer.privatize(texts[:10])
        points = pool.points(texts)
        took = {
            "encode": seconds(lambda: pool.points(texts)),
            "look up": seconds(lambda: pool._search.nearest(points)),
        }
        rows = pool.look_up(texts)
        generator = process_generator()
        took["draw"] = seconds(lambda: privatizer.mechanism.sample(rows, generator))
    total = sum(took.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "sentences": f"{len(pool):,}",
        "encoder": pool.encoder.kind,
        "build s": round(built),
        "peak MB": round(peak),
        "load s": round(loaded, 2),
        **{f"{name}/s": round(len(texts) / spent) for name, spent in took.items()},
        "texts/s": round(len(texts) / total),
        "shared": f"{(total - took['encode']) / total:.1%}",
    }


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--encoder", help="folder of a transformers encoder")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    rows = []
    for size in arguments.sizes:
        with context.Pool(1) as worker:
            rows.append(worker.apply(measured, (arguments.data, size, arguments.encoder)))
        print(rows[-1], flush=True)
    common.report("Pools of sentences", rows, arguments.json)


if __name__ == "__main__":
    main()

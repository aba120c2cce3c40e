"""Where the time of `Dataset.map` goes, on sentences (MR) and on whole reviews (a sample of IMDB).

    python benchmarks/profile_map.py --json profile.json    measure
    python benchmarks/profile_map.py --page profile.json    put it on docs/results/profile.md

Processor time of one thread, as a worker has it, so that other programs do not show in the shares.
Every stage has the time that is spent in it and not in a stage within it. What "cold" works out
for new words "warm" finds there. Last comes streaming: the same texts as an `IterableDataset`, read
to the end. Vectors: GloVe 840B 300-d, 33,860 words.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import datasets
import faiss
import numpy as np
import threadpoolctl
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer, randomness
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.sampler import RejectionSampler
from hf_dxprivacy.privatizers.batch import EncodedText
from hf_dxprivacy.privatizers.keyed_noise import KeyedNoise
from hf_dxprivacy.randomness import RowStreams
from hf_dxprivacy.text import RowReader

PAGE = common.HERE.parent / "docs" / "results" / "profile.md"

# Name, file, and the rows of it that are enough for Laplace.
DATA = (("MR", "mr", 1_500), ("IMDB", "imdb_sample", 120))

# The goal for Laplace: nothing but these has more than so many per cent.
LARGE, LARGEST = ("search or draws", "noise"), 15.0

# What is timed, and the stage that it belongs to.
STAGES = (
    (RowReader, "read", "splitting"),
    (EncodedText, "encode", "look-up"),
    (randomness, "process_generator", "streams"),
    (KeyedNoise, "draw", "streams"),
    (RowStreams, "draw", "noise"),
    (RejectionSampler, "_prepare", "new words"),
    (Mechanism, "sample", "search or draws"),
    (EncodedText, "released", "joining"),
    (EncodedText, "counts", "joining"),
    (DxPrivatizer, "_release", "joining"),
)
REST = "Arrow and datasets"


class Profile:
    """Processor time by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys([stage for _, _, stage in STAGES] + [REST], 0.0)
        self._within = [0.0]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a block to a stage, without that of stages within it."""
        start = time.process_time()
        self._within.append(0.0)
        try:
            yield
        finally:
            took = time.process_time() - start
            self.seconds[name] += took - self._within.pop()
            self._within[-1] += took

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function whose calls count as a stage."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.stage(stage):
                return function(*args, **kwargs)

        return call

    @classmethod
    def of(cls, work: Callable[[], object]) -> "Profile":
        """Profile a call."""
        profile, patches = cls(), []
        for owner, name, stage in STAGES:
            given = vars(owner)[name]
            bound = isinstance(given, classmethod)
            timed = profile.timed(given.__func__ if bound else given, stage)
            patches.append(patch.object(owner, name, classmethod(timed) if bound else timed))
        for each in patches:
            each.start()
        try:
            with profile.stage(REST):
                work()
        finally:
            for each in patches:
                each.stop()
        return profile

    def row(self, words: int) -> dict[str, Any]:
        """Return the figures of a table: words a second, and each stage's share in per cent."""
        total = sum(self.seconds.values())
        shares = {stage: round(100 * took / total, 1) for stage, took in self.seconds.items()}
        return {"words/s": words / total, "µs/word": 1e6 * total / words} | shares


class Texts:
    """Some rows of a data set, which are mapped again and again."""

    def __init__(self, path: Path, rows: int | None = None) -> None:
        texts = [row["text"] for row in common.jsonl(path)][:rows]
        reader = RowReader()
        self.words = sum(len(reader.read_text(text)) for text in texts)
        self._data = Dataset.from_dict({"text": texts})

    def profile(self, with_what: DxPrivatizer) -> dict[str, Any]:
        """Profile one pass."""
        return Profile.of(lambda: self.map(with_what)).row(self.words)

    def map(self, with_what: DxPrivatizer) -> None:
        """Release all rows."""
        self._data.map(with_what, batched=True, with_indices=with_what.seed is not None)

    def stream(self, with_what: DxPrivatizer) -> None:
        """Release all rows as a stream."""
        for _ in self._data.to_iterable_dataset().map(with_what, batched=True):
            pass


def profiles(data: Path, epsilon: float) -> list[dict[str, Any]]:
    """Profile mechanisms on both data sets."""
    space, rows = common.glove(data), []
    for name, file, part in DATA:
        path = data / "utility" / f"{file}.jsonl.gz"
        few, all_texts = Texts(path, part), Texts(path)
        laplace = DxPrivatizer(space, "laplace", epsilon)
        calibrated = DxPrivatizer(space, "calibrated", epsilon)
        # What belongs to the space and not to a word.
        for each in (laplace, calibrated):
            each.privatize("a first search")
        rows.append({"data": name, "mechanism": "laplace"} | few.profile(laplace))
        seeded = DxPrivatizer(space, calibrated.mechanism, seed=0)
        states = {"cold": calibrated, "warm": calibrated, "warm, with a seed": seeded}
        for state, with_what in states.items():
            what = {"data": name, "mechanism": f"calibrated, {state}"}
            rows.append(what | all_texts.profile(with_what))
        rows.append({"data": name, "mechanism": "calibrated, warm, streamed"})
        rows[-1] |= streaming(all_texts, calibrated)
    return rows


def streaming(texts: Texts, warm: DxPrivatizer, rounds: int = 3) -> dict[str, Any]:
    """Compare a stream with `Dataset.map`, in turn."""

    def seconds(work: Callable[[DxPrivatizer], None]) -> float:
        start = time.process_time()
        work(warm)
        return time.process_time() - start

    found = np.array([[seconds(texts.map), seconds(texts.stream)] for _ in range(rounds)])
    streamed = float(np.median(found[:, 1]))
    return {
        "words/s": texts.words / streamed,
        "µs/word": 1e6 * streamed / texts.words,
        "of map": float(np.median(found[:, 0] / found[:, 1])),
    }


def verdict(rows: list[dict[str, Any]]) -> str:
    """Say whether the goal for Laplace is met, by the largest of the other stages."""
    stages = {stage for _, _, stage in STAGES} | {REST}
    share, stage, data = max(
        (row[stage], stage, row["data"])
        for row in rows
        if row["mechanism"] == "laplace"
        for stage in stages - {*LARGE}
    )
    met = "met" if share <= LARGEST else "**missed**"
    return (
        f"For `laplace` nothing but search and noise should take more than {LARGEST:g} %. The "
        f"largest of the rest is {stage} on {data}, {share:g} %: {met}."
    )


def write_page(results: Path) -> None:
    """Put stored results on the page."""
    measured = json.loads(results.read_text("utf-8"))
    facts = ", ".join(f"{name} {value}" for name, value in measured["machine"].items())
    rows = measured["rows"]
    content = f"Measured ({facts}):\n\n{common.markdown(rows)}\n{verdict(rows)}\n"
    common.write_into(PAGE, "profile: made by benchmarks/profile_map.py", content)


def main() -> None:
    """Profile and print the table, or write the page."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--page", type=Path, help="JSON of an earlier run to put on the page")
    arguments.add_argument("--epsilon", type=float, default=2.0)
    options = arguments.parse_args()
    if options.page is not None:
        return write_page(options.page)
    datasets.disable_caching()
    datasets.disable_progress_bars()
    faiss.omp_set_num_threads(1)
    with threadpoolctl.threadpool_limits(1):
        rows = profiles(options.data, options.epsilon)
    common.report("Profile of Dataset.map, one thread", rows, options.json)


if __name__ == "__main__":
    main()

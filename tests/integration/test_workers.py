"""Worker processes: fresh noise in each, no hang after a search in the parent, one thread.

Each script runs in a session of its own, under a time-out, so that one that hangs ends with all its
children.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import PATIENCE

WORDS = 200

# Spawned workers read this too, so what they do not need is loaded below.
PRELUDE = """
import json
import os
import sys


class Watched:
    \"\"\"A privatizer that adds the worker and its threads to every row.\"\"\"

    def __init__(self, privatizer):
        self.privatizer = privatizer

    def __call__(self, batch):
        import faiss
        import threadpoolctl

        out = self.privatizer(batch)
        threads = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
        threads.append(faiss.omp_get_max_threads())
        size = len(batch["text"])
        return {**out, "pid": [os.getpid()] * size, "threads": [max(threads)] * size}


class Placed:
    \"\"\"A privatizer that tells the worker, and where it has vectors and mechanism.\"\"\"

    def __init__(self, privatizer):
        self.privatizer = privatizer

    def __call__(self, batch):
        import numpy

        self.privatizer(batch)
        vectors = self.privatizer.space.vectors
        address, mapped = vectors.ctypes.data, vectors
        while mapped is not None and not isinstance(mapped, numpy.memmap):
            mapped = mapped.base
        place = [address, int(mapped is not None), id(self.privatizer.mechanism)]
        return {"pid": [os.getpid()] * len(batch["text"]), "place": [place] * len(batch["text"])}
"""

MAIN = """
import multiprocess
import multiprocessing
import faiss
import numpy as np
import threadpoolctl
from datasets import Dataset
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

SPACE = EmbeddingSpace.from_pretrained(os.environ["TEST_SPACE"])
TEXT = " ".join(SPACE.words[:200])
ROWS = Dataset.from_dict({"text": [TEXT] * 8})

def make(mechanism="laplace", epsilon=2.0, **options):
    return DxPrivatizer(SPACE, mechanism, epsilon, **options)

def search_with_threads():
    faiss.omp_set_num_threads(4)
    vectors = np.random.default_rng(0).normal(size=(5000, 64)).astype(np.float32)
    faiss.knn(vectors, vectors, 4)
"""


@pytest.fixture(scope="module")
def folder(euclidean_space: EmbeddingSpace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("space")
    euclidean_space.save_pretrained(folder)
    return folder


def run(folder: Path, tmp_path: Path, body: str) -> list[Any]:
    """Run a script and return what it has printed, a JSON value a line."""
    script = tmp_path / "script.py"
    main = textwrap.indent(MAIN + textwrap.dedent(body), "    ")
    script.write_text(f"{PRELUDE}\n\nif __name__ == '__main__':\n{main}")
    environment = {
        **os.environ,
        "TEST_SPACE": str(folder),
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "4",
    }
    with subprocess.Popen(
        [sys.executable, script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"not finished after {PATIENCE} s")
        finally:
            # Whatever is left of the session; its leader has been waited for or is ended here.
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in output.splitlines()]


def overlap(a: str, b: str) -> float:
    return float(np.mean([x == y for x, y in zip(a.split(), b.split(), strict=True)]))


def assert_independent(texts: list[str]) -> None:
    """Check that no two releases of one text share their noise, wholly or in part."""
    assert len(texts) >= 4
    assert len(texts[0].split()) == WORDS
    shared = max(overlap(a, b) for i, a in enumerate(texts) for b in texts[:i])
    assert shared < 0.5, "two releases share their noise"


# Noise


class Naive:
    """What a random function must not be like: it holds its generator."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[str]]:
        """Draw other words for each text."""
        count = len(batch["text"])
        return {
            "text": [" ".join(map(str, self.rng.integers(500, size=WORDS))) for _ in range(count)]
        }


def test_a_held_generator_is_replayed_by_every_worker() -> None:
    """This is what `datasets` does with it, and so what the next tests are able to see."""
    rows = Dataset.from_dict({"text": ["x"] * 8})
    texts = rows.map(Naive(), batched=True, num_proc=4)["text"][:]
    assert texts[0::2] == [texts[0]] * 4
    with pytest.raises(AssertionError, match="two releases share their noise"):
        assert_independent(texts)


@pytest.mark.parametrize("mechanism", ["laplace", "tem", "calibrated"])
def test_forked_workers_draw_their_own_noise(
    euclidean_space: EmbeddingSpace, mechanism: str
) -> None:
    privatizer = DxPrivatizer(euclidean_space, mechanism, 2.0)
    rows = Dataset.from_dict({"text": [" ".join(euclidean_space.words[:WORDS])] * 8})
    before = privatizer.privatize(rows["text"][0])  # the parent has a generator by now
    texts = rows.map(privatizer, batched=True, num_proc=4)["text"][:]
    assert_independent([before, *texts, privatizer.privatize(rows["text"][0])])


def test_spawned_workers_draw_their_own_noise(folder: Path, tmp_path: Path) -> None:
    """Unless there is a seed: then they make the release that one process makes."""
    body = """
        multiprocess.set_start_method("spawn")
        privatizer, seeded = make(), make("calibrated", seed=3)
        texts = [privatizer.privatize(TEXT)]
        mapped = ROWS.map(Watched(privatizer), batched=True, num_proc=2)
        releases = [
            ROWS.map(seeded, batched=True, with_indices=True, num_proc=num_proc)["text"][:]
            for num_proc in (None, 2)
        ]
        print(json.dumps([texts + mapped["text"][:], mapped["pid"][:], mapped["threads"][:]]))
        print(json.dumps(releases))
    """
    (texts, pids, threads), (alone, spawned) = run(folder, tmp_path, body)
    assert_independent(texts)
    assert len(set(pids)) == 2
    assert set(threads) == {1}
    assert_independent(alone)
    assert spawned == alone


def test_other_processes_draw_their_own_noise(folder: Path, tmp_path: Path) -> None:
    """Those of a plain fork, and of a pool, which unpickle one and the same bytes."""
    body = """
        privatizer, pipes = make(), []
        texts = [privatizer.privatize(TEXT)]
        for _ in range(3):
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.write(writer, privatizer.privatize(TEXT).encode())
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as stream:
                texts.append(stream.read())
            os.wait()
        texts.append(privatizer.privatize(TEXT))
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(json.dumps(texts + pool.map(make().privatize, [TEXT] * 8, chunksize=2)))
    """
    assert_independent(*run(folder, tmp_path, body))


# Memory


def test_workers_share_the_vectors_and_load_nothing_again_between_batches(
    folder: Path, tmp_path: Path
) -> None:
    body = """
        for method in ("fork", "spawn"):
            multiprocess.set_start_method(method, force=True)
            mapped = ROWS.map(Placed(make("tem")), batched=True, batch_size=1, num_proc=2)
            print(json.dumps([SPACE.vectors.ctypes.data, mapped["pid"][:], mapped["place"][:]]))
    """
    for forked, (own, pids, places) in zip((True, False), run(folder, tmp_path, body), strict=True):
        assert len(set(pids)) == 2
        assert len({(pid, *place) for pid, place in zip(pids, places, strict=True)}) == 2
        assert all(mapped for _, mapped, _ in places), "vectors are pages of a file"
        assert not forked or {address for address, _, _ in places} == {own}


# Threads


def test_no_search_in_the_parent_blocks_a_forked_worker(
    folder: Path, poincare_space: EmbeddingSpace, tmp_path: Path
) -> None:
    """After one with threads, a search with threads never returns in a child: faiss issue 5206."""
    poincare_space.save_pretrained(tmp_path / "poincare")
    body = f"""
        def mapped(privatizer):
            before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
            rows = ROWS.map(Watched(privatizer), batched=True, num_proc=2)
            after = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
            print(json.dumps([rows["text"][:], rows["threads"][:], before, after]))

        privatizer = make()
        privatizer.privatize([TEXT] * 50)
        mapped(privatizer)
        search_with_threads()
        mapped(privatizer)
        ball = EmbeddingSpace.from_pretrained({str(tmp_path / "poincare")!r})
        searching = [make("mahalanobis"), DxPrivatizer(ball, "hyperbolic", 8.0)]
        for privatizer in [*searching, make("tem"), make("calibrated")]:
            privatizer.privatize([TEXT] * 50)
            mapped(privatizer)
    """
    results = run(folder, tmp_path, body)
    assert len(results) == 6
    for number, (texts, threads, before, after) in enumerate(results):
        assert len(set(texts)) == 8
        # A worker of `tem` or `calibrated` may find all that it needs in what the parent computed.
        assert set(threads) == {1} or number > 3, "several workers with several threads each"
        assert before == after, "the parent keeps its threads"
        assert max(before) > 1
        if number < 2:
            assert_independent(texts)

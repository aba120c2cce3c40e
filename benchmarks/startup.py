"""Start-up time from a cold process, and memory of several workers on one large space.

    python benchmarks/startup.py

The large space has 400,000 × 300 random vectors, the size of GloVe. Memory is the proportional set
size (Linux): a page that several processes share counts once.
"""

import multiprocessing
import pickle
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace

STEPS = {
    "import hf_dxprivacy": "import hf_dxprivacy",
    "import, load wordnet-gloss": (
        "from hf_dxprivacy import EmbeddingSpace; EmbeddingSpace.from_pretrained('wordnet-gloss')"
    ),
    "import, load, first row (calibrated)": (
        "from hf_dxprivacy import DxPrivatizer; "
        "DxPrivatizer.from_pretrained('wordnet-gloss', epsilon=5.0).privatize('a cold day')"
    ),
    "import, load, first row (laplace)": (
        "from hf_dxprivacy import DxPrivatizer; DxPrivatizer.from_pretrained("
        "'wordnet-gloss', mechanism='laplace', epsilon=50.0).privatize('a cold day')"
    ),
}


def start_up(code: str, repeats: int = 5) -> float:
    """Return the median seconds that a fresh interpreter takes for some code."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def proportional_memory() -> float:
    """Return this process's proportional set size in MiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:"))) / 1024


def _work(pickled: bytes, ready: Barrier, answers: "multiprocessing.Queue[float]") -> None:
    privatizer: DxPrivatizer = pickle.loads(pickled)
    privatizer.privatize(" ".join(privatizer.space.words[:200]))
    ready.wait()
    answers.put(proportional_memory())
    ready.wait()


def memory(privatizer: DxPrivatizer, workers: int) -> float:
    """Return the memory of this process and several workers together, in MiB, after some work.

    Workers are forked and get the privatizer pickled, as by ``Dataset.map(num_proc=...)``.
    """
    context = multiprocessing.get_context("fork")
    ready, answers = context.Barrier(workers + 1), context.Queue()
    pickled = pickle.dumps(privatizer)
    processes = [
        context.Process(target=_work, args=(pickled, ready, answers)) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    total = proportional_memory() + sum(answers.get() for _ in processes)
    ready.wait()
    for process in processes:
        process.join()
    return total


def main() -> None:
    """Measure and print the tables."""
    options = common.parser(__doc__).parse_args()
    rows: list[dict[str, object]] = [
        {"what": what, "figure": start_up(code), "unit": "s"} for what, code in STEPS.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((400_000, 300), dtype=np.float32)
        names = [f"word{i}" for i in range(len(vectors))]
        EmbeddingSpace.from_vectors(names, vectors).save_pretrained(folder)
        del vectors
        for mechanism in ("laplace", "tem"):
            privatizer = DxPrivatizer(folder, mechanism, 2.0)
            one, four = memory(privatizer, 1), memory(privatizer, 4)
            rows += [
                {"what": f"{mechanism}, 400,000 × 300, 1 worker", "figure": one, "unit": "MiB"},
                {"what": f"{mechanism}, 4 workers", "figure": four, "unit": "MiB"},
                {"what": f"{mechanism}, 4 workers / 1 worker", "figure": four / one, "unit": "×"},
            ]
    common.report("Start-up and memory", rows, options.json)


if __name__ == "__main__":
    main()

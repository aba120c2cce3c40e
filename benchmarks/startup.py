"""Start-up time from a cold process, and memory of several workers on one large space.

    python benchmarks/startup.py

The large space has 400,000 × 300 random vectors, the size of GloVe. Memory is the proportional set
size (Linux): a page that several processes share counts once. It is read while every worker waits
with what it needed for 2,000 different words, other ones for each worker.
"""

import multiprocessing
import pickle
import subprocess
import sys
import tempfile
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace

WORDS = 2_000
STEPS = {
    "import hf_dxprivacy": "import hf_dxprivacy",
    "import, load wordnet-gloss": (
        "from hf_dxprivacy import EmbeddingSpace; EmbeddingSpace.from_pretrained('wordnet-gloss')"
    ),
    "import, load, first row (calibrated)": (
        "from hf_dxprivacy import DxPrivatizer; "
        "DxPrivatizer.from_pretrained("
        "'wordnet-gloss', mechanism='calibrated', epsilon=5.0).privatize('a cold day')"
    ),
    "import, load, first row (laplace)": (
        "from hf_dxprivacy import DxPrivatizer; DxPrivatizer.from_pretrained("
        "'wordnet-gloss', mechanism='laplace', epsilon=50.0).privatize('a cold day')"
    ),
}


def start_up(repeats: int = 5) -> list[dict[str, object]]:
    """Return the median seconds that a fresh interpreter takes for each step."""

    def took(code: str) -> float:
        return common.seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    # In turn, because the speed of a machine drifts.
    times = np.array([[took(code) for code in STEPS.values()] for _ in range(repeats)])
    rows = [
        {"what": what, "figure": float(figure), "unit": "s"}
        for what, figure in zip(STEPS, np.median(times, axis=0), strict=True)
    ]
    load = float(np.median(times[:, 1] - times[:, 0]))
    return [*rows, {"what": "load wordnet-gloss", "figure": load, "unit": "s"}]


def proportional_memory() -> float:
    """Return this process's proportional set size in MiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:"))) / 1024


def _work(
    number: int, pickled: bytes, ready: Barrier, answers: "multiprocessing.Queue[float]"
) -> None:
    privatizer: DxPrivatizer = pickle.loads(pickled)
    words = privatizer.space.words[number * WORDS : (number + 1) * WORDS]
    privatizer.privatize(" ".join(words))
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
        context.Process(target=_work, args=(number, pickled, ready, answers))
        for number in range(workers)
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
    arguments = common.parser(__doc__)
    arguments.add_argument("--size", type=int, default=400_000, help="words of the large space")
    options = arguments.parse_args()
    rows = start_up()
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((options.size, 300), dtype=np.float32)
        names = [f"word{i}" for i in range(len(vectors))]
        EmbeddingSpace.from_vectors(names, vectors).save_pretrained(folder)
        del vectors
        for mechanism in ("laplace", "tem"):
            privatizer = DxPrivatizer(folder, mechanism, 2.0)
            one, four = memory(privatizer, 1), memory(privatizer, 4)
            rows += [
                {
                    "what": f"{mechanism}, {options.size:,} × 300, 1 worker",
                    "figure": one,
                    "unit": "MiB",
                },
                {"what": f"{mechanism}, 4 workers", "figure": four, "unit": "MiB"},
                {"what": f"{mechanism}, 4 workers / 1 worker", "figure": four / one, "unit": "×"},
            ]
    common.report("Start-up and memory", rows, options.json)


if __name__ == "__main__":
    main()

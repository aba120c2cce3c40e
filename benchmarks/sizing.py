"""What a release takes: words/s per core through map, Ray and Spark, and machines for 10⁹ to 10¹³.

    python benchmarks/sizing.py --json sizing.json               measure, and print the tables
    python benchmarks/sizing.py --page sizing.json --price 0.04  put them on docs/sizing.md

Generated text: words of `wordnet-gloss` with Zipf's frequencies, from parquet to parquet, with a
worker for each core. Every way privatizes a text and one of four times the size; the speed is that
of the difference, and what the smaller one took beyond it is the start. A run before, which is not
timed, has Java and Ray compile and load what they keep from job to job. Spark needs Java.
"""

import argparse
import json
import logging
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.distributed import privatize_ray, privatize_spark

PAGE = common.HERE.parent / "docs" / "sizing.md"

WORKERS = os.cpu_count() or 1
WORDS_OF_A_ROW = 200
FACTOR = 4
# Rows of the smaller text. The larger one takes Laplace more than ten seconds.
ROWS = {"laplace": 320, "calibrated": 2_000}
# Files of a text, and rows of a batch of Ray: enough of both to keep all workers busy to the end.
FILES = 8 * WORKERS
BATCH = 20

TARGETS = {"10⁹ words": 1e9, "10¹¹ words": 1e11, "10¹³ words": 1e13}
PER_CORE = "words/s per core"

# Privatizes a folder of parquet files into another.
Way = Callable[[Path, Path, DxPrivatizer], object]


def generate(space: EmbeddingSpace, rows: int, target: Path) -> None:
    """Write rows of text in which the word of rank r has a frequency of 1/r."""
    rng = np.random.default_rng(0)
    words = rng.permutation(space.words)
    frequencies = 1 / np.arange(1, len(words) + 1)
    drawn = rng.choice(words, (rows, WORDS_OF_A_ROW), p=frequencies / frequencies.sum())
    table = pa.table({"id": range(rows), "text": [" ".join(row) for row in drawn]})
    target.mkdir()
    size = -(-rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), target / f"{number}.parquet")


def through_map(source: Path, target: Path, privatizer: DxPrivatizer) -> None:
    """Privatize a text with `Dataset.map`."""
    files = str(source / "*.parquet")
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(target))
    released = rows.map(privatizer, batched=True, with_indices=True, num_proc=WORKERS)
    released.to_parquet(str(target / "released.parquet"))


def through_ray(source: Path, target: Path, privatizer: DxPrivatizer) -> None:
    """Privatize a text with the Ray that runs."""
    import ray

    rows = ray.data.read_parquet(str(source))
    actors = ray.data.ActorPoolStrategy(size=WORKERS)
    released = privatize_ray(rows, privatizer, id_column="id", batch_size=BATCH, compute=actors)
    released.write_parquet(str(target))


def through_spark(source: Path, target: Path, privatizer: DxPrivatizer) -> None:
    """Privatize a text with the Spark that runs."""
    from pyspark.sql import SparkSession

    rows = SparkSession.builder.getOrCreate().read.parquet(str(source))
    privatize_spark(rows, privatizer, id_column="id").write.parquet(str(target))


@contextmanager
def ray_cluster() -> Iterator[None]:
    """Run Ray on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    # Reading and writing need CPUs too, beside those that actors hold.
    ray.init(
        num_cpus=WORKERS + 2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    yield
    ray.shutdown()


@contextmanager
def spark_session() -> Iterator[None]:
    """Run Spark on this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        # By default files as small as these are one partition together.
        "spark.sql.files.maxPartitionBytes": "128k",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.shuffle.partitions": str(WORKERS),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{WORKERS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield
    session.stop()


def took(way: Way, source: Path, privatizer: DxPrivatizer) -> float:
    """Return how many seconds a text took."""
    with tempfile.TemporaryDirectory() as folder:
        return common.seconds(lambda: way(source, Path(folder) / "out", privatizer))


def measure(
    way: Way, texts: tuple[Path, Path], rows: int, privatizer: DxPrivatizer
) -> dict[str, float]:
    """Return words a second and core, and the seconds before the first.

    Args:
        way: What is measured.
        texts: A text, and one of `FACTOR` times the size.
        rows: Rows of the first.
        privatizer: What releases them.
    """
    small, large = (took(way, text, privatizer) for text in texts)
    each = (large - small) / (FACTOR - 1)
    speed = rows * WORDS_OF_A_ROW / each / WORKERS
    return {"start, s": small - each, "run, s": large, PER_CORE: speed}


# What has to run, and the seed. Map goes first: it forks, and the others start threads.
WAYS: dict[str, tuple[Way, Callable[[], AbstractContextManager[None]], int | None]] = {
    "`Dataset.map`": (through_map, nullcontext, None),
    "`Dataset.map`, seeded": (through_map, nullcontext, 0),
    "`privatize_ray`": (through_ray, ray_cluster, None),
    "`privatize_spark`": (through_spark, spark_session, None),
}


def measurements(folder: Path, epsilon: float) -> Iterator[dict[str, Any]]:
    """Measure every mechanism on every way, with texts that are written into a folder."""
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    texts = {name: (folder / name, folder / f"{name}-large") for name in ROWS}
    for name, rows in ROWS.items():
        for text, size in zip(texts[name], (rows, FACTOR * rows), strict=True):
            generate(space, size, text)
    for through, (way, running, seed) in WAYS.items():
        with running():
            took(way, texts["laplace"][0], DxPrivatizer(space, "laplace", epsilon, seed=seed))
            for name, rows in ROWS.items():
                privatizer = DxPrivatizer(space, name, epsilon, seed=seed)
                found = measure(way, texts[name], rows, privatizer)
                yield {"through": through, "mechanism": name, "workers": WORKERS} | found


def sizes(rows: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return for each speed the machines, hours and costs of more words."""
    table = []
    for row in rows:
        line = {name: row[name] for name in ("through", "mechanism", PER_CORE)}
        for name, words in TARGETS.items():
            core_hours = words / row[PER_CORE] / 3600
            machines = math.ceil(core_hours / (options.machine_cores * options.hours))
            hours = core_hours / (machines * options.machine_cores)
            cost = core_hours * options.price
            line[name] = f"{machines:,} × {hours:.2g} h, {cost:,.2f}"
        table.append(line)
    return table


def content(measured: dict[str, Any], options: argparse.Namespace) -> str:
    """Return the tables in Markdown, with what they rest on."""
    facts = ", ".join(f"{name} {value}" for name, value in measured["machine"].items())
    return (
        f"Measured ({facts}):\n\n{common.markdown(measured['rows'])}\n"
        f"Computed from it, machines × hours and the cost, for machines of {options.machine_cores} "
        f"cores that have {options.hours:g} hours, at {options.price:g} for an hour of a core:\n\n"
        f"{common.markdown(sizes(measured['rows'], options))}"
    )


def render(options: argparse.Namespace) -> None:
    """Put the tables of an earlier run on the page."""
    tables = content(json.loads(options.page.read_text("utf-8")), options)
    common.write_into(PAGE, "sizing: made by benchmarks/sizing.py", tables)


def main() -> None:
    """Measure, or render."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--page", type=Path, help="JSON of an earlier run to render")
    arguments.add_argument("--epsilon", type=float, default=8.0)
    arguments.add_argument("--machine-cores", type=int, default=64, help="cores of a machine")
    arguments.add_argument("--hours", type=float, default=24.0, help="how long it may take")
    arguments.add_argument("--price", type=float, default=0.05, help="of an hour of a core")
    options = arguments.parse_args()
    if options.page is not None:
        return render(options)
    datasets.disable_caching()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measurements(Path(folder), options.epsilon))
    common.report("Words a second through map, Ray and Spark", rows, options.json)
    print(f"\n{common.markdown(sizes(rows, options))}")


if __name__ == "__main__":
    main()

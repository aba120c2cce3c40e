"""Spark: one release of every row, whatever happens to the machines that compute it.

The cluster is a real one on this machine: a master, two workers and an executor on each.
"""

import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import faiss
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy.distributed import privatize_spark
from hf_dxprivacy.distributed.rows import row_keys
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.slots import TagColumnSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from java import java_version
from machine import THREAD_VARIABLES
from programs import ROOT, blocks
from small_pools import LABELS, SENTENCES, small_pool

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed (extra: spark)")

pytestmark = [
    pytest.mark.cluster,
    # What pyspark 4.3 says of the installed pandas, whenever it uses Arrow.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ROWS_OF_A_BATCH = 5


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on two executors, each a process of its own that starts Python workers."""
    if java_version() < 17:
        pytest.skip("Spark needs Java 17 or newer")
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    # So little data is not worth a compiler: without, all takes half the time.
    interpreted = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.driver.extraJavaOptions": interpreted,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": interpreted,
        "spark.executor.memory": "512m",
        "spark.log.level": "OFF",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": ROWS_OF_A_BATCH,
        "spark.sql.shuffle.partitions": 2,
        "spark.task.maxFailures": 2,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    module = sys.modules[__name__]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # Spark itself has to say how many threads a worker gets.
        for name in THREAD_VARIABLES:
            patch.delenv(name)
        # The workers can not import this module.
        cloudpickle.register_pickle_by_value(module)
        builder = SparkSession.builder.master("local-cluster[2,1,1024]")
        for name, value in settings.items():
            builder = builder.config(name, str(value))
        # Relative paths are those of the folder that Java is started in.
        patch.chdir(folder)
        session = builder.getOrCreate()
        home = Path(os.environ.get("SPARK_HOME", pyspark.__path__[0]))
        logs = home / "work" / session.sparkContext.applicationId
        yield session
        session.stop()
        # A cluster of this kind writes the logs of its executors there, whatever it is told.
        shutil.rmtree(logs, ignore_errors=True)
        cloudpickle.unregister_pickle_by_value(module)


def texts(space: EmbeddingSpace, count: int) -> list[str]:
    """Return texts of eight words each; the first two are the same."""
    words = [space.words[7 * at : 7 * at + 8] for at in (0, *range(count - 1))]
    return [" ".join(row) for row in words]


def released(dataframe: Any, column: str = "text") -> dict[Any, Any]:
    """Return the cell of each id, each of which comes once."""
    rows = dataframe.collect()
    result = {row["id"]: row[column] for row in rows}
    assert len(result) == len(rows)
    return result


@pytest.fixture(scope="module")
def dataframe(spark: Any, euclidean_space: EmbeddingSpace) -> Any:
    """40 rows in four partitions, each of two batches."""
    rows = list(enumerate(texts(euclidean_space, 40)))
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), "id long, text string")


# The same as in one process


def test_parquet_becomes_the_parquet_that_one_process_makes(
    spark: Any, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    words = euclidean_space.words
    schema = """
        id string not null comment 'a key', title string, label int, body array<string>,
        day date, at timestamp, price decimal(6,2), tags map<string,int>, raw binary,
        more struct<a:int,b:array<double>>
    """
    values = (
        *(3, [words[5], "no-such-word", words[6]], datetime.date(2020, 2, 29)),
        *(datetime.datetime(2020, 2, 29, 12), None, {"a": 1}, b"\0", (1, [0.5])),
    )
    nothing = (None,) * len(values)
    rows = [
        ("a", " ".join(words[:5]), *values),
        ("b", " ".join(words[:5]), *values),
        ("c", "", None, [], *nothing[2:]),
        ("d", None, *nothing),
        *((f"e{at}", f"{words[at]}, {words[2 * at]}!", *nothing) for at in range(20)),
    ]
    spark.createDataFrame(rows, schema).repartition(3).write.parquet(str(tmp_path / "in"))
    given = spark.read.parquet(str(tmp_path / "in"))
    privatizer = DxPrivatizer(
        euclidean_space,
        "laplace",
        2.0,
        text_column=["title", "body"],
        output_column=["title", "released"],
        seed=5,
    )
    result = privatize_spark(given, privatizer, id_column="id", with_originals=True)
    assert result.schema[:-1] == given.schema[:]
    assert result.schema["released"].dataType == given.schema["body"].dataType
    result.write.parquet(str(tmp_path / "out"))

    stored = spark.read.parquet(str(tmp_path / "out"))
    assert stored.schema == result.schema
    found = sorted(stored.collect())
    expected = sorted(given.collect())
    assert [row.id for row in found] == [row[0] for row in sorted(rows)]
    unchanged = [name for name in given.columns if name != "title"]
    assert [[row[name] for name in unchanged] for row in found] == [
        [row[name] for name in unchanged] for row in expected
    ]
    table = pa.table({name: [row[name] for row in expected] for name in ("id", "title", "body")})
    alone = privatizer(table, row_keys(table["id"], "id"))
    assert [row.title for row in found] == alone["title"].to_pylist()
    assert [row.released for row in found] == alone["released"].to_pylist()
    assert found[0].title != found[1].title, "equal texts share their noise"
    assert found[0].title != expected[0].title


def test_chats_are_those_of_one_process(spark: Any, euclidean_space: EmbeddingSpace) -> None:
    said = [("user", "waab waac", 1), ("tool", None, None)]
    schema = "id long, messages array<struct<role:string,content:string,at:int>>"
    rows = list(enumerate([said, [], None, said[:1]] * 5))
    given = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), schema)
    privatizer = DxPrivatizer(
        *(euclidean_space, "tem", 0.5), text_column="messages[].content", roles="user", seed=5
    )
    result = privatize_spark(given, privatizer, id_column="id")
    assert result.schema == given.schema
    found, before = released(result, "messages"), released(given, "messages")
    chats = [cell and [message.asDict() for message in cell] for _, cell in sorted(before.items())]
    expected = privatizer({"id": [*range(20)], "messages": chats}, range(20))["messages"]
    assert (
        [cell and [message.asDict() for message in cell] for _, cell in sorted(found.items())]
        == expected
        != chats
    )


def test_whole_sentences_are_those_of_one_process(spark: Any) -> None:
    rows = [(at, SENTENCES[at], LABELS[at]) for at in range(30)] + [(30, None, LABELS[0])]
    given = spark.createDataFrame(rows, "id long, text string, topic string").repartition(3)
    privatizer = SentencePrivatizer(
        small_pool(), epsilon=0.7, label_column="topic", refill=True, seed=5
    )
    found = released(privatize_spark(given, privatizer, id_column="id"))
    ids, texts, topics = zip(*rows, strict=True)
    alone = privatizer({"text": list(texts), "topic": list(topics)}, ids)["text"]
    assert found == dict(zip(ids, alone, strict=True))
    unseeded = SentencePrivatizer(small_pool(), epsilon=0.7, label_column="topic")
    job = privatize_spark(given, unseeded, id_column="id")
    assert released(job) == released(job), "computed twice, and one release"


def test_slots_come_with_their_masks(spark: Any, euclidean_space: EmbeddingSpace) -> None:
    words = list(euclidean_space.words[:4])
    rows = [(1, words, ["O", "B-artist", "I-artist", "O"]), (2, None, None)]
    given = spark.createDataFrame(rows, "id int, text array<string>, tags array<string>")
    selector = TagColumnSelector("tags")
    options: dict[str, Any] = {"mask_column": "mask", "spans_column": "spans"}
    privatizer = SlotPrivatizer(euclidean_space, "tem", 0.1, selector=selector, **options)
    first, second = sorted(privatize_spark(given, privatizer, id_column="id").collect())
    assert (first.text[0], first.text[3]) == (words[0], words[3])
    assert first.mask == [False, True, True, False]
    assert first.spans == [[1, 3]]
    assert second[1:] == (None, None, None, None)


def test_token_ids_stay_of_their_type(spark: Any, token_privatizer: TokenPrivatizer) -> None:
    rows = [("a", [0, 2, 3, 4]), ("b", []), ("c", None)]
    given = spark.createDataFrame(rows, "id string, input_ids array<int>")
    result = privatize_spark(given, token_privatizer, id_column="id")
    assert result.schema == given.schema
    found = released(result, "input_ids")
    assert (found["b"], found["c"]) == ([], None)
    assert found["a"][0] == 0
    assert len(found["a"]) == 4
    assert min(found["a"][1:]) >= 2


@pytest.fixture(scope="module")
def token_privatizer(euclidean_space: EmbeddingSpace) -> TokenPrivatizer:
    vocabulary = {word: at for at, word in enumerate(("[CLS]", "[UNK]", *euclidean_space.words))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[CLS]", "[UNK]"])
    return TokenPrivatizer(euclidean_space, tokenizer, "laplace", 1.0)


def test_a_worker_has_the_threads_that_spark_gives_to_a_task(
    dataframe: Any, euclidean_space: EmbeddingSpace
) -> None:
    class Watched(DxPrivatizer):
        def __call__(self, table: Any, indices: Any = None, rank: int | None = None) -> Any:
            out = super().__call__(table, indices)
            threads = [pool["num_threads"] for pool in threadpool_info()]
            threads.append(faiss.omp_get_max_threads())
            return out.append_column("threads", pa.array([max(threads)] * len(table), pa.int32()))

    result = privatize_spark(dataframe, Watched(euclidean_space, "laplace", 2.0), id_column="id")
    assert set(released(result, "threads").values()) == {1}


def test_the_program_of_the_page_runs(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, code = blocks(ROOT / "docs" / "distributed.md", "python")
    exec(compile(code, "block.py", "exec"), {"__name__": "__main__"})
    assert "ε·d-private per word" in capsys.readouterr().out
    given, written = (spark.read.parquet(name).collect() for name in ("reviews", "released"))
    assert sorted(row.review_id for row in written) == sorted(row.review_id for row in given)
    assert not {row.text for row in written} & {row.text for row in given}


# One release


def test_all_actions_on_a_result_are_one_release(
    dataframe: Any, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    """Spark computes everything again for each of them."""
    privatizer = DxPrivatizer(euclidean_space, "calibrated", 2.0)
    result = privatize_spark(dataframe, privatizer, id_column="id")
    assert result.count() == 40
    first = released(result)
    result.repartition(3).write.parquet(str(tmp_path / "out"))
    assert released(dataframe.sparkSession.read.parquet(str(tmp_path / "out"))) == first
    other = privatize_spark(dataframe, privatizer, id_column="id")
    assert not set(released(other).values()) & set(first.values())

    def naively(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from privatizer(pa.Table.from_batches([batch])).to_batches()

    naive = dataframe.mapInArrow(naively, dataframe.schema)
    assert released(naive) != released(naive), "what this test is able to see"


def test_neither_order_nor_partitions_change_a_release(
    dataframe: Any, euclidean_space: EmbeddingSpace
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "tem", 2.0, seed=3)
    first = released(privatize_spark(dataframe, privatizer, id_column="id"))
    shuffled = dataframe.orderBy("text", ascending=False).coalesce(1)
    assert released(privatize_spark(shuffled, privatizer, id_column="id")) == first
    assert first[0] != first[1], "equal texts share their noise"


class Killing:
    """Notes down the rows that it is given, and once kills what they come from."""

    def __init__(self, folder: Path, victim: str) -> None:
        self.folder = folder
        self.victim = victim

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass batches on, until the first one of one partition at the first attempt."""
        task = pyspark.TaskContext.get()
        place = f"{task.partitionId()}-{task.attemptNumber()}"
        for batch in batches:
            (self.folder / place).write_text(json.dumps(batch.to_pylist()))
            if place == "1-0":
                self._kill()
            yield batch

    def _kill(self) -> None:
        pid = os.getpid()
        if self.victim == "executor":
            # A worker is the child of a daemon, which is the child of the executor.
            for _ in range(2):
                parent = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True)
                pid = int(parent.stdout)
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("victim", ["worker", "executor"])
def test_rows_of_a_killed_process_come_out_once_and_as_before(
    dataframe: Any, euclidean_space: EmbeddingSpace, tmp_path: Path, victim: str
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "calibrated", 2.0)
    result = privatize_spark(dataframe, privatizer, id_column="id")
    interrupted = result.mapInArrow(Killing(tmp_path, victim), result.schema)
    found = released(interrupted)
    assert len(found) == 40
    seen = json.loads((tmp_path / "1-0").read_text())
    assert len(seen) == ROWS_OF_A_BATCH
    assert (tmp_path / "1-1").exists(), "the task was not computed again"
    assert {row["id"]: row["text"] for row in seen}.items() <= found.items()
    assert found == released(result), "an undisturbed run"


# What can not be one release


@pytest.mark.parametrize(
    ("options", "column", "error", "message"),
    [
        ({}, None, InvalidValueError, "a task that is computed again .* pass id_column="),
        ({}, "key", InvalidValueError, "column 'key' is not in the data.*id_column="),
        ({}, "text", InvalidValueError, "column 'text': an id comes 2 times"),
        ({}, "share", InvalidTypeError, "ids in column 'share' to be whole numbers or strings"),
        ({"text_column": "title"}, "id", InvalidValueError, "column 'title' is not in the data"),
        ({"budget": PrivacyBudget(9.0)}, "id", InvalidValueError, "without budget="),
    ],
)
def test_a_mistake_is_found_before_anything_is_computed(
    dataframe: Any,
    euclidean_space: EmbeddingSpace,
    options: dict[str, Any],
    column: str | None,
    error: type[Exception],
    message: str,
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, **options)
    given = dataframe.selectExpr("*", "id / 2 as share")
    with pytest.raises(error, match=message):
        privatize_spark(given, privatizer, id_column=column)


def test_another_kind_of_data_is_refused(euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0)
    with pytest.raises(InvalidTypeError, match=r"pyspark\.sql\.DataFrame, got a Table"):
        privatize_spark(pa.table({"id": [1]}), privatizer, id_column="id")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": "nullif(id, 7)"}, "column 'id': 1 of 5 rows have no id"),
        ({"text": "id * 2.5"}, "column 'text', row .*: expected a text"),
    ],
)
def test_a_bad_row_fails_its_task_with_a_readable_message(
    dataframe: Any, euclidean_space: EmbeddingSpace, changed: dict[str, str], message: str
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0)
    # One task, as every attempt that fails ends a process, which the next one has to start.
    given = dataframe.coalesce(1).selectExpr(
        *(f"{changed.get(c, c)} as {c}" for c in dataframe.columns)
    )
    with pytest.raises(pyspark.errors.PythonException, match=message):
        privatize_spark(given, privatizer, id_column="id").collect()


def test_memoized_noise_needs_no_ids(dataframe: Any, euclidean_space: EmbeddingSpace) -> None:
    key = bytes(range(32))
    privatizer = DxPrivatizer(euclidean_space, "tem", 2.0, memoize="row", key=key)
    found = released(privatize_spark(dataframe, privatizer))
    assert found[0] == found[1]
    rows = dataframe.collect()
    assert list(found.values()) == privatizer({"text": [row.text for row in rows]})["text"]
    with pytest.raises(InvalidValueError, match="leave id_column out"):
        privatize_spark(dataframe, privatizer, id_column="id")

"""Ray: one release of every row, whatever happens to the processes that compute it.

The cluster is a real one on this machine: two nodes, each with workers of its own.
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info

from hf_dxprivacy.distributed import privatize_ray
from hf_dxprivacy.distributed.rows import row_keys
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from machine import THREAD_VARIABLES
from programs import ROOT, blocks
from small_pools import LABELS, SENTENCES, small_pool

ray = pytest.importorskip("ray", reason="Ray is not installed (extra: ray)")
pytest.importorskip("ray.data", reason="Ray Data is not installed (extra: ray)")

# What Ray says of its own settings and of the files that it leaves open.
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\."),
    pytest.mark.filterwarnings("ignore:.*subprocess .* is still running:ResourceWarning"),
]

BLOCKS, ROWS_OF_A_BLOCK, ROWS_OF_A_BATCH = 4, 40, 10
ROWS = BLOCKS * ROWS_OF_A_BLOCK


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """Two nodes with one CPU each; the reader and the shuffle that Ray has for a default."""
    from ray.cluster_utils import Cluster
    from ray.data.context import ShuffleStrategy

    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_log_monitor": False}
    module = sys.modules[__name__]
    on_termination = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        # Processes that wait for the next task are cheaper than new ones.
        patch.setenv("RAY_num_workers_soft_limit", "8")
        # Relative paths are those of the folder that the nodes are started in.
        patch.chdir(tmp_path_factory.mktemp("ray"))
        # Ray itself has to say how many threads an actor gets.
        for name in THREAD_VARIABLES:
            patch.delenv(name)
        # Without the servers of the dashboard a node starts in time on a busy machine too.
        missing = "ray._private.utils.get_dashboard_dependency_error"
        patch.setattr(missing, lambda: "left out", raising=False)
        head = node | {"include_dashboard": False, "no_monitor": True}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        # The newer reader of parquet files starts a dozen processes for two small files, and the
        # newer shuffle five for every call that counts ids.
        context = ray.data.DataContext.get_current()
        newer = context.use_datasource_v2, context.shuffle_strategy
        patch.setattr(context, "use_datasource_v2", False)
        patch.setattr(context, "shuffle_strategy", ShuffleStrategy.SORT_SHUFFLE_PULL_BASED)
        # The workers can not import this module.
        ray.cloudpickle.register_pickle_by_value(module)
        yield newer
        ray.cloudpickle.unregister_pickle_by_value(module)
        ray.shutdown()
        cluster.shutdown()
    # Ray leaves its own, which processes that later tests fork would have, and might not end by.
    signal.signal(signal.SIGTERM, on_termination)


@pytest.fixture(scope="module")
def dataset(cluster: None, euclidean_space: EmbeddingSpace) -> Any:
    """Rows in four blocks, each of four batches, all of one text of twenty words."""
    text = " ".join(euclidean_space.words[:20])
    starts = range(0, ROWS, ROWS_OF_A_BLOCK)
    blocks = [range(start, start + ROWS_OF_A_BLOCK) for start in starts]
    return ray.data.from_arrow(
        [pa.table({"id": block, "text": [text] * len(block)}) for block in blocks]
    )


def released(dataset: Any) -> dict[int, str]:
    """Return the text of each id, each of which comes once."""
    rows = dataset.take_all()
    result = {row["id"]: row["text"] for row in rows}
    assert len(result) == len(rows)
    return result


# The same as in one process


def test_chats_are_those_of_one_process(cluster: None, euclidean_space: EmbeddingSpace) -> None:
    said = [{"role": "user", "content": "waab waac", "at": 1}, {"role": "tool", "content": None}]
    table = pa.table({"id": range(20), "messages": [said, [], None, said[:1]] * 5})
    privatizer = DxPrivatizer(
        *(euclidean_space, "tem", 0.5), text_column="messages[].content", roles="user", seed=5
    )
    blocks = ray.data.from_arrow([table.slice(0, 9), table.slice(9)])
    found = privatize_ray(blocks, privatizer, id_column="id", batch_size=4).take_all()
    expected = privatizer(table, range(20)).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected != table.to_pylist()


def test_parquet_becomes_the_parquet_that_one_process_makes(
    cluster: None, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    words = euclidean_space.words
    texts = [" ".join(words[:5]), " ".join(words[:5]), "", None, f"{words[7]}, zork {words[8]}!"]
    tokens = [[words[5], "zork", None], None, [], ["."], [words[6]]]
    schema = pa.schema(
        {
            "id": pa.string(),
            "title": pa.large_string(),
            "body": pa.list_(pa.string()),
            "price": pa.decimal128(6, 2),
            "raw": pa.binary(),
            "more": pa.struct({"a": pa.int8(), "b": pa.list_(pa.float32())}),
        }
    )
    (tmp_path / "in").mkdir()
    for part in "ab":
        rows = [
            {"id": f"{part}{at}", "title": text, "body": body, "raw": b"\0", "more": {"b": [0.5]}}
            for at, (text, body) in enumerate(zip(texts * 3, tokens * 3, strict=True))
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "in" / f"{part}.parquet")
    privatizer = DxPrivatizer(
        euclidean_space,
        "laplace",
        2.0,
        text_column=["title", "body"],
        output_column=["title", "released"],
        seed=5,
    )
    given = ray.data.read_parquet(str(tmp_path / "in"))
    result = privatize_ray(given, privatizer, id_column="id", with_originals=True, batch_size=7)
    result.write_parquet(str(tmp_path / "out"))

    whole = pq.read_table(tmp_path / "in").sort_by("id")
    expected = privatizer(whole, row_keys(whole.column("id"), "id"))
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert found.schema == schema.append(pa.field("released", schema.field("body").type))
    assert found == expected
    assert found.column("title").to_pylist() != whole.column("title").to_pylist()


def test_whole_sentences_are_those_of_one_process(cluster: None) -> None:
    table = pa.table({"id": list(range(60)), "text": [*SENTENCES, None, ""] + ["x"] * 28})
    table = table.append_column("topic", pa.array([LABELS[at % 6] for at in range(60)]))
    options = {"epsilon": 0.7, "label_column": "topic", "unit": "sentence", "refill": True}
    privatizer = SentencePrivatizer(small_pool(), seed=5, **options)
    given = ray.data.from_arrow(table).repartition(4)
    result = privatize_ray(given, privatizer, id_column="id", batch_size=7)
    expected = dict(enumerate(privatizer(table, range(60))["text"].to_pylist()))
    assert released(result) == expected
    memoized = SentencePrivatizer(small_pool(), epsilon=0.7, memoize="row", key=bytes(range(40)))
    rows = privatize_ray(given, memoized).take_all()
    assert len({row["text"] for row in rows if row["text"] is not None}) > 5
    assert len({row["text"] for row in rows if row["id"] >= 32}) == 1


def test_the_program_of_the_page_runs(
    cluster: tuple[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the reader and the shuffle that Ray has for a default."""
    context = ray.data.DataContext.get_current()
    for name, newer in zip(("use_datasource_v2", "shuffle_strategy"), cluster, strict=True):
        monkeypatch.setattr(context, name, newer)
    code, _ = blocks(ROOT / "docs" / "distributed.md", "python")
    exec(compile(code, "block.py", "exec"), {"__name__": "__main__"})
    assert "ε·d-private per word" in capsys.readouterr().out
    given, written = map(pq.read_table, ("reviews.parquet", "released"))
    assert sorted(written["review_id"].to_pylist()) == given["review_id"].to_pylist()
    assert not {*written["text"].to_pylist()} & {*given["text"].to_pylist()}


# Failures


class Fragile(DxPrivatizer):
    """Writes down what it does, and is killed once, in the middle of a block."""

    folder: str
    fatal_row: int

    def __call__(self, examples: Any, indices: Any = None, rank: int | None = None) -> Any:
        """Release a batch, and end this process if it is the fatal one."""
        result = super().__call__(examples, indices, rank)
        done = {
            "rows": list(indices),
            "node": ray.get_runtime_context().get_node_id(),
        }
        with open(os.path.join(self.folder, f"{os.getpid()}.jsonl"), "a") as log:
            log.write(json.dumps(done) + "\n")
        killed = os.path.join(self.folder, "killed")
        if self.fatal_row in indices and not os.path.exists(killed):
            with open(killed, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return result


def test_a_worker_that_is_killed(
    dataset: Any, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    """What it had released is released again, in the same way, and comes once."""
    privatizer = Fragile(euclidean_space, "laplace", 0.5)
    fatal_row = ROWS_OF_A_BLOCK + 2 * ROWS_OF_A_BATCH
    vars(privatizer).update(folder=str(tmp_path), fatal_row=fatal_row)
    job = privatize_ray(dataset, privatizer, id_column="id", batch_size=ROWS_OF_A_BATCH)
    job.write_parquet(str(tmp_path / "out"))
    log = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.open()]
    times = Counter(row for each in log for row in each["rows"])
    assert set(times) == set(range(ROWS))
    again = [row for row, count in times.items() if count > 1]
    assert len(again) > ROWS_OF_A_BATCH, "several batches were released by two processes"
    assert len(list(tmp_path.glob("*.jsonl"))) > 1

    written = pq.read_table(tmp_path / "out")
    disturbed = dict(zip(written["id"].to_pylist(), written["text"].to_pylist(), strict=True))
    assert len(written) == len(disturbed) == ROWS
    undisturbed = released(job)
    assert disturbed == undisturbed
    assert len(set(undisturbed.values())) == ROWS, "rows with one text have noise of their own"
    another = released(privatize_ray(dataset.limit(8), privatizer, id_column="id"))
    assert len(another) == 8
    assert not set(another.values()) & set(undisturbed.values()), "another job, another release"


def test_an_actor_has_as_many_threads_as_cpus(
    dataset: Any, euclidean_space: EmbeddingSpace
) -> None:
    class Watched(DxPrivatizer):
        def __call__(self, table: Any, indices: Any = None, rank: int | None = None) -> Any:
            out = super().__call__(table, indices)
            threads = [pool["num_threads"] for pool in threadpool_info()]
            threads.append(faiss.omp_get_max_threads())
            return out.append_column("threads", pa.array([max(threads)] * len(table), pa.int32()))

    watched = Watched(euclidean_space, "laplace", 2.0, memoize="row", key=bytes(range(32)))
    assert {row["threads"] for row in privatize_ray(dataset, watched).take_all()} == {1}


def test_a_node_that_lacks_the_space(
    dataset: Any, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    privatizer = DxPrivatizer(
        tmp_path / "space", "laplace", 0.5, memoize="row", key=bytes(range(32))
    )
    job = privatize_ray(dataset.limit(8), privatizer)
    (tmp_path / "space").rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match=f"local folder that holds a space.*got '{tmp_path}/space'"):
        job.take(1)


# What is refused


def test_arguments(dataset: Any, euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0)
    with pytest.raises(InvalidTypeError, match=r"a ray\.data\.Dataset, got a Table"):
        privatize_ray(pa.table({}), privatizer, id_column="id")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="pass id_column="):
        privatize_ray(dataset, privatizer)
    with pytest.raises(InvalidValueError, match=r"'nr' is not in the data.*with id_column="):
        privatize_ray(dataset, privatizer, id_column="nr")
    other = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="body")
    with pytest.raises(InvalidValueError, match=r"'body' is not in the data.*'id', 'text'"):
        privatize_ray(dataset, other, id_column="id")
    limited = DxPrivatizer(euclidean_space, "laplace", 2.0, budget=PrivacyBudget(9.0))
    with pytest.raises(InvalidValueError, match="counts in one process"):
        privatize_ray(dataset, limited, id_column="id")


def test_an_id_that_comes_twice(dataset: Any, euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0)
    with pytest.raises(InvalidValueError, match="'id': an id comes 2 times"):
        privatize_ray(dataset.union(dataset.limit(1)), privatizer, id_column="id")


def test_rows_in_pandas_blocks(cluster: None, euclidean_space: EmbeddingSpace) -> None:
    import pandas as pd

    frame = pd.DataFrame({"id": ["a", "b"], "text": [euclidean_space.words[0], None]})
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, seed=3)
    rows = privatize_ray(ray.data.from_pandas(frame), privatizer, id_column="id").take_all()
    keys = row_keys(pa.chunked_array([["a", "b"]]), "id")
    expected = privatizer({"text": [euclidean_space.words[0], None]}, keys)
    assert [row["text"] for row in rows] == expected["text"]

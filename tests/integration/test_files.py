"""Readers and writers of files: memory that does not grow with a file, streams, whole output."""

import gzip
import io
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.files import text_rows
from hf_dxprivacy.files.job import privatize_rows
from hf_dxprivacy.files.readers import BATCH_BYTES, Reader, open_reader, read_stream
from hf_dxprivacy.files.source import Columns, Input, find_input
from hf_dxprivacy.files.writers import replacing, write_rows
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

SIZE = 40 << 20
LIMIT = 20 << 20
TEXT = Columns(("text",), ("text",))
ROWS = Input("rows", "hub")


def _lines(kind: str) -> Iterator[bytes]:
    start = {"csv": b"id,text\n", "jsonl": b"", "txt": b""}[kind]
    row = b'{"id": 1, "text": "%s"}\n' if kind == "jsonl" else b"1,%s\n"
    yield start
    line = row % (b"word " * 400)
    yield from (line for _ in range(SIZE // len(line)))


def _copy(source: Path, target: Path, kind: str) -> None:
    with (
        open_reader(find_input(str(source)), TEXT) as reader,
        replacing(target) as file,
    ):
        write_rows(file, kind, reader.schema, reader, reader.batches(1000))


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "txt"])
def test_text_files_pass_through_in_little_memory(tmp_path: Path, kind: str, ending: str) -> None:
    source, target = tmp_path / f"in.{kind}{ending}", tmp_path / f"out.{kind}{ending}"
    with gzip.open(source, "wb", 1) if ending else source.open("wb") as file:
        file.writelines(_lines(kind))
    tracemalloc.start()
    held = pa.total_allocated_bytes()
    try:
        _copy(source, target, kind)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak + pa.total_allocated_bytes() - held < LIMIT
    with gzip.open(source) if ending else source.open("rb") as before:
        content = before.read()
    with gzip.open(target) if ending else target.open("rb") as after:
        assert after.read() == content


def test_a_parquet_file_of_one_row_group_passes_through(tmp_path: Path) -> None:
    rows = pa.table({"text": ["word"] * 40_000, "n": [os.urandom(1024) for _ in range(40_000)]})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=40_000, use_dictionary=False)
    held = pa.total_allocated_bytes()
    with open_reader(find_input(str(tmp_path / "in.parquet")), TEXT) as reader:
        # All batches have been through memory, few at a time.
        most = max(pa.total_allocated_bytes() - held for _ in reader.batches(1000))
    assert most < LIMIT
    _copy(tmp_path / "in.parquet", tmp_path / "out.parquet", "parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)


def test_json_numbers_are_kept_as_text_only_where_python_writes_them_in_another_way(
    tmp_path: Path,
) -> None:
    """Rows of numbers, such as vectors and token ids, take five times as long as text."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "", "plain": [12, -7, 0.25, 1e-05], "kept": [1.10, -0, 1E5, NaN]}\n')
    with open_reader(find_input(str(path)), TEXT) as reader:
        ((row,),) = reader.batches(1000)
    assert row["plain"] == [12, -7, 0.25, 1e-05]
    assert [str(number) for number in row["kept"]] == ["1.10", "-0", "1E5", "NaN"]


def test_batches_of_long_rows_are_bounded_by_bytes(tmp_path: Path) -> None:
    """100 MB of text in 200 rows, a file of a few kilobytes: at most a row above the bound."""
    text = "word " * 100_000
    pq.write_table(pa.table({"text": [text] * 200}), tmp_path / "in.parquet")
    held = pa.total_allocated_bytes()
    with open_reader(find_input(str(tmp_path / "in.parquet")), TEXT) as reader:
        batches = reader.batches(1000)
        sizes = [(batch.nbytes, pa.total_allocated_bytes() - held) for batch in batches]
    assert max(size for size, _ in sizes) < BATCH_BYTES + 2 * len(text)
    assert max(allocated for _, allocated in sizes) < 64 * 2 * len(text)
    stream = datasets.Dataset.from_dict({"text": [text] * 20}).to_iterable_dataset()
    for batch in read_stream(ROWS, stream, TEXT).batches(1000):
        assert batch.nbytes < BATCH_BYTES + 2 * len(text)


def _written(reader: Reader, target: str, privatizer: DxPrivatizer) -> bytes:
    out = io.BytesIO()
    privatize_rows(privatizer, reader, out, target, batch_size=4, progress=False)
    return out.getvalue()


@pytest.fixture
def stream(tmp_path: Path) -> datasets.IterableDataset:
    """Ten rows from a JSON lines file, streamed."""
    rows = [{"text": f"waab, {i}", "n": i, "deep": {"x": [i, None]}} for i in range(10)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return datasets.load_dataset("json", data_files=str(path), split="train", streaming=True)


@pytest.fixture
def keep_all(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    """A privatizer that leaves the words of the stream as they are."""
    words = {"waab", *map(str, range(10))}
    return DxPrivatizer(euclidean_space, "tem", 1.0, stopwords=words)


def test_a_stream_becomes_parquet_with_its_features(
    stream: datasets.IterableDataset, keep_all: DxPrivatizer, tmp_path: Path
) -> None:
    data = _written(read_stream(ROWS, stream, TEXT), "parquet", keep_all)
    (tmp_path / "out.parquet").write_bytes(data)
    again = datasets.Dataset.from_parquet(
        str(tmp_path / "out.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert again.to_list() == list(stream)
    assert b"huggingface" in pq.read_schema(io.BytesIO(data)).metadata


def test_a_stream_becomes_text_where_nothing_is_lost(
    stream: datasets.IterableDataset, keep_all: DxPrivatizer
) -> None:
    data = _written(read_stream(ROWS, stream, TEXT), "jsonl", keep_all)
    assert [json.loads(line) for line in data.splitlines()] == list(stream)
    with pytest.raises(InvalidValueError, match="cannot hold column 'deep'"):
        _written(read_stream(ROWS, stream, TEXT), "csv", keep_all)
    flat = read_stream(ROWS, stream.remove_columns("deep"), TEXT)
    assert _written(flat, "csv", keep_all).decode().startswith('text,n\n"waab, 0",0\n')


def test_features_are_found_out_where_the_stream_does_not_tell(keep_all: DxPrivatizer) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from ({"text": ["waab", str(i)], "n": i} for i in range(10))

    reader = read_stream(ROWS, datasets.IterableDataset.from_generator(rows), TEXT)
    assert reader.schema is not None
    assert reader.schema.field("text").type == pa.list_(pa.string())
    data = _written(reader, "jsonl", keep_all)
    assert [json.loads(line) for line in data.splitlines()] == list(rows())


def test_columns_of_a_stream_are_checked(stream: datasets.IterableDataset) -> None:
    with pytest.raises(InvalidValueError, match="rows: there is no column 'txt'"):
        read_stream(ROWS, stream, Columns(("txt",), ("txt",)))
    with pytest.raises(InvalidTypeError, match="expected column 'n' to hold texts"):
        read_stream(ROWS, stream, Columns(("n",), ("n",)))


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gzip file of a few kilobytes may hold a line of gigabytes."""
    monkeypatch.setattr(text_rows, "LONGEST_LINE", 1 << 20)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"short\n" + b"a" * LIMIT))
    tracemalloc.start()
    try:
        with (
            pytest.raises(InvalidValueError, match=r"in\.txt\.gz, line 2: longer than 1 MiB"),
            open_reader(find_input(str(tmp_path / "in.txt.gz")), TEXT) as reader,
        ):
            list(reader.batches(1000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("name", ["imdb", "user/name", "user/name-2.0_x"])
def test_names_of_datasets_on_the_hub(name: str) -> None:
    assert find_input(name).kind == "hub"


@pytest.mark.parametrize(
    "name", ["a/b/c", "/a", "../a", "a b", "a/", "-x", "~/x", "x.csv", "x.xlsx"]
)
def test_names_of_files(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        find_input(name)


def test_parts_that_a_killed_run_left_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    left = [tmp_path / ".out.csv.0123abcd.part", tmp_path / ".other.csv.0123abcd.part"]
    for part in left:
        part.write_text("released")
    target.write_text("before")
    both = {"overwrite": True}
    with replacing(target, **both) as file, replacing(target, **both) as other:
        # Two runs at once do not remove each other's parts.
        assert not left[0].exists()
        assert len(list(tmp_path.glob(".out.csv.*.part"))) == 2
        file.write(b"one")
        other.write(b"two")
    assert sorted(os.listdir(tmp_path)) == [left[1].name, "out.csv"]
    assert target.read_text() == "one"

"""Files are read and written in memory that does not grow with them."""

import gzip
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy import files

SIZE = 40 << 20
LIMIT = 20 << 20
TEXT = files.Columns(("text",), ("text",))


def _lines(kind: str) -> Iterator[bytes]:
    start = {"csv": b"id,text\n", "jsonl": b"", "txt": b""}[kind]
    row = b'{"id": 1, "text": "%s"}\n' if kind == "jsonl" else b'1,"%s"\n'
    yield start
    line = row % (b"word " * 400)
    yield from (line for _ in range(SIZE // len(line)))


def _copy(source: Path, target: Path, kind: str) -> None:
    with (
        files.open_reader(files.describe_file(str(source), None), TEXT) as reader,
        files.replacing(target, packed=files.is_packed(str(target))) as file,
        files.open_sink(reader, kind, kind, file, files.dialect_of(kind)) as sink,
    ):
        for batch in reader.batches(1000):
            batch.replace({"text": batch.cells("text")})
            sink.write(batch)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "txt"])
def test_text_files_pass_through(tmp_path: Path, kind: str, ending: str) -> None:
    source, target = tmp_path / f"in.{kind}{ending}", tmp_path / f"out.{kind}{ending}"
    with gzip.open(source, "wb", 1) if ending else source.open("wb") as file:
        file.writelines(_lines(kind))
    tracemalloc.start()
    try:
        _copy(source, target, kind)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LIMIT
    with gzip.open(source) if ending else source.open("rb") as before:
        content = before.read()
    with gzip.open(target) if ending else target.open("rb") as after:
        assert after.read() == content


def test_a_parquet_file_of_one_row_group_passes_through(tmp_path: Path) -> None:
    rows = pa.table({"text": ["word"] * 40_000, "n": [os.urandom(1024) for _ in range(40_000)]})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=40_000, use_dictionary=False)
    columns, held = TEXT, pa.total_allocated_bytes()
    source = files.describe_file(str(tmp_path / "in.parquet"), None)
    with files.open_reader(source, columns) as reader:
        # All batches have been through memory, few at a time.
        most = max(pa.total_allocated_bytes() - held for _ in reader.batches(1000))
    assert most < LIMIT
    _copy(tmp_path / "in.parquet", tmp_path / "out.parquet", "parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)

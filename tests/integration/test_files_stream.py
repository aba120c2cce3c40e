"""Streamed datasets become files with their rows, types and features."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.files import Columns, Reader, dialect_of, open_sink
from hf_dxprivacy.files.arrow import StreamReader, is_hub_name
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.release import privatize_rows
from hf_dxprivacy.spaces import EmbeddingSpace

TEXT = Columns(("text",), ("text",))


def _written(reader: Reader, target: str, privatizer: DxPrivatizer) -> bytes:
    out = io.BytesIO()
    with open_sink(reader, "hub", target, out, dialect_of(target)) as sink:
        privatize_rows(privatizer, reader, sink, batch_size=4, progress=False)
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
    data = _written(StreamReader("rows", stream, TEXT), "parquet", keep_all)
    (tmp_path / "out.parquet").write_bytes(data)
    again = datasets.Dataset.from_parquet(
        str(tmp_path / "out.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert again.to_list() == list(stream)
    assert b"huggingface" in pq.read_schema(io.BytesIO(data)).metadata


def test_a_stream_becomes_json_lines(
    stream: datasets.IterableDataset, keep_all: DxPrivatizer
) -> None:
    data = _written(StreamReader("rows", stream, TEXT), "jsonl", keep_all)
    assert [json.loads(line) for line in data.splitlines()] == list(stream)


def test_nested_columns_do_not_go_into_csv(
    stream: datasets.IterableDataset, keep_all: DxPrivatizer
) -> None:
    with pytest.raises(InvalidValueError, match="cannot hold column 'deep'"):
        _written(StreamReader("rows", stream, TEXT), "csv", keep_all)
    data = _written(
        StreamReader("rows", stream.remove_columns("deep"), TEXT), "csv", keep_all
    ).decode()
    assert data.startswith('text,n\n"waab, 0",0\n')


def test_features_are_found_out_where_the_stream_does_not_tell(keep_all: DxPrivatizer) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from ({"text": ["waab", str(i)], "n": i} for i in range(10))

    reader = StreamReader("rows", datasets.IterableDataset.from_generator(rows), TEXT)
    assert reader.schema.field("text").type == pa.list_(pa.string())
    data = _written(reader, "jsonl", keep_all)
    assert [json.loads(line) for line in data.splitlines()] == list(rows())
    assert reader.position == 10


def test_columns_are_checked(stream: datasets.IterableDataset) -> None:
    with pytest.raises(InvalidValueError, match="rows: there is no column 'txt'"):
        StreamReader("rows", stream, Columns(("txt",), ("txt",)))
    with pytest.raises(InvalidTypeError, match="expected column 'n' to hold texts"):
        StreamReader("rows", stream, Columns(("n",), ("n",)))


@pytest.mark.parametrize("name", ["imdb", "user/name", "user/name-2.0_x"])
def test_what_looks_like_a_dataset_of_the_hub(name: str) -> None:
    assert is_hub_name(name)


@pytest.mark.parametrize("name", ["", "a/b/c", "/a", "../a", "a b", "a/", "-x", "~/x"])
def test_what_does_not_look_like_one(name: str) -> None:
    assert not is_hub_name(name)

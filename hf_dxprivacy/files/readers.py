"""Rows of files and of Hub datasets, in batches of bounded size.

A batch is an Arrow table, or for jsonl, whose rows may differ in type, a list of dicts. No value is
interpreted: csv fields are strings, and JSON numbers are kept as they were written.
"""

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, nearest_path
from hf_dxprivacy.files.source import STANDARD, Columns, Input
from hf_dxprivacy.files.text_rows import (
    Batch,
    Lines,
    Sized,
    T,
    read_delimited,
    read_jsonl,
    read_txt,
)
from hf_dxprivacy.hub.client import is_unreachable, no_connection

# A batch ends when it has so many bytes, whatever rows were asked for.
BATCH_BYTES = 1 << 20
# Rows read at once where their size shows afterwards only.
FEW_ROWS = 64


@dataclass
class Reader:
    """An open input: its rows, and what an output in the same format keeps."""

    source: Input
    batches: Callable[[int], Iterator[Batch]]  # returns batches of at most so many rows
    schema: pa.Schema | None  # of the tables; None for lists of dicts
    total: int | None = None  # bytes or rows, if known
    position: Callable[[], int] | None = None  # returns bytes read; None where rows are counted
    bom: bytes = b""  # the byte order mark
    newline: str = "\n"  # the end of the first line
    compression: str = "SNAPPY"  # of a Parquet file


@contextmanager
def open_reader(source: Input, columns: Columns) -> Iterator[Reader]:
    """Open an input.

    Args:
        source: What to read.
        columns: The text columns, and where the results go.

    Raises:
        InvalidValueError: If it is damaged or a column is missing; names the file and the line,
            never the content.
        InvalidTypeError: If a text column holds something else.
    """
    path = Path(source.name)
    if source.kind == "hub":
        yield _open_dataset(source, columns)
    elif source.kind == "parquet":
        with _open_parquet(source, columns) as reader:
            yield reader
    else:
        standard = source.name == STANDARD
        with nullcontext(sys.stdin.buffer) if standard else path.open("rb") as raw:
            lines = Lines(cast(io.BufferedReader, raw), "standard input" if standard else str(path))
            read = {"txt": read_txt, "jsonl": read_jsonl}.get(source.kind, read_delimited)
            schema, rows, combined = read(lines, source, columns)
            # A pipe has neither size nor position.
            sized = not standard and path.is_file()
            yield Reader(
                source=source,
                batches=lambda size: map(combined, _grouped(rows, size)),
                schema=schema,
                total=path.stat().st_size if sized else None,
                position=raw.tell if sized else None,
                bom=lines.bom,
                newline=lines.newline,
            )


def read_columns(source: Input, names: Sequence[str]) -> list[list[Any]]:
    """Read the cells of columns, of whatever type; errors are those of `open_reader`."""
    cells: list[list[Any]] = [[] for _ in names]
    with open_reader(source, Columns((*names,), (*names,), any_type=True)) as reader:
        for batch in reader.batches(1000):
            for name, column in zip(names, cells, strict=True):
                if isinstance(batch, list):
                    column += [row.get(name) for row in batch]
                else:
                    column += batch.column(name).to_pylist()
    return cells


def as_texts(cells: Iterable[Any], name: str, column: str) -> list[str]:
    """Return the cells of a column of texts, in which a missing one is empty.

    Raises:
        InvalidTypeError: If one is no text; names the file and the column.
    """
    texts = ["" if cell is None else cell for cell in cells]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidTypeError(f"{name}: expected texts in column {column!r}")
    return texts


def _grouped(rows: Iterable[tuple[T, int]], size: int) -> Iterator[list[T]]:
    """Collect rows, each with its size in bytes, until there are enough of either."""
    group: list[T] = []
    total = 0
    for row, row_size in rows:
        group.append(row)
        total += row_size
        if len(group) >= size or total >= BATCH_BYTES:
            yield group
            group, total = [], 0
    if group:
        yield group


def _check_types(schema: pa.Schema, columns: Columns, where: str) -> None:
    """Require the text columns of a typed table to hold texts or lists of tokens."""
    columns.require(schema.names, where)
    for name in columns.nested:
        kind = schema.field(name).type
        if not (pa.types.is_nested(kind) or pa.types.is_null(kind) or "json" in str(kind)):
            raise InvalidTypeError(
                f"{where}: expected column {name!r} to hold lists or dicts, in which a path leads "
                f"to texts, it holds {kind}; name the column alone, or parse JSON first"
            )
    for name in columns.plain:
        kind = given = schema.field(name).type
        if pa.types.is_dictionary(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = kind.value_type
        if kind not in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
            raise InvalidTypeError(
                f"{where}: expected column {name!r} to hold texts or lists of tokens, it holds "
                f"{given}; name another column, or a path such as '{name}[].content'"
            )


def _bounded(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Regroup tables of few rows by number and bytes of rows."""

    def pieces() -> Sized[pa.Table]:
        for table in tables:
            step = max(1, table.num_rows * BATCH_BYTES // max(1, table.nbytes))
            for start in range(0, table.num_rows, step):
                piece = table.slice(start, step)
                yield piece, piece.nbytes

    return map(pa.concat_tables, _grouped(pieces(), size // min(FEW_ROWS, size)))


@contextmanager
def _open_parquet(source: Input, columns: Columns) -> Iterator[Reader]:
    path = source.name
    try:
        # Buffered, so that a column of a large row group is not read as a whole.
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValueError(
            f"{path}: truncated, damaged or not a Parquet file ({error}); fetch or write it again"
        ) from error
    _check_types(file.schema_arrow, columns, path)
    first = file.metadata.row_group(0) if file.num_row_groups else None
    kind = first.column(0).compression if first is not None and first.num_columns else "SNAPPY"

    def tables(size: int) -> Iterator[pa.Table]:
        row = 1
        read = file.iter_batches(min(FEW_ROWS, size))
        while True:
            try:
                batch = next(read, None)
            except (pa.ArrowException, OSError) as error:
                raise InvalidValueError(
                    f"{path}: damaged at or after row {row} ({error})"
                ) from error
            if batch is None:
                return
            for name in columns.text:
                try:
                    batch.column(name).validate(full=True)
                except pa.ArrowInvalid:
                    # The cause is left out: it may hold the text.
                    raise InvalidValueError(
                        f"{path}: column {name!r} holds text that is not UTF-8 in one of the rows "
                        f"{row} to {row + batch.num_rows - 1}; write the file again with text in "
                        "UTF-8"
                    ) from None
            row += batch.num_rows
            yield pa.Table.from_batches([batch])

    with closing(file):
        yield Reader(
            source=source,
            batches=lambda size: _bounded(tables(size), size),
            schema=file.schema_arrow,
            total=file.metadata.num_rows,
            compression="NONE" if kind == "UNCOMPRESSED" else kind,
        )


def _open_dataset(source: Input, columns: Columns) -> Reader:
    # Takes long to import, and is needed here only.
    from datasets import load_dataset
    from huggingface_hub import hf_hub_url

    try:
        if is_unreachable(hf_hub_url(source.name, "README.md", repo_type="dataset")):
            raise ConnectionError(no_connection())
        dataset = load_dataset(source.name, source.subset, split=source.split, streaming=True)
    except Exception as error:  # the library raises errors of its own and of its transport
        raise InvalidValueError(
            f"there is no file {source.name!r} here, and no dataset of that name could be opened "
            f"on the Hugging Face Hub, split {source.split!r} ({type(error).__name__}: {error}); "
            f"check the name, the split and the connection{nearest_path(source.name)}"
        ) from error
    return read_stream(source, dataset, columns)


def read_stream(source: Input, dataset: Any, columns: Columns) -> Reader:
    """Read a `datasets.IterableDataset`.

    Args:
        source: Where it comes from.
        dataset: The dataset.
        columns: The text columns, and where the results go.

    Raises:
        InvalidValueError: If a column is missing, or the dataset has none.
        InvalidTypeError: If a text column holds neither texts nor lists of tokens.
    """
    dataset = dataset if dataset.features is not None else dataset._resolve_features()
    if dataset.features is None:
        raise InvalidValueError(f"{source.name}: the dataset has no rows and no columns")
    schema = dataset.features.arrow_schema
    _check_types(schema, columns, source.name)
    split = (getattr(dataset.info, "splits", None) or {}).get(str(dataset.split))

    def batches(size: int) -> Iterator[pa.Table]:
        tables = dataset.with_format("arrow").iter(min(FEW_ROWS, size))
        return _bounded((table.cast(schema) for table in tables), size)

    return Reader(source, batches, schema, None if split is None else split.num_examples)

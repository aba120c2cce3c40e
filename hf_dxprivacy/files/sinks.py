"""Where batches are written to, in each of the formats."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.arrow import ParquetReader
from hf_dxprivacy.files.base import (
    Batch,
    Reader,
    Sink,
    TableBatch,
    TableReader,
    TextBatch,
    TextReader,
)
from hf_dxprivacy.files.delimited import Dialect
from hf_dxprivacy.files.jsonl import encode_value

# A row group is written when this much has come together.
ROW_GROUP_BYTES = 1 << 26
ROW_GROUP_ROWS = 1 << 17

# Targets by source; every format can also be written as itself. Left out is what would lose
# types, rows or columns.
CONVERSIONS: dict[str, tuple[str, ...]] = {
    "csv": ("tsv", "jsonl", "parquet"),
    "tsv": ("csv", "jsonl", "parquet"),
    "txt": ("csv", "tsv", "jsonl", "parquet"),
    "jsonl": (),
    "parquet": ("csv", "tsv", "jsonl"),
    "hub": ("csv", "tsv", "jsonl", "parquet"),
}


def check_conversion(source: str, target: str) -> None:
    """Require that a format can be written as another one without loss.

    Raises:
        InvalidValueError: If not.
    """
    allowed = (*([source] if source != "hub" else []), *CONVERSIONS[source])
    if target not in allowed:
        raise InvalidValueError(
            f"{source} can be written as {', '.join(allowed)}, not as {target}: something would be "
            "lost; choose another ending for the output, and convert it afterwards if need be"
        )


@contextmanager
def open_sink(
    reader: Reader, source: str, target: str, file: BinaryIO, dialect: Dialect
) -> Iterator[Sink]:
    """Open a sink for a target format; what precedes and what follows the rows is written too.

    Args:
        reader: What is being read.
        source: Its format.
        target: The format to write.
        file: Where to write.
        dialect: The dialect of csv or tsv output.

    Raises:
        InvalidValueError: If the target format can not hold a column.
    """
    if target == source and isinstance(reader, TextReader):
        yield SameFormatSink(file, reader.head())
        return
    if not isinstance(reader, TableReader):
        raise TypeError(f"a {type(reader).__name__} has no schema")
    if target == "jsonl":
        yield JsonLinesSink(file, reader.schema)
    elif target == "parquet":
        with closing(ParquetSink(file, reader)) as sink:
            yield sink
            sink.finish()
    else:
        yield DelimitedSink(file, reader.schema, dialect)


class SameFormatSink:
    """Writes rows of a text format as they came, but for the replaced cells."""

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        self._file = file
        file.write(head)

    def write(self, batch: Batch) -> None:
        """Write the rows of a batch."""
        if not isinstance(batch, TextBatch):
            raise TypeError(f"expected a batch of a text format, got a {type(batch).__name__}")
        self._file.write(batch.encode())


class ParquetSink:
    """Writes a Parquet file, in row groups of bounded size."""

    def __init__(self, file: BinaryIO, reader: TableReader) -> None:
        self._schema = reader.schema
        compression = reader.compression if isinstance(reader, ParquetReader) else "SNAPPY"
        self._writer = pq.ParquetWriter(file, self._schema, compression=compression)
        self._pending: list[pa.Table] = []

    def write(self, batch: Batch) -> None:
        """Take the rows of a batch."""
        # The schema's metadata are not on every batch.
        self._pending.append(_table(batch).cast(self._schema))
        if (
            sum(table.nbytes for table in self._pending) >= ROW_GROUP_BYTES
            or sum(table.num_rows for table in self._pending) >= ROW_GROUP_ROWS
        ):
            self._flush()

    def finish(self) -> None:
        """Write the last row group and the footer."""
        self._flush()
        self._writer.close()

    def close(self) -> None:
        """Give up what is not finished."""
        # The writer would write a footer when it is collected, into a file that may be full.
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending))
            self._pending = []


class JsonLinesSink:
    """Writes one JSON object a row."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._file = file
        _require_types(schema, "jsonl", nested=True)

    def write(self, batch: Batch) -> None:
        """Write the rows of a batch.

        Raises:
            InvalidValueError: If a number is NaN or infinite.
        """
        try:
            lines = [encode_value(row) for row in _table(batch).to_pylist()]
        except ValueError:
            raise InvalidValueError(
                "a column holds NaN or an infinite number, which JSON does not have; write parquet"
            ) from None
        self._file.write("".join(f"{line}\n" for line in lines).encode())


class DelimitedSink:
    """Writes a header and one record a row; a missing value becomes an empty field."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, dialect: Dialect) -> None:
        self._file, self._dialect = file, dialect
        _require_types(schema, "csv and tsv", nested=False)
        self._write([schema.names])

    def write(self, batch: Batch) -> None:
        """Write the rows of a batch."""
        columns = (column.to_pylist() for column in _table(batch).columns)
        self._write([list(map(_as_text, row)) for row in zip(*columns, strict=True)])

    def _write(self, rows: list[list[str]]) -> None:
        join = self._dialect.delimiter.join
        lines = [
            join([self._dialect.field(value, quote=row == [""]) for value in row]) for row in rows
        ]
        self._file.write("".join(f"{line}\n" for line in lines).encode())


def _table(batch: Batch) -> pa.Table:
    if not isinstance(batch, TableBatch):
        raise TypeError(f"expected a batch of a table, got a {type(batch).__name__}")
    return batch.to_arrow()


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _require_types(schema: pa.Schema, target: str, nested: bool) -> None:
    for field in schema:
        if not _is_plain(field.type, nested):
            raise InvalidValueError(
                f"{target} cannot hold column {field.name!r} of type {field.type} without loss; "
                "write parquet"
            )
    if len(set(schema.names)) < len(schema.names):
        raise InvalidValueError(f"{target} cannot hold several columns of one name; rename them")


def _is_plain(kind: pa.DataType, nested: bool) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_plain(kind.value_type, nested)
    if nested and types.is_struct(kind):
        return all(_is_plain(child.type, nested) for child in kind)
    if nested and (types.is_list(kind) or types.is_large_list(kind)):
        return _is_plain(kind.value_type, nested)
    tests = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_null,
    )
    return any(test(kind) for test in tests)

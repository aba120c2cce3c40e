"""Tables of typed columns: Parquet files, and datasets streamed from the Hugging Face Hub."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.files.base import Cell, Columns, TableBatch, TableReader

READ_BUFFER = 1 << 20

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def released_schema(schema: pa.Schema, columns: Columns, where: str) -> pa.Schema:
    """Return the schema of the result; an output column has the type of its text column.

    A dictionary-encoded text becomes a plain one, since released texts hardly ever repeat.

    Args:
        schema: The schema of the input; its metadata are kept.
        columns: The columns.
        where: The file, for messages.

    Raises:
        InvalidValueError: If a column is missing or there are several of that name.
        InvalidTypeError: If a text column holds neither texts nor lists of tokens.
    """
    columns.require(schema.names, where)
    result = schema
    for name, output in zip(columns.text, columns.output, strict=True):
        text = schema.field(name)
        kind = text.type.value_type if pa.types.is_dictionary(text.type) else text.type
        if not (_is_text(kind) or (_is_list(kind) and _is_text(kind.value_type))):
            raise InvalidTypeError(
                f"{where}: expected column {name!r} to hold texts or lists of tokens, it holds "
                f"{text.type}; name another column"
            )
        field = text.with_name(output).with_type(kind)
        at = result.get_field_index(output)
        result = result.append(field) if at < 0 else result.set(at, field)
    return result


class ArrowBatch(TableBatch):
    """Rows of an Arrow table.

    Args:
        table: The rows.
        released: The schema after replacement.
    """

    def __init__(self, table: pa.Table, released: pa.Schema) -> None:
        self._table, self._released = table, released

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def cells(self, column: str) -> list[Cell]:
        """Return the cells of a column."""
        cells: list[Cell] = self._table.column(column).to_pylist()
        return cells

    def replace(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Replace columns, which take the types of the released schema."""
        for name, cells in columns.items():
            field = self._released.field(name)
            array = pa.array(cells, type=field.type)
            at = self._table.schema.get_field_index(name)
            self._table = (
                self._table.append_column(field, array)
                if at < 0
                else self._table.set_column(at, field, array)
            )

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self._table


class ParquetReader(TableReader):
    """Reads a Parquet file, some rows of a row group at a time.

    Attributes:
        compression: How the columns are compressed.

    Raises:
        InvalidValueError: If the file is not readable as Parquet, or a column is missing.
        InvalidTypeError: If a text column holds neither texts nor lists of tokens.
    """

    unit = "rows"

    def __init__(self, path: Path, columns: Columns) -> None:
        self._name, self._rows = str(path), 0
        try:
            # Buffered, so that a column of a large row group is not read as a whole.
            self._file = pq.ParquetFile(path, buffer_size=READ_BUFFER, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise InvalidValueError(
                f"{path}: truncated, damaged or not a Parquet file ({error})"
            ) from error
        self._schema = released_schema(self._file.schema_arrow, columns, self._name)
        self.total = self._file.metadata.num_rows
        first = self._file.metadata.row_group(0) if self._file.num_row_groups else None
        kind = first.column(0).compression if first is not None and first.num_columns else "SNAPPY"
        self.compression = "NONE" if kind == "UNCOMPRESSED" else kind

    @property
    def position(self) -> int:
        """Rows that have been read."""
        return self._rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._schema

    def batches(self, size: int) -> Iterator[ArrowBatch]:
        """Return the rows."""
        batches = self._file.iter_batches(size)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise InvalidValueError(
                    f"{self._name}: damaged at or after row {self._rows + 1} ({error})"
                ) from error
            if batch is None:
                return
            self._rows += batch.num_rows
            yield ArrowBatch(pa.Table.from_batches([batch]), self._schema)

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)


class StreamReader(TableReader):
    """Reads a `datasets.IterableDataset`.

    Args:
        name: What to call it in messages.
        dataset: The dataset.
        columns: The columns.

    Raises:
        InvalidValueError: If a column is missing, or the dataset does not say what its columns are.
        InvalidTypeError: If a text column holds neither texts nor lists of tokens.
    """

    unit = "rows"

    def __init__(self, name: str, dataset: Any, columns: Columns) -> None:
        dataset = dataset if dataset.features is not None else dataset._resolve_features()
        if dataset.features is None:
            raise InvalidValueError(f"{name}: the dataset has no rows and no columns")
        self._schema = released_schema(dataset.features.arrow_schema, columns, name)
        self._before = dataset.features.arrow_schema
        self._dataset, self._rows = dataset.with_format("arrow"), 0
        splits = getattr(dataset.info, "splits", None) or {}
        split = splits.get(str(dataset.split))
        self.total = None if split is None else split.num_examples

    @property
    def position(self) -> int:
        """Rows that have been read."""
        return self._rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._schema

    def batches(self, size: int) -> Iterator[ArrowBatch]:
        """Return the rows."""
        for table in self._dataset.iter(size):
            self._rows += table.num_rows
            yield ArrowBatch(table.cast(self._before), self._schema)


def is_hub_name(name: str) -> bool:
    """Tell whether this looks like the name of a dataset on the Hugging Face Hub."""
    return _HUB_NAME.fullmatch(name) is not None


def open_hub_dataset(name: str, subset: str | None, split: str, columns: Columns) -> StreamReader:
    """Open a dataset of the Hugging Face Hub for streaming.

    Args:
        name: Such as "user/name".
        subset: Name of the configuration, for datasets that have several.
        split: Name of the split.
        columns: The columns.

    Raises:
        InvalidValueError: If it can not be opened.
    """
    # Takes long to import, and is needed here only.
    from datasets import load_dataset

    try:
        dataset = load_dataset(name, subset, split=split, streaming=True)
    except Exception as error:  # the library raises errors of its own and of its transport
        raise InvalidValueError(
            f"there is no file {name!r} here, and no dataset of that name could be opened on the "
            f"Hugging Face Hub, split {split!r} ({type(error).__name__}: {error}); check the name, "
            "the split and the connection"
        ) from error
    return StreamReader(name, dataset, columns)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view)
    ) or types.is_null(kind)


def _is_list(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list))

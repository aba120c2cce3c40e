"""Rows of csv, tsv, jsonl, txt and Parquet files and of Hub datasets, in batches of bounded size.

A batch is an Arrow table, or for jsonl, whose rows may differ in type, a list of dicts. No value is
interpreted: csv fields are strings, and JSON numbers that Python would write in another way are
kept as they were written.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.files.inputs import (
    BLOCK_BYTES,
    DELIMITERS,
    LONGEST_LINE,
    Columns,
    Input,
    Lines,
)

Batch: TypeAlias = "pa.Table | list[dict[str, Any]]"
T = TypeVar("T")

# A batch ends when it has so many bytes, whatever rows were asked for.
BATCH_BYTES = 1 << 20
# Rows read at once where their size shows afterwards only.
FEW_ROWS = 64
# Rows of jsonl in which a text column must occur.
EARLY_ROWS = 1000


@dataclass
class Reader:
    """An open input.

    Attributes:
        kind: The format.
        batches: Returns the rows in batches of at most so many.
        position: Returns how much has been read, in `unit`.
        total: Size of the input in `unit`, None if unknown.
        unit: "B" for bytes or "rows".
        schema: Columns of the tables; None for lists of dicts.
        bom: The byte order mark of a text file, else empty.
        newline: The line end of the first line.
        compression: Of a Parquet file.
    """

    kind: str
    batches: Callable[[int], Iterator[Batch]]
    position: Callable[[], int]
    total: int | None
    unit: str = "B"
    schema: pa.Schema | None = None
    bom: bytes = b""
    newline: str = "\n"
    compression: str = "SNAPPY"


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
    if source.kind == "hub":
        yield _open_dataset(source, columns)
    elif source.kind == "parquet":
        with _open_parquet(Path(source.name), columns) as reader:
            yield reader
    else:
        with closing(Lines(source.path)) as lines:
            read = {"txt": _read_txt, "jsonl": _read_jsonl}.get(source.kind, _read_delimited)
            yield read(lines, source, columns)


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


def _first_line(lines: Lines) -> tuple[Iterator[str], str]:
    """Return all lines, and the line end of the first."""
    rest = iter(lines)
    first = next(rest, "")
    newline = "\r\n" if first.endswith("\r\n") else "\n"
    return chain([first] if first else [], rest), newline


def _read_txt(lines: Lines, source: Input, columns: Columns) -> Reader:
    """Read one text a line, as the only text column."""
    texts, newline = _first_line(lines)
    schema = pa.schema([(name, pa.string()) for name in columns.text])

    def batches(size: int) -> Iterator[pa.Table]:
        cut = (line.removesuffix(newline).removesuffix("\n") for line in texts)
        for group in _grouped(((text, len(text)) for text in cut), size):
            yield pa.table([pa.array(group, pa.string())], schema=schema)

    return Reader(
        source.kind, batches, lines.position, lines.total, "B", schema, lines.bom, newline
    )


def _read_delimited(lines: Lines, source: Input, columns: Columns) -> Reader:
    """Read csv or tsv with a header, all columns as strings."""
    delimiter = source.delimiter or DELIMITERS[source.kind]
    csv.field_size_limit(LONGEST_LINE)
    texts, newline = _first_line(lines)
    quoting = csv.QUOTE_MINIMAL if source.quoted else csv.QUOTE_NONE
    parser = csv.reader(texts, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    records = _records(lines.name, parser)
    header = next(records, _Record(0, []))
    names = header.fields
    others = {";": "--delimiter ';'", "|": "--delimiter '|'", "\t": "--format tsv"}
    hint = "the first line must name the columns"
    for other, option in {**others, ",": "--format csv"}.items():
        if len(names) == 1 and other in names[0]:
            hint = f"if {other!r} separates the fields, say so ({option})"
    columns.require(names, lines.name, hint)
    schema = pa.schema([pa.field(name, pa.string()) for name in names])

    def checked() -> Iterator[tuple[list[str], int]]:
        for line, fields in records:
            if len(fields) != len(names):
                raise InvalidValueError(
                    f"{lines.name}, line {line}: expected {len(names)} fields as in the header, "
                    f"found {len(fields)}; quote fields that contain the delimiter, or mend the "
                    "line"
                )
            yield fields, sum(map(len, fields))

    def batches(size: int) -> Iterator[pa.Table]:
        for rows in _grouped(checked(), size):
            arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            yield pa.table(arrays, schema=schema)

    return Reader(
        source.kind, batches, lines.position, lines.total, "B", schema, lines.bom, newline
    )


class _Record(NamedTuple):
    line: int
    fields: list[str]


_FAULTS = {
    "unexpected end": "a quoted field begins in this row and does not end; close the quote; or say "
    "that the file has no quotes (--no-quotes)",
    "new-line": "a carriage return stands outside quotes; end lines with LF or CR LF, and quote "
    "fields that contain line breaks",
    "expected after": "a field goes on after its closing quote; double the quotes inside a field",
    "": "the csv is malformed",
}
_FAULTS["field larger"] = _FAULTS["unexpected end"]


def _records(name: str, parser: Any) -> Iterator[_Record]:
    """Return the records that are not blank, each with the number of its first line."""
    while True:
        line = parser.line_num + 1
        try:
            fields = next(parser, None)
        except csv.Error as error:
            fault = next(text for start, text in _FAULTS.items() if start in str(error))
            raise InvalidValueError(f"{name}, line {line}: {fault}") from None
        if fields is None:
            return
        if fields:
            yield _Record(line, fields)


@dataclass(frozen=True)
class RawNumber:
    """A JSON number as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text


def _number(kind: Callable[[str], float]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        # Python refuses to convert whole numbers of thousands of digits.
        value = kind(text) if len(text) < 32 else None
        return value if repr(value) == text else RawNumber(text)

    return parse


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise InvalidValueError("a key occurs twice in one object, and one value would be lost")
    return result


_parse_json = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_number(int),
    parse_float=_number(float),
    parse_constant=RawNumber,
).decode


def _read_jsonl(lines: Lines, source: Input, columns: Columns) -> Reader:
    """Read one JSON object a line; blank lines do not count."""
    # The first names that occur, for a message.
    names: dict[str, None] = {}
    missing = set(columns.text)

    def rows() -> Iterator[tuple[dict[str, Any], int]]:
        for line in lines:
            if line.strip(" \t\r\n"):
                row = _row(line, f"{lines.name}, line {lines.number}")
                _check_row(row, columns, f"{lines.name}, line {lines.number}")
                missing.difference_update(row)
                if len(names) < EARLY_ROWS:
                    names.update(dict.fromkeys(row))
                yield row, len(line)

    def batches(size: int) -> Iterator[list[dict[str, Any]]]:
        count = 0
        for group in _grouped(rows(), size):
            count += len(group)
            # A row may lack a key that is null. That all rows lack it shows at the end, but a
            # mistaken name should show early.
            if count >= EARLY_ROWS and len(missing) == len(columns.text):
                break
            yield group
        if missing and count:
            columns.require([name for name in names if name not in missing], lines.name)

    return Reader("jsonl", batches, lines.position, lines.total, bom=lines.bom)


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = _parse_json(line)
    except json.JSONDecodeError as error:
        # The cause is left out: it holds the line.
        problem = f", column {error.pos + 1}: {error.msg}; expected one JSON object on every line"
    except RecursionError:
        problem = ": values are nested too deeply"
    except InvalidValueError as error:
        problem = f": {error}; keep one of them"
    else:
        if isinstance(row, dict):
            return row
        problem = ", column 1: not an object; expected one JSON object on every line"
    raise InvalidValueError(where + problem)


def _check_row(row: dict[str, Any], columns: Columns, where: str) -> None:
    for name in columns.output:
        if name in row and name not in columns.text:
            columns.require([*columns.text, name], where)
    for name in () if columns.any_type else columns.text:
        cell = row.get(name)
        cells = cell if isinstance(cell, list) else [cell]
        if not all(each is None or isinstance(each, str) for each in cells):
            kind = "an array" if isinstance(cell, list) else _JSON_KINDS.get(type(cell), "a number")
            raise InvalidValueError(
                f"{where}: expected {name!r} to be a text, a list of tokens or null, found {kind}"
            )


_JSON_KINDS = {dict: "an object", bool: "true or false"}


def _check_types(schema: pa.Schema, columns: Columns, where: str) -> None:
    """Require the text columns of a typed table to hold texts or lists of tokens."""
    columns.require(schema.names, where)
    for name in () if columns.any_type else columns.text:
        kind = given = schema.field(name).type
        if pa.types.is_dictionary(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = kind.value_type
        if kind not in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
            raise InvalidTypeError(
                f"{where}: expected column {name!r} to hold texts or lists of tokens, it holds "
                f"{given}; name another column"
            )


def _bounded(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Regroup tables of few rows by number and bytes of rows."""

    def pieces() -> Iterator[tuple[pa.Table, int]]:
        for table in tables:
            step = max(1, table.num_rows * BATCH_BYTES // max(1, table.nbytes))
            for start in range(0, table.num_rows, step):
                piece = table.slice(start, step)
                yield piece, piece.nbytes

    few = min(FEW_ROWS, size)
    for group in _grouped(pieces(), size // few):
        yield pa.concat_tables(group)


@contextmanager
def _open_parquet(path: Path, columns: Columns) -> Iterator[Reader]:
    try:
        # Buffered, so that a column of a large row group is not read as a whole.
        file = pq.ParquetFile(path, buffer_size=BLOCK_BYTES, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValueError(
            f"{path}: truncated, damaged or not a Parquet file ({error})"
        ) from error
    _check_types(file.schema_arrow, columns, str(path))
    first = file.metadata.row_group(0) if file.num_row_groups else None
    kind = first.column(0).compression if first is not None and first.num_columns else "SNAPPY"
    rows = 0

    def tables(size: int) -> Iterator[pa.Table]:
        nonlocal rows
        read = file.iter_batches(min(FEW_ROWS, size))
        while True:
            try:
                batch = next(read, None)
            except (pa.ArrowException, OSError) as error:
                raise InvalidValueError(
                    f"{path}: damaged at or after row {rows + 1} ({error})"
                ) from error
            if batch is None:
                return
            _require_utf8(batch, columns.text, str(path), rows)
            rows += batch.num_rows
            yield pa.Table.from_batches([batch])

    with closing(file):
        yield Reader(
            "parquet",
            lambda size: _bounded(tables(size), size),
            lambda: rows,
            file.metadata.num_rows,
            "rows",
            file.schema_arrow,
            compression="NONE" if kind == "UNCOMPRESSED" else kind,
        )


def _require_utf8(batch: pa.RecordBatch, names: Sequence[str], where: str, before: int) -> None:
    for name in names:
        try:
            batch.column(name).validate(full=True)
        except pa.ArrowInvalid:
            # The cause is left out: it may hold the text.
            raise InvalidValueError(
                f"{where}: column {name!r} holds text that is not UTF-8 in one of the rows "
                f"{before + 1} to {before + batch.num_rows}; write the file again with text in "
                "UTF-8"
            ) from None


def _open_dataset(source: Input, columns: Columns) -> Reader:
    # Takes long to import, and is needed here only.
    from datasets import load_dataset

    try:
        dataset = load_dataset(source.name, source.subset, split=source.split, streaming=True)
    except Exception as error:  # the library raises errors of its own and of its transport
        raise InvalidValueError(
            f"there is no file {source.name!r} here, and no dataset of that name could be opened "
            f"on the Hugging Face Hub, split {source.split!r} ({type(error).__name__}: {error}); "
            "check the name, the split and the connection"
        ) from error
    return read_stream(source.name, dataset, columns)


def read_stream(name: str, dataset: Any, columns: Columns) -> Reader:
    """Read a `datasets.IterableDataset`.

    Args:
        name: Its name, for messages.
        dataset: The dataset.
        columns: The text columns, and where the results go.

    Raises:
        InvalidValueError: If a column is missing, or the dataset has none.
        InvalidTypeError: If a text column holds neither texts nor lists of tokens.
    """
    dataset = dataset if dataset.features is not None else dataset._resolve_features()
    if dataset.features is None:
        raise InvalidValueError(f"{name}: the dataset has no rows and no columns")
    schema = dataset.features.arrow_schema
    _check_types(schema, columns, name)
    split = (getattr(dataset.info, "splits", None) or {}).get(str(dataset.split))
    rows = 0

    def tables(size: int) -> Iterator[pa.Table]:
        nonlocal rows
        for table in dataset.with_format("arrow").iter(min(FEW_ROWS, size)):
            rows += table.num_rows
            yield table.cast(schema)

    return Reader(
        "hub",
        lambda size: _bounded(tables(size), size),
        lambda: rows,
        None if split is None else split.num_examples,
        "rows",
        schema,
    )

"""Released rows in each format, and files that appear whole or not at all."""

import csv
import glob
import gzip
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidValueError, describe_column
from hf_dxprivacy.files.readers import FEW_ROWS, Reader
from hf_dxprivacy.files.source import DELIMITERS, ENDINGS, STANDARD, Input
from hf_dxprivacy.files.text_rows import Batch

# A row group is written when this much has come together.
ROW_GROUP_BYTES, ROW_GROUP_ROWS = 1 << 25, 1 << 17

# Targets by source. Left out is what would lose types, rows or columns.
CONVERSIONS = {
    "csv": ("csv", "tsv", "jsonl", "parquet"),
    "tsv": ("tsv", "csv", "jsonl", "parquet"),
    "txt": ("txt", "csv", "tsv", "jsonl", "parquet"),
    "jsonl": ("jsonl",),
    "parquet": ("parquet", "csv", "tsv", "jsonl"),
    "hub": ("csv", "tsv", "jsonl", "parquet"),
}


def find_format(name: str, source: Input) -> str:
    """Decide in which format to write to a file, or to "-", standard output.

    Raises:
        InvalidValueError: If none is known, or something of the input would be lost in it.
    """
    packed = name.lower().endswith(".gz")
    ending = Path(name.lower().removesuffix(".gz")).suffix
    target = ENDINGS.get(ending)
    if ending and target is None:
        raise InvalidValueError(
            f"{name}: cannot write the format of the ending {ending!r}; choose one of "
            f"{', '.join(ENDINGS)}, or none for the format of the input"
        )
    target = target or source.kind
    if target == "hub":
        raise InvalidValueError(f"the ending of {name!r} does not tell the format; .jsonl would do")
    if target not in CONVERSIONS[source.kind]:
        raise InvalidValueError(
            f"{source.kind} can be written as {', '.join(CONVERSIONS[source.kind])}, not as "
            f"{target}: something would be lost; choose another ending for the output, and "
            "convert it afterwards if need be"
        )
    if target == "parquet" and name == STANDARD:
        raise InvalidValueError("parquet is written to a file, not to standard output")
    if target == "parquet" and packed:
        raise InvalidValueError("parquet is compressed by itself; leave out .gz")
    return target


def write_rows(
    file: BinaryIO, target: str, schema: Any, reader: Reader, batches: Iterable[Batch]
) -> None:
    """Write batches, after what precedes the rows.

    Args:
        file: Where to write.
        target: The format.
        schema: The `pyarrow.Schema` of the batches; None for lists of dicts.
        reader: Whose byte order mark, line end, delimiter or compression to keep.
        batches: The rows.

    Raises:
        InvalidValueError: If the format cannot hold a column or a value.
    """
    if target == "parquet":
        _write_parquet(file, schema, reader.compression, batches)
        return
    source, newline = reader.source, reader.newline

    def line(row: Any) -> str:
        if target == "txt":
            return f"{row[0]}{newline}"
        return _json_line(row if schema is None else dict(zip(schema.names, row, strict=True)))

    file.write(reader.bom if source.kind == target else b"")
    record: Callable[[Any], str] = line
    if target in DELIMITERS:
        _require_types(schema, "csv and tsv", nested=False)
        own = source.delimiter if source.kind == target else None
        record = _delimited(own or DELIMITERS[target], source.quoted, newline)
        file.write(record(schema.names).encode() if schema.names else b"")
    elif target == "jsonl" and schema is not None:
        _require_types(schema, target, nested=True)
    for batch in batches:
        rows = batch if isinstance(batch, list) else _rows(batch)
        file.write("".join(map(record, rows)).encode())
    file.flush()


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    columns = []
    for at, column in enumerate(table.columns):
        try:
            columns.append(column.to_pylist())
        except UnicodeDecodeError:
            # The cause is left out: it holds the data.
            raise InvalidValueError(
                f"{describe_column(table.column_names, at)} holds strings that are not UTF-8, "
                "which a text format cannot hold; write parquet"
            ) from None
    return zip(*columns, strict=True)


# Stands around the text of a raw number until it is written; no data can foresee it.
_RAW = secrets.token_hex(16)


def _json_line(row: dict[str, Any]) -> str:
    """Return a row as a line of JSON, with letters of all scripts as they are."""
    settings: dict[str, Any] = {"allow_nan": False, "default": lambda raw: _RAW + raw.text}
    try:
        line = json.dumps(row, ensure_ascii=False, **settings)
    except ValueError:
        raise InvalidValueError(
            "a column holds NaN or an infinite number, which JSON does not have; write parquet"
        ) from None
    if re.search("[\ud800-\udfff]", line):  # half of a pair, which only an escape can write
        line = json.dumps(row, **settings)
    return re.sub(f'"{_RAW}([^"]*)"', r"\1", line) + "\n"


def _delimited(delimiter: str, quoted: bool, newline: str) -> Callable[[Iterable[Any]], str]:
    """Return a function that writes a record, with quotes where they are necessary."""
    quotes: dict[str, Any] = {} if quoted else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    # Both characters of its line end are special to it. It returns what this "file" returns.
    sink: Any = SimpleNamespace(write=str)
    write = csv.writer(sink, delimiter=delimiter, lineterminator="\r\n", **quotes).writerow

    def record(values: Iterable[Any]) -> str:
        fields = [str(value).lower() if isinstance(value, bool) else value for value in values]
        if not quoted and fields in ([""], [None]):
            return newline
        try:
            line: Any = write(fields)
        except csv.Error:
            raise InvalidValueError(
                f"a released text contains the delimiter {delimiter!r} or a line break, and the "
                "file has no quotes to protect it; allow quotes, or write another format"
            ) from None
        return f"{line[:-2]}{newline}"

    return record


def _write_parquet(
    file: BinaryIO, schema: pa.Schema, compression: str, batches: Iterable[pa.Table]
) -> None:
    """Write row groups whose bounds follow from the released rows alone.

    Batches end where the original texts have so many bytes, which must not show.
    """
    writer = pq.ParquetWriter(file, schema, compression=compression)
    # No empty table to begin with: Arrow makes none with JSON in lists.
    rest: list[pa.Table] = []
    group, size = [], 0
    try:
        for batch in batches:
            table = pa.concat_tables([*rest, batch])
            whole = table.num_rows - table.num_rows % FEW_ROWS
            for start in range(0, whole, FEW_ROWS):
                group.append(table.slice(start, FEW_ROWS))
                size += group[-1].nbytes
                if size >= ROW_GROUP_BYTES or len(group) * FEW_ROWS >= ROW_GROUP_ROWS:
                    writer.write_table(pa.concat_tables(group).combine_chunks())
                    group, size = [], 0
            rest = [table.slice(whole)]
        if sum(table.num_rows for table in (*group, *rest)):
            writer.write_table(pa.concat_tables([*group, *rest]).combine_chunks())
        writer.close()
    finally:
        # The writer would write a footer when it is collected, into a file that may be full.
        with suppress(OSError, ValueError, pa.ArrowException):
            writer.close()


_PLAIN = {
    *(pa.string(), pa.large_string(), pa.string_view(), pa.null(), pa.bool_()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
}


def _require_types(schema: pa.Schema, target: str, nested: bool) -> None:
    def is_plain(kind: pa.DataType) -> bool:
        if pa.types.is_dictionary(kind):
            return is_plain(kind.value_type)
        if nested and pa.types.is_struct(kind):
            return all(is_plain(child.type) for child in kind)
        if nested and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return is_plain(kind.value_type)
        return kind in _PLAIN

    for at, field in enumerate(schema):
        if not is_plain(field.type):
            raise InvalidValueError(
                f"{target} cannot hold {describe_column(schema.names, at)} of type {field.type} "
                "without loss; write parquet"
            )
    if nested and len(set(schema.names)) < len(schema.names):
        raise InvalidValueError(f"{target} cannot hold several columns of one name; rename them")


def check_output(path: Path, overwrite: bool) -> None:
    """Require that a file can be put in this place, where one may only be with `overwrite`.

    Raises:
        InvalidValueError: If not.
    """
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise InvalidValueError(f"{path} is a folder; name a file")
    if not folder.is_dir():
        link = f", where {path} leads" if path.is_symlink() else ""
        raise InvalidValueError(
            f"there is no folder {folder if link else path.parent}{link}; make it first"
        )
    if path.exists() and not path.is_file():
        raise InvalidValueError(f"{path} is not a regular file; name another one")
    if path.exists() and not overwrite:
        raise InvalidValueError(
            f"{path} exists already; name another file, or allow to overwrite it (--overwrite)"
        )


@contextmanager
def replacing(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    It is written next to its place as ``.NAME.XXXX.part``, forced to disk and renamed. An error, a
    signal that raises or a full disk leaves nothing behind. A killed process leaves its part, which
    the next run for the same output removes.

    Args:
        path: The file to be; compressed if it ends in .gz.
        overwrite: Whether it may exist.

    Raises:
        InvalidValueError: If the file exists and may not.
    """
    check_output(path, overwrite)
    target = Path(os.path.realpath(path))  # a link is followed, not replaced
    prefix = f".{target.name[:100]}."
    for part in target.parent.glob(f"{glob.escape(prefix)}{'[0-9a-f]' * 8}.part"):
        with suppress(OSError), part.open("rb") as left:
            if _lock(left):  # its process was killed
                part.unlink()
    beside = target.with_name(f"{prefix}{secrets.token_hex(4)}.part")
    opened: list[BinaryIO] = []
    try:
        opened.append(raw := beside.open("xb"))
        _lock(raw)
        if path.name.lower().endswith(".gz"):
            opened.append(cast(BinaryIO, gzip.GzipFile("", "wb", 6, raw, mtime=0)))
        yield opened[-1]
        for file in reversed(opened[1:]):
            file.close()
        raw.flush()
        os.fsync(raw.fileno())
        check_output(path, overwrite)
        if target.exists():
            shutil.copymode(target, beside)
        raw.close()
        os.replace(beside, target)
    except BaseException as error:
        for file in reversed(opened):
            # Closing writes what is buffered, which fails again on a full disk.
            with suppress(OSError, ValueError):
                file.close()
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(beside)) and error.errno:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def _lock(file: BinaryIO) -> bool:
    """Lock a file for as long as it is open; False if another process has it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows, which refuses to remove files that are open
        return True
    except OSError:
        return False
    return True

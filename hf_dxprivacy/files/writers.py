"""Released rows in each format, and files that appear whole or not at all."""

import gzip
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hf_dxprivacy.errors import InvalidValueError, describe_column
from hf_dxprivacy.files.inputs import DELIMITERS
from hf_dxprivacy.files.readers import FEW_ROWS, Batch, Reader

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

Write = Callable[[Batch], None]


def check_conversion(source: str, target: str) -> None:
    """Require that a format can be written as another one without loss.

    Raises:
        InvalidValueError: If not.
    """
    if target not in CONVERSIONS[source]:
        raise InvalidValueError(
            f"{source} can be written as {', '.join(CONVERSIONS[source])}, not as {target}: "
            "something would be lost; choose another ending for the output, and convert it "
            "afterwards if need be"
        )


@contextmanager
def open_writer(
    file: BinaryIO,
    target: str,
    schema: Any,
    reader: Reader,
    quoted: bool = True,
    delimiter: str | None = None,
) -> Iterator[Write]:
    """Return a function that writes batches, after what precedes the rows.

    Args:
        file: Where to write.
        target: The format.
        schema: The `pyarrow.Schema` of the batches; None for lists of dicts.
        reader: Whose byte order mark, line end or compression to keep.
        quoted: Whether csv and tsv may have quotes.
        delimiter: Of csv or tsv, instead of that of the format.

    Raises:
        InvalidValueError: If the format cannot hold a column.
    """
    if target == "parquet":
        with _parquet(file, schema, reader.compression) as write:
            yield write
        return
    file.write(reader.bom if reader.kind == target else b"")
    if target == "jsonl":
        if schema is not None:
            _require_types(schema, target, nested=True)
        yield lambda batch: _write(file, map(_json_line, _dicts(batch)))
    elif target == "txt":
        yield lambda batch: _write(file, (f"{text}{reader.newline}" for (text,) in _rows(batch)))
    else:
        _require_types(schema, "csv and tsv", nested=False)
        line = _delimited(delimiter or DELIMITERS[target], quoted, reader.newline)
        _write(file, [line(schema.names)] if schema.names else [])
        yield lambda batch: _write(file, map(line, _rows(batch)))


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    file.write("".join(lines).encode())


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Return the values of each row.

    Raises:
        InvalidValueError: If a string is not UTF-8.
    """
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


def _dicts(batch: Batch) -> Iterable[dict[str, Any]]:
    if isinstance(batch, list):
        return batch
    return (dict(zip(batch.column_names, row, strict=True)) for row in _rows(batch))


# Stands around the text of a raw number until it is written; no data can foresee it.
_RAW = secrets.token_hex(16)


def _json_line(row: dict[str, Any]) -> str:
    """Return a row as a line of JSON, with letters of all scripts as they are.

    Raises:
        InvalidValueError: If a number of a table is not finite.
    """
    ascii_only = False
    while True:
        try:
            line = json.dumps(
                row, ensure_ascii=ascii_only, allow_nan=False, default=lambda raw: _RAW + raw.text
            )
            line.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
            ascii_only = True
        except ValueError:
            raise InvalidValueError(
                "a column holds NaN or an infinite number, which JSON does not have; write parquet"
            ) from None
        else:
            return re.sub(f'"{_RAW}([^"]*)"', r"\1", line) + "\n"


def _delimited(delimiter: str, quoted: bool, newline: str) -> Callable[[Iterable[Any]], str]:
    """Return a function that writes a record, with quotes where they are necessary."""
    special = re.compile(f"[{re.escape(delimiter)}\r\n" + ('"]' if quoted else "]")).search

    def field(value: Any) -> str:
        text = str(value) if value is not None else ""
        if isinstance(value, bool):
            text = text.lower()
        if not special(text):
            return text
        if not quoted:
            raise InvalidValueError(
                f"a released text contains the delimiter {delimiter!r} or a line break, and the "
                "file has no quotes to protect it; allow quotes, or write another format"
            )
        return '"' + text.replace('"', '""') + '"'

    def record(values: Iterable[Any]) -> str:
        fields = [field(value) for value in values]
        # An empty field alone on its line would be taken for a blank line.
        return ('""' if fields == [""] and quoted else delimiter.join(fields)) + newline

    return record


@contextmanager
def _parquet(file: BinaryIO, schema: pa.Schema, compression: str) -> Iterator[Write]:
    """Write row groups whose bounds follow from the released rows alone.

    Batches end where the original texts have so many bytes, which must not show.
    """
    writer = pq.ParquetWriter(file, schema, compression=compression)
    rest = schema.empty_table()
    group: list[pa.Table] = []
    size = 0

    def write(batch: pa.Table) -> None:
        nonlocal rest, size
        table = pa.concat_tables([rest, batch.cast(schema)])
        whole = table.num_rows - table.num_rows % FEW_ROWS
        for start in range(0, whole, FEW_ROWS):
            group.append(table.slice(start, FEW_ROWS))
            size += group[-1].nbytes
            if size >= ROW_GROUP_BYTES or len(group) * FEW_ROWS >= ROW_GROUP_ROWS:
                flush()
        rest = table.slice(whole)

    def flush() -> None:
        nonlocal size
        if group:
            writer.write_table(pa.concat_tables(group).combine_chunks())
            group.clear()
            size = 0

    try:
        yield write
        if rest.num_rows:
            group.append(rest)
        flush()
        writer.close()
    finally:
        # The writer would write a footer when it is collected, into a file that may be full.
        with suppress(OSError, ValueError, pa.ArrowException):
            writer.close()


_PLAIN = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_null,
)


def _require_types(schema: pa.Schema, target: str, nested: bool) -> None:
    for at, field in enumerate(schema):
        if not _is_plain(field.type, nested):
            raise InvalidValueError(
                f"{target} cannot hold {describe_column(schema.names, at)} of type {field.type} "
                "without loss; write parquet"
            )
    if nested and len(set(schema.names)) < len(schema.names):
        raise InvalidValueError(f"{target} cannot hold several columns of one name; rename them")


def _is_plain(kind: pa.DataType, nested: bool) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_plain(kind.value_type, nested)
    if nested and pa.types.is_struct(kind):
        return all(_is_plain(child.type, nested) for child in kind)
    if nested and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return _is_plain(kind.value_type, nested)
    return any(test(kind) for test in _PLAIN)


def check_output(path: Path, overwrite: bool) -> None:
    """Require that a file can be put in this place.

    Args:
        path: The file to be.
        overwrite: Whether it may exist.

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
    if path.exists():
        if not path.is_file():
            raise InvalidValueError(f"{path} is not a regular file; name another one")
        if not overwrite:
            raise InvalidValueError(
                f"{path} exists already; name another file, or allow to overwrite it (--overwrite)"
            )


@contextmanager
def replacing(path: Path, *, overwrite: bool = False, packed: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    It is written beside its place as ``.NAME.XXXX.part``, forced to disk and renamed. An error, a
    signal that raises or a full disk leaves nothing behind. A killed process leaves its part, which
    the next run for the same output removes.

    Args:
        path: The file to be.
        overwrite: Whether it may exist.
        packed: Compress with gzip.

    Raises:
        InvalidValueError: If the file exists and may not.
    """
    check_output(path, overwrite)
    target = Path(os.path.realpath(path))  # a link is followed, not replaced
    prefix = f".{target.name[:100]}."
    _remove_abandoned(target.parent, prefix)
    beside = target.with_name(f"{prefix}{secrets.token_hex(4)}.part")
    opened: list[BinaryIO] = []
    try:
        opened.append(raw := beside.open("xb"))
        _lock(raw)
        if packed:
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


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Hand out standard output as a binary file."""
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


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


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the parts of an output whose process was killed."""
    for name in os.listdir(folder):
        if re.fullmatch(re.escape(prefix) + "[0-9a-f]{8}.part", name):
            with suppress(OSError), (folder / name).open("rb") as file:
                if _lock(file):
                    (folder / name).unlink()

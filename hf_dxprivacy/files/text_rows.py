"""Rows of csv, tsv, jsonl and txt files, from lines of UTF-8."""

import csv
import gzip
import io
import json
import logging
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.source import DELIMITERS, Columns, Input

logger = logging.getLogger(__name__)

Batch: TypeAlias = "pa.Table | list[dict[str, Any]]"
T = TypeVar("T")
Sized: TypeAlias = Iterator[tuple[T, int]]  # rows, or tables of few rows, each with its size

# No text is that long: a longer line has other line ends, or an open quote.
LONGEST_LINE = 1 << 26
# Rows of jsonl in which a text column must occur.
EARLY_ROWS = 1000

BOM = b"\xef\xbb\xbf"


class Lines:
    """Lines of UTF-8 text with their ends, decompressed; only a line feed ends a line.

    Args:
        raw: The stream, perhaps in gzip.
        name: Its name, for messages.
    """

    def __init__(self, raw: io.BufferedReader, name: str) -> None:
        self.name, self.number = name, 0  # of the line returned last
        self._stream = gzip.open(raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        first = self._read()
        self.newline = "\r\n" if first.endswith(b"\r\n") else "\n"
        self._first = first.removeprefix(BOM)
        self.bom = first[: len(first) - len(self._first)]

    def __iter__(self) -> Iterator[str]:
        """Return the lines.

        Raises:
            InvalidValueError: If the text is not UTF-8, a gzip stream is damaged, or a line is too
                long; names the line.
        """
        line = self._first
        while line:
            self.number += 1
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                # The cause is left out: it holds the data.
                raise InvalidValueError(
                    f"{self.name}, line {self.number}, byte {error.start + 1} of the line: not "
                    "UTF-8; convert the file, for instance with iconv"
                ) from None
            yield text
            line = self._read()

    def _read(self) -> bytes:
        try:
            line: bytes = self._stream.readline(LONGEST_LINE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{self.name}: the gzip stream is truncated or damaged ({error}); fetch the file "
                "again"
            ) from error
        if len(line) == LONGEST_LINE:
            raise InvalidValueError(
                f"{self.name}, line {self.number + 1}: longer than {LONGEST_LINE >> 20} MiB; a "
                "line must end with a line feed"
            )
        return line


def read_words(path: Path) -> frozenset[str]:
    """Read a list of words, one a line; blank lines do not count.

    Raises:
        InvalidValueError: If the file is not UTF-8.
    """
    with path.open("rb") as raw:
        return frozenset(line.strip() for line in Lines(raw, str(path))) - {""}


# Schema, rows with their sizes, and what makes a batch of some.
_Text: TypeAlias = "tuple[pa.Schema | None, Sized[Any], Callable[[list[Any]], Batch]]"


def read_txt(lines: Lines, source: Input, columns: Columns) -> _Text:
    """Read one text a line, as the only text column."""
    schema = pa.schema([(name, pa.string()) for name in columns.text])
    texts = (line.removesuffix(lines.newline).removesuffix("\n") for line in lines)
    rows = ((text, len(text)) for text in texts)
    return schema, rows, lambda group: pa.table([pa.array(group, pa.string())], schema=schema)


def read_delimited(lines: Lines, source: Input, columns: Columns) -> _Text:
    """Read csv or tsv with a header, all columns as strings."""
    delimiter = source.delimiter or DELIMITERS[source.kind]
    csv.field_size_limit(LONGEST_LINE)
    quoting = csv.QUOTE_MINIMAL if source.quoted else csv.QUOTE_NONE
    parser = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    records = _records(lines.name, parser)
    names = next(records, ([], 0))[0]
    if not names:
        raise InvalidValueError(
            f"{lines.name} is empty: there is no first line, which names the columns; is it the "
            "right file?"
        )
    others = {";": "--delimiter ';'", "|": "--delimiter '|'", "\t": "--format tsv"}
    hint = "the first line must name the columns"
    for other, option in {**others, ",": "--format csv"}.items():
        if len(names) == 1 and other in names[0]:
            hint = f"if {other!r} separates the fields, say so ({option})"
    columns.require(names, lines.name, hint)
    schema = pa.schema([pa.field(name, pa.string()) for name in names])

    def table(rows: list[list[str]]) -> pa.Table:
        arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        return pa.table(arrays, schema=schema)

    return schema, records, table


_FAULTS = {
    "unexpected end": "a quoted field begins in this row and does not end; close the quote; or say "
    "that the file has no quotes (--no-quotes)",
    "new-line": "a carriage return stands outside quotes; end lines with LF or CR LF, and quote "
    "fields that contain line breaks",
    "expected after": "a field goes on after its closing quote; double the quotes inside a field",
    "": "the csv is malformed",
}
_FAULTS["field larger"] = _FAULTS["unexpected end"]


def _records(name: str, parser: Any) -> Sized[list[str]]:
    """Return the records that are not blank, all as long as the first, with their sizes."""
    width = 0
    while True:
        line = parser.line_num + 1
        try:
            fields = next(parser, None)
        except csv.Error as error:
            fault = next(text for start, text in _FAULTS.items() if start in str(error))
            raise InvalidValueError(f"{name}, line {line}: {fault}") from None
        if fields is None:
            return
        width = width or len(fields)
        if fields and len(fields) != width:
            raise InvalidValueError(
                f"{name}, line {line}: expected {width} fields as in the header, found "
                f"{len(fields)}; quote fields that contain the delimiter, or mend the line"
            )
        if fields:
            yield fields, sum(map(len, fields))


class RawNumber:
    """A JSON number as it was written, such as 1.10, or one of thousands of digits."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _number(kind: Callable[[str], float]) -> Callable[[str], Any]:
    """Return a parser of numbers; most are as Python writes them, and are cheap to write again."""

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
_JSON_KINDS = {dict: "an object", list: "an array", bool: "true or false"}


def read_jsonl(lines: Lines, source: Input, columns: Columns) -> _Text:
    """Read one JSON object a line; blank lines do not count."""

    def rows() -> Sized[dict[str, Any]]:
        # The first names that occur, for a message.
        names: dict[str, None] = {}
        wanted, missing, count, without = {*columns.text}, {*columns.text}, 0, 0
        for line in lines:
            if not line.strip(" \t\r\n"):
                continue
            row = _row(line, f"{lines.name}, line {lines.number}", columns)
            missing.difference_update(row)
            count += 1
            without += not row.keys() >= wanted
            if len(names) < EARLY_ROWS:
                names.update(dict.fromkeys(row))
            # A row may lack a key that is null. That all rows lack it shows at the end, but a
            # mistaken name should show early.
            if count >= EARLY_ROWS and len(missing) == len(columns.text):
                break
            yield row, len(line)
        if missing and count:
            columns.require([name for name in names if name not in missing], lines.name)
        if without:
            logger.warning(
                "%s: %d of %d rows lack %s; whatever they hold under other keys is RELEASED AS IT "
                "IS, as the other columns are",
                lines.name,
                without,
                count,
                " or ".join(map(repr, columns.text)),
            )

    return None, rows(), lambda group: group


def _expected(line: str) -> str:
    listed = "; of a file that holds one list, 'jq -c .[]' makes such lines" * (line[0] == "[")
    return f"expected one JSON object on every line{listed}"


def _row(line: str, where: str, columns: Columns) -> dict[str, Any]:
    try:
        row = _parse_json(line)
    except json.JSONDecodeError as error:
        # The cause is left out: it holds the line.
        problem = f", column {error.pos + 1}: {error.msg}; {_expected(line)}"
        raise InvalidValueError(where + problem) from None
    except RecursionError:
        raise InvalidValueError(f"{where}: values are nested too deeply") from None
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: {error}; keep one of them") from None
    if not isinstance(row, dict):
        raise InvalidValueError(f"{where}, column 1: not an object; {_expected(line)}")
    for name in columns.output:
        if name in row and name not in columns.text:
            columns.require([*columns.text, name], where)
    for name in columns.plain:
        cell = row.get(name)
        cells = cell if isinstance(cell, list) else [cell]
        if not all(each is None or isinstance(each, str) for each in cells):
            raise InvalidValueError(
                f"{where}: expected {name!r} to be a text, a list of tokens or null, found "
                f"{_JSON_KINDS.get(type(cell), 'a number')}; a path leads to texts within, as "
                f"'{name}[].content' for chats"
            )
    return row

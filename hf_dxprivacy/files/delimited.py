"""CSV and TSV, in which every field that is not replaced stays as it is, byte for byte.

Fields are kept with their quotes: "007", dates and empty fields are not interpreted, and line ends,
blank lines and a byte order mark survive.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.base import (
    Cell,
    Columns,
    TableBatch,
    TableReader,
    TextBatch,
    TextReader,
    grouped,
)
from hf_dxprivacy.files.source import LONGEST_LINE, Line, Source
from hf_dxprivacy.files.txt import cut_line_end

# What separates the fields of many a file, and how to say so.
_OTHERS = {
    ";": "--delimiter ';'",
    "|": "--delimiter '|'",
    "\t": "--format tsv",
    ",": "--format csv",
}


@dataclass(frozen=True)
class Dialect:
    """How fields are told apart.

    Attributes:
        delimiter: One character.
        quoted: Whether a field that begins with a double quote goes on to its closing one.
    """

    delimiter: str
    quoted: bool = True

    def plain(self, field: str) -> str:
        """Return the value of a field: without its quotes."""
        if self.quoted and field.startswith('"'):
            return field[1:-1].replace('""', '"')
        return field

    def field(self, value: str, quote: bool = False) -> str:
        """Return a value as a field, in quotes where necessary.

        Args:
            value: The value.
            quote: Use quotes in any case.

        Raises:
            InvalidValueError: If it needs quotes and the dialect has none.
        """
        special = any(character in value for character in (self.delimiter, "\n", "\r"))
        if not self.quoted:
            if special:
                raise InvalidValueError(
                    f"a released text contains the delimiter {self.delimiter!r} or a line break, "
                    "and the file has no quotes to protect it; allow quotes, or write another "
                    "format"
                )
            return value
        return (
            '"{}"'.format(value.replace('"', '""')) if quote or special or '"' in value else value
        )


class Record(NamedTuple):
    """One row: the number of its first line, its fields as they stand there, and its line end.

    A blank line is a record without fields.
    """

    line: int
    fields: list[str]
    end: str

    @property
    def characters(self) -> int:
        """Number of characters, about."""
        return sum(map(len, self.fields))


class RecordParser:
    """Cuts lines into records.

    Args:
        source: The file.
        dialect: How fields are told apart.
    """

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self._name, self._dialect = source.name, dialect
        self._lines: Iterator[Line] = source.lines()

    def __iter__(self) -> Iterator[Record]:
        delimiter, quoted = self._dialect.delimiter, self._dialect.quoted
        for number, line in self._lines:
            text, end = cut_line_end(line)
            if quoted and '"' in text:
                yield self._with_quotes(number, text, end)
                continue
            if "\r" in text:
                raise self._carriage_return(number)
            yield Record(number, text.split(delimiter) if text else [], end)

    def _with_quotes(self, first: int, text: str, end: str) -> Record:
        fields, start, number = [], 0, first
        while True:
            parts: list[str] = []
            if text.startswith('"', start):
                search = start + 1
                while (stop := _after_quote(text, search)) < 0:
                    parts.append(text[start:] + end)
                    number, text, end = self._next_line(first, sum(map(len, parts)))
                    start = search = 0
                if stop < len(text) and text[stop] != self._dialect.delimiter:
                    raise InvalidValueError(
                        f"{self._name}, line {number}: a field goes on after its closing quote; "
                        'write a quote inside a quoted field as ""; or say that the file has no '
                        "quotes (--no-quotes)"
                    )
            else:
                stop = text.find(self._dialect.delimiter, start)
                stop = len(text) if stop < 0 else stop
                if "\r" in text[start:stop]:
                    raise self._carriage_return(number)
            fields.append("".join([*parts, text[start:stop]]))
            if stop == len(text):
                return Record(first, fields, end)
            start = stop + 1

    def _next_line(self, first: int, length: int) -> tuple[int, str, str]:
        number, line = next(self._lines, (0, ""))
        if not line or length > LONGEST_LINE:
            raise InvalidValueError(
                f"{self._name}, line {first}: a quoted field begins in this row and does not end; "
                "close the quote; or say that the file has no quotes (--no-quotes)"
            )
        return number, *cut_line_end(line)

    def _carriage_return(self, number: int) -> InvalidValueError:
        # Other programs end a row here, so the columns that follow would not be those we see.
        return InvalidValueError(
            f"{self._name}, line {number}: a carriage return stands outside quotes; end lines with "
            "LF or CR LF, and quote fields that contain line breaks"
        )


def _after_quote(text: str, start: int) -> int:
    """Return the index after the quote that closes a field, or −1; a doubled quote does not."""
    while (at := text.find('"', start)) >= 0:
        if not text.startswith('"', at + 1):
            return at + 1
        start = at + 2
    return -1


class DelimitedBatch(TextBatch, TableBatch):
    """Records, blank lines among them.

    Args:
        records: The records; their fields are replaced in place.
        names: The columns.
        dialect: How fields are told apart.
    """

    def __init__(self, records: Sequence[Record], names: Sequence[str], dialect: Dialect) -> None:
        self._records, self._names, self._dialect = records, list(names), dialect
        self._rows = [record.fields for record in records if record.fields]

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self, column: str) -> list[Cell]:
        """Return the values of a column."""
        at = self._names.index(column)
        return [self._dialect.plain(fields[at]) for fields in self._rows]

    def replace(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Replace fields; one that had quotes keeps them."""
        for name, cells in columns.items():
            if name not in self._names:
                self._names.append(name)
                for fields in self._rows:
                    fields.append("")
            at, alone = self._names.index(name), len(self._names) == 1
            for fields, cell in zip(self._rows, cells, strict=True):
                # An empty text alone on its line would be taken for a blank line.
                quote = fields[at].startswith('"') or (alone and not cell)
                fields[at] = self._dialect.field(str(cell), quote)

    def encode(self) -> bytes:
        """Return the records."""
        join = self._dialect.delimiter.join
        return "".join(join(record.fields) + record.end for record in self._records).encode()

    def to_arrow(self) -> pa.Table:
        """Return all columns as strings."""
        columns = [pa.array(self.cells(name), pa.string()) for name in self._names]
        return pa.table(columns, names=self._names)


class DelimitedReader(TextReader, TableReader):
    """Reads a file with a header line.

    Raises:
        InvalidValueError: If a column is missing.
    """

    def __init__(self, source: Source, dialect: Dialect, columns: Columns) -> None:
        self._source, self._dialect, self._columns = source, dialect, columns
        self._records = iter(RecordParser(source, dialect))
        self._preamble: list[Record] = []
        for record in self._records:
            self._preamble.append(record)
            if record.fields:
                break
        header = self._preamble[-1].fields if self._preamble else []
        self._names = [dialect.plain(field) for field in header]
        columns.require(self._names, source.name, _hint(self._names))
        self.total = source.total

    @property
    def position(self) -> int:
        """Bytes that have been read."""
        return self._source.position

    @property
    def schema(self) -> pa.Schema:
        """All columns as strings."""
        names = self._names
        if len(set(names)) < len(names):
            raise InvalidValueError(
                f"{self._source.name}: several columns have the same name, which the output format "
                "does not allow; rename them"
            )
        return pa.schema([pa.field(name, pa.string()) for name in (*names, *self._columns.added)])

    def batches(self, size: int) -> Iterator[DelimitedBatch]:
        """Return the rows.

        Raises:
            InvalidValueError: If a row has another number of fields than the header; names the
                line.
        """
        for records in grouped(self._checked(), size):
            yield DelimitedBatch(records, self._names, self._dialect)

    def head(self) -> bytes:
        """Return what precedes the first row, with the columns that are added."""
        *blank, (_, header, end) = self._preamble
        added = map(self._dialect.field, self._columns.added)
        line = self._dialect.delimiter.join([*header, *added])
        return self._source.bom + "".join([r.end for r in blank] + [line, end]).encode()

    def _checked(self) -> Iterator[Record]:
        width = len(self._names)
        for record in self._records:
            if record.fields and len(record.fields) != width:
                raise InvalidValueError(
                    f"{self._source.name}, line {record.line}: expected {width} fields as in the "
                    f"header, found {len(record.fields)}; quote fields that contain the delimiter, "
                    "or mend the line"
                )
            yield record


def _hint(names: Sequence[str]) -> str:
    """Say what may be wrong with the first line, if a column is missing."""
    for delimiter, option in _OTHERS.items():
        if len(names) == 1 and delimiter in names[0]:
            return f"if {delimiter!r} separates the fields, say so ({option})"
    return "the first line must name the columns"

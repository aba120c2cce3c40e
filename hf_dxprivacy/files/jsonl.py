"""JSON lines, in which everything but the replaced values stays as it is, byte for byte.

Only the place of a value within its line is looked for; numbers are never converted, and keys keep
their order.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.base import Cell, Columns, TextBatch, TextReader, grouped
from hf_dxprivacy.files.source import Line, Source

Span = tuple[int, int]

# If none of so many rows has a text column, the rest is not read.
EARLY_ROWS = 1000

JSON_SPACE = " \t\r\n"


class _Number:
    """Stands for any number; the digits stay in the line."""


_NUMBER = _Number()


def _number(_: str) -> _Number:
    return _NUMBER


_decode = json.JSONDecoder(
    parse_int=_number, parse_float=_number, parse_constant=_number
).raw_decode
_skip_space = re.compile(f"[{JSON_SPACE}]*").match
_KINDS = {dict: "an object", bool: "true or false", _Number: "a number", list: "an array"}


def encode_value(value: object) -> str:
    """Return a value as JSON, with letters of all scripts as they are.

    Raises:
        ValueError: If a number is not finite.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@dataclass
class _Object:
    """One line: the values that are read or replaced, and where they stand."""

    line: str
    close: int
    empty: bool
    cells: dict[str, Cell] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def characters(self) -> int:
        return len(self.line)

    def with_cells(self, cells: Mapping[str, Cell]) -> str:
        """Return the line with other values; a key that is not there is added at the end."""
        edits = [
            (*self.spans[key], encode_value(cell))
            for key, cell in cells.items()
            if key in self.spans
        ]
        line = self.line
        added = ", ".join(
            f"{encode_value(key)}: {encode_value(cell)}"
            for key, cell in cells.items()
            if key not in self.spans
        )
        if added:
            edits.append((self.close, self.close, added if self.empty else f", {added}"))
        for start, end, value in sorted(edits, reverse=True):
            line = line[:start] + value + line[end:]
        return line


class _Blank:
    """A line without content."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.characters = len(line)


class _Parser:
    """Finds the values of some keys in lines."""

    def __init__(self, name: str, columns: Columns) -> None:
        self._name, self._columns, self._text = name, columns, frozenset(columns.text)
        self._added = frozenset(columns.added)
        self.seen: dict[str, None] = {}

    def parse(self, numbered: Line) -> "_Object | _Blank":
        number, line = numbered
        if not line.strip(JSON_SPACE):
            return _Blank(line)
        try:
            return self._object(number, line)
        except json.JSONDecodeError as error:
            # The cause is left out: it holds the line.
            problem = f"column {error.pos + 1}: {error.msg}"
        except RecursionError:
            problem = "values are nested too deeply"
        raise InvalidValueError(
            f"{self._name}, line {number}, {problem}; expected one JSON object on every line"
        )

    def _object(self, number: int, line: str) -> _Object:
        at = _space(line, 0)
        if line[at] != "{":
            raise json.JSONDecodeError("not an object", line, at)
        found = _Object(line, 0, empty=True)
        at = _space(line, at + 1)
        while not (found.empty and line[at : at + 1] == "}"):
            key, value, span = _member(line, at)
            self._keep(found, number, key, value, span)
            at = _space(line, span[1])
            if line[at : at + 1] == "}":
                break
            if line[at : at + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", line, at)
            at = _space(line, at + 1)
        found.close = at
        if (rest := _space(line, at + 1)) < len(line):
            raise json.JSONDecodeError("Extra data", line, rest)
        return found

    def _keep(self, found: _Object, number: int, key: str, value: object, span: Span) -> None:
        found.empty = False
        self.seen[key] = None
        if key in self._added:
            # Not only at the end, when the rows have been released for nothing.
            self._columns.require([*self._columns.text, key], f"{self._name}, line {number}")
        if key not in self._text:
            return
        if key in found.spans:
            raise InvalidValueError(
                f"{self._name}, line {number}: the key {key!r} occurs twice; keep one, or text "
                "would be left as it is in the other"
            )
        found.spans[key] = span
        found.cells[key] = self._cell(number, key, value)

    def _cell(self, number: int, key: str, value: object) -> Cell:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list) and all(v is None or isinstance(v, str) for v in value):
            return value
        raise InvalidValueError(
            f"{self._name}, line {number}: expected {key!r} to be a text, a list of tokens or "
            f"null, found {_KINDS[type(value)]}"
        )


def _space(line: str, start: int) -> int:
    match = _skip_space(line, start)
    return match.end() if match else start


def _member(line: str, at: int) -> tuple[str, object, Span]:
    if line[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting a key in double quotes", line, at)
    key, end = _decode(line, at)
    at = _space(line, end)
    if line[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", line, at)
    start = _space(line, at + 1)
    value, end = _decode(line, start)
    return key, value, (start, end)


class JsonLinesBatch(TextBatch):
    """Lines with one object each, and blank ones."""

    def __init__(self, lines: Sequence[_Object | _Blank]) -> None:
        self._lines = lines
        self._rows = [line for line in lines if isinstance(line, _Object)]
        self._new: dict[str, Sequence[Cell]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self, column: str) -> list[Cell]:
        """Return the values of a key; None where it is missing."""
        return [row.cells.get(column) for row in self._rows]

    def replace(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Replace values; a key that is missing and would get null stays missing."""
        self._new = dict(columns)

    def encode(self) -> bytes:
        """Return the lines."""
        rows = iter(self._edited())
        lines = (line.line if isinstance(line, _Blank) else next(rows) for line in self._lines)
        return "".join(lines).encode()

    def _edited(self) -> Iterator[str]:
        for at, row in enumerate(self._rows):
            yield row.with_cells(
                {
                    name: cells[at]
                    for name, cells in self._new.items()
                    if cells[at] is not None or name in row.spans
                }
            )


class JsonLinesReader(TextReader):
    """Reads one JSON object a line.

    Raises:
        InvalidValueError: While reading: if a line is not an object (names the line), or a text
            column is in no row.
    """

    def __init__(self, source: Source, columns: Columns) -> None:
        self._source, self._columns = source, columns
        self.total = source.total

    @property
    def position(self) -> int:
        """Bytes that have been read."""
        return self._source.position

    def batches(self, size: int) -> Iterator[JsonLinesBatch]:
        """Return the rows."""
        parser, text, rows = _Parser(self._source.name, self._columns), set(self._columns.text), 0
        for lines in grouped(map(parser.parse, self._source.lines()), size):
            # A row may lack a key that is null; that all rows lack one shows at the end. A wrong
            # name better shows early.
            if rows >= EARLY_ROWS and not parser.seen.keys() & text:
                break
            yield (batch := JsonLinesBatch(lines))
            rows += len(batch)
        if parser.seen:
            self._columns.require(list(parser.seen), self._source.name)

    def head(self) -> bytes:
        """Return the byte order mark, if there is one."""
        return self._source.bom

"""Plain text, one text a line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
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
from hf_dxprivacy.files.source import Source

COLUMN = "text"


class _TextLine(NamedTuple):
    text: str
    end: str

    @property
    def characters(self) -> int:
        return len(self.text)


def cut_line_end(line: str) -> tuple[str, str]:
    """Return a line without its end, and the end (LF, CR LF or nothing)."""
    end = "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""
    return line[: len(line) - len(end)], end


class TxtBatch(TextBatch, TableBatch):
    """Lines; an empty one is an empty text."""

    def __init__(self, lines: Sequence[_TextLine]) -> None:
        self._texts: Sequence[Cell] = [line.text for line in lines]
        self._ends = [line.end for line in lines]
        self._name = COLUMN

    def __len__(self) -> int:
        return len(self._ends)

    def cells(self, column: str) -> list[Cell]:
        """Return the texts."""
        return list(self._texts)

    def replace(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Replace the texts; there is one column."""
        ((self._name, self._texts),) = columns.items()

    def encode(self) -> bytes:
        """Return the lines with the ends that they had."""
        return "".join(f"{t}{end}" for t, end in zip(self._texts, self._ends, strict=True)).encode()

    def to_arrow(self) -> pa.Table:
        """Return one column of strings."""
        return pa.table({self._name: pa.array(self._texts, pa.string())})


class TxtReader(TextReader, TableReader):
    """Reads a text file line by line; the only column is called "text".

    Raises:
        InvalidValueError: If another column is asked for.
    """

    def __init__(self, source: Source, columns: Columns) -> None:
        columns.require([COLUMN], source.name, "a txt file has one text a line")
        if len(columns.output) > 1:
            raise InvalidValueError(f"{source.name}: a txt file has one column, {COLUMN!r}")
        self._source, self._columns = source, columns
        self.total = source.total

    @property
    def position(self) -> int:
        """Bytes that have been read."""
        return self._source.position

    @property
    def schema(self) -> pa.Schema:
        """One column of strings."""
        return pa.schema([pa.field(self._columns.output[0], pa.string())])

    def batches(self, size: int) -> Iterator[TxtBatch]:
        """Return the lines."""
        lines = (_TextLine(*cut_line_end(line)) for _, line in self._source.lines())
        return map(TxtBatch, grouped(lines, size))

    def head(self) -> bytes:
        """Return the byte order mark, if there is one."""
        return self._source.bom


def read_words(path: Path) -> frozenset[str]:
    """Read a list of words, one a line; blank lines do not count.

    Raises:
        InvalidValueError: If the file is not UTF-8.
    """
    with closing(Source(path)) as source:
        return frozenset(line.strip() for _, line in source.lines()) - {""}

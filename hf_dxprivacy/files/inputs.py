"""Inputs by name: which columns, which format, and the lines of text files."""

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast

from hf_dxprivacy.errors import InvalidValueError, describe_columns

STANDARD = "-"  # standard input or output
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "txt",
}
DELIMITERS = {"csv": ",", "tsv": "\t"}

# No text is that long: a longer line has other line ends, or an open quote.
LONGEST_LINE = 1 << 26
BLOCK_BYTES = 1 << 20

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Columns:
    """Names of columns.

    Attributes:
        text: The text columns.
        output: The columns for the results, in the same order.
        any_type: Whether the text columns may hold other values than texts, as they may for an
            attack that reads labels.
    """

    text: tuple[str, ...]
    output: tuple[str, ...]
    any_type: bool = False

    def require(self, present: Sequence[str], where: str, hint: str = "") -> None:
        """Require every text column once, and no column that a result would replace.

        Args:
            present: The columns of the data.
            where: File and line, for the message.
            hint: A likely reason for a missing column, for the message.

        Raises:
            InvalidValueError: If a column is missing, repeated or would be lost.
        """
        for name in self.text:
            if name not in present:
                raise InvalidValueError(
                    f"{where}: there is no column {name!r}; {describe_columns(present, name)}"
                    + (f"; {hint}" if hint else "")
                )
            if list(present).count(name) > 1:
                raise InvalidValueError(
                    f"{where}: there are several columns {name!r}; rename all but one, or text "
                    "would be left as it is in the others"
                )
        for name in self.output:
            if name in present and name not in self.text:
                raise InvalidValueError(
                    f"{where}: there is a column {name!r} already, which would be lost; name "
                    "another one for the result (--output-column)"
                )


@dataclass(frozen=True)
class Input:
    """Where rows are read from.

    Attributes:
        name: A file, "-" for standard input, or the name of a dataset on the Hub.
        kind: "csv", "tsv", "jsonl", "txt", "parquet" or "hub".
        quoted: Whether csv and tsv have quotes.
        delimiter: Of csv or tsv, if not that of the format.
        subset: Configuration of a dataset.
        split: Split of a dataset.
    """

    name: str
    kind: str
    quoted: bool = True
    delimiter: str | None = None
    subset: str | None = None
    split: str = "train"

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return None if self.kind == "hub" or self.name == STANDARD else Path(self.name)


def format_of(name: str) -> str | None:
    """Return the format of a file name's ending, None if unknown."""
    return ENDINGS.get(Path(name.lower().removesuffix(".gz")).suffix)


def is_packed(name: str) -> bool:
    """Tell whether the ending of a file name says gzip."""
    return name.lower().endswith(".gz")


def find_input(
    name: str,
    kind: str | None = None,
    quoted: bool = True,
    delimiter: str | None = None,
    subset: str | None = None,
    split: str | None = None,
) -> Input:
    """Decide whether a name is a file or a dataset on the Hub, and how to read it.

    Args:
        name: A file, "-" for standard input, or the name of a dataset.
        kind: The format, instead of that of the ending.
        quoted: Whether csv and tsv have quotes.
        delimiter: Of csv or tsv, instead of that of the format.
        subset: Configuration of a dataset.
        split: Split of a dataset, "train" by default.

    Raises:
        OSError: If it can be neither.
        InvalidValueError: If the format is unknown or cannot be read from there.
    """
    if name != STANDARD and Path(name).is_dir():
        raise IsADirectoryError(21, "a folder; name a file in it", name)
    if name != STANDARD and not Path(name).exists():
        hub_name = re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", name)
        if kind or format_of(name) or not hub_name:
            raise FileNotFoundError(2, "there is no such file; check the path", name)
        return Input(name, "hub", subset=subset, split=split or "train")
    if subset or split:
        raise InvalidValueError(f"--split and --subset are for the Hub, but {name} is a file")
    known = kind or format_of(name)
    if known is None:
        raise InvalidValueError(
            f"the name {name!r} does not tell the format; say which of "
            f"{', '.join(dict.fromkeys(ENDINGS.values()))} it is (--format)"
        )
    if known == "parquet" and (name == STANDARD or is_packed(name)):
        raise InvalidValueError("parquet is read from a file that is not compressed as a whole")
    one = delimiter is None or (len(delimiter) == 1 and delimiter not in '"\r\n')
    if delimiter is not None and not (one and known in DELIMITERS):
        raise InvalidValueError(
            "expected the delimiter of csv or tsv to be one character, no quote and no line end; "
            f"got {delimiter!r} for {known}"
        )
    return Input(name, known, quoted, delimiter)


def read_words(path: Path) -> frozenset[str]:
    """Read a list of words, one a line; blank lines do not count.

    Raises:
        InvalidValueError: If the file is not UTF-8.
    """
    with closing(Lines(path)) as lines:
        return frozenset(line.strip() for line in lines) - {""}


class Lines:
    """Lines of a UTF-8 text file or of standard input, decompressed if the content is gzip.

    Only a line feed ends a line. Iteration returns lines with their ends, once.

    Args:
        path: The file; None for standard input.
    """

    def __init__(self, path: Path | None) -> None:
        self.name = "standard input" if path is None else str(path)
        self.number = 0  # of the line returned last
        raw = sys.stdin.buffer if path is None else path.open("rb")
        self._raw = cast(io.BufferedReader, raw)
        self._owned, self._consumed = path is not None, 0
        # A named pipe has neither size nor position.
        self.total = path.stat().st_size if path is not None and path.is_file() else None
        try:
            packed = self._raw.peek(2)[:2] == b"\x1f\x8b"
            self._stream = gzip.open(self._raw) if packed else self._raw
            start = b""
            while len(start) < len(BOM) and (more := self._read(len(BOM) - len(start))):
                start += more
        except BaseException:
            self.close()
            raise
        self.bom = start if start == BOM else b""
        self._start = b"" if self.bom else start

    def __iter__(self) -> Iterator[str]:
        """Return the lines.

        Raises:
            InvalidValueError: If the text is not UTF-8, a gzip stream is damaged, or a line is too
                long; names the line.
        """
        parts: list[bytes] = []
        size = 0
        for block in chain([self._start], iter(lambda: self._read(BLOCK_BYTES), b"")):
            *whole, rest = block.split(b"\n")
            for line in whole:
                yield self._decoded(b"".join([*parts, line, b"\n"]))
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise InvalidValueError(
                    f"{self.name}, line {self.number + 1}: longer than {LONGEST_LINE >> 20} MiB; a "
                    "line must end with a line feed"
                )
        if size:
            yield self._decoded(b"".join(parts))

    def position(self) -> int:
        """Return how many bytes of the file, compressed or not, have been read."""
        return self._raw.tell() if self.total is not None else self._consumed

    def close(self) -> None:
        """Close the file."""
        if self._owned:
            self._raw.close()

    def _read(self, size: int) -> bytes:
        try:
            # read() of a pipe would go on, without looking for signals, until all is there.
            block = self._stream.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{self.name}: the gzip stream is truncated or damaged ({error}); fetch the file "
                "again"
            ) from error
        self._consumed += len(block)
        return block

    def _decoded(self, line: bytes) -> str:
        self.number += 1
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            # The cause is left out: it holds the data.
            raise InvalidValueError(
                f"{self.name}, line {self.number}, byte {error.start + 1} of the line: not UTF-8; "
                "convert the file, for instance with iconv"
            ) from None

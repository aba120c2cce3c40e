"""Lines of a text file, plain or gzip, read from the front in constant memory."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from hf_dxprivacy.errors import InvalidValueError

BLOCK = 1 << 20

# No text is that long; a file with such a line has other line ends or is not text.
LONGEST_LINE = 1 << 26

BOM = b"\xef\xbb\xbf"

Line = tuple[int, str]


class Source:
    """A text file in UTF-8, or standard input; decompressed if its content is gzip.

    Attributes:
        name: The file, for messages.
        bom: The byte order mark at the front, if there is one; it is not part of the first line.
        total: Size of the file in bytes, None for standard input.
    """

    def __init__(self, path: Path | None) -> None:
        """Open a file.

        Args:
            path: The file; None for standard input.
        """
        self.name = "standard input" if path is None else str(path)
        self._raw = cast(io.BufferedReader, sys.stdin.buffer if path is None else path.open("rb"))
        self._owned = path is not None
        # A pipe has a name too, but neither a size nor a position.
        self._regular = path is not None and path.is_file()
        self.total = path.stat().st_size if path is not None and self._regular else None
        self._consumed = 0
        try:
            packed = self._raw.peek(2)[:2] == b"\x1f\x8b"
            self._stream = gzip.open(self._raw) if packed else self._raw
            start = self._read_start(len(BOM))
        except BaseException:
            self.close()
            raise
        self.bom = start if start == BOM else b""
        self._start = b"" if self.bom else start

    @property
    def position(self) -> int:
        """Bytes that have been read: of the file, compressed or not."""
        return self._raw.tell() if self._regular else self._consumed

    def close(self) -> None:
        """Close the file."""
        if self._owned:
            self._raw.close()

    def lines(self) -> Iterator[Line]:
        """Return the numbered lines, each with its end; only a line feed ends a line.

        Raises:
            InvalidValueError: If the file is not UTF-8, a gzip stream is damaged, or a line is too
                long; names the line.
        """
        number, offset, parts = 1, len(self.bom), [self._start]
        while block := self._read(BLOCK):
            cut = block.rfind(b"\n") + 1
            if not cut:
                parts.append(block)
                if sum(map(len, parts)) > LONGEST_LINE:
                    raise InvalidValueError(
                        f"{self.name}, line {number}: longer than {LONGEST_LINE >> 20} MiB; a line "
                        "must end with a line feed"
                    )
                continue
            data = b"".join([*parts, block[:cut]])
            parts = [block[cut:]]
            text = self._decode(data, number, offset)
            yield from enumerate(io.StringIO(text, newline="\n"), number)
            number += data.count(b"\n")
            offset += len(data)
        text = self._decode(b"".join(parts), number, offset)
        yield from enumerate(io.StringIO(text, newline="\n"), number)

    def _read(self, size: int) -> bytes:
        try:
            # Not read(), which on a pipe goes on without looking for signals until all is there.
            block = self._stream.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{self.name}: the gzip stream is truncated or damaged ({error}); fetch the file "
                "again"
            ) from error
        self._consumed += len(block)
        return block

    def _read_start(self, size: int) -> bytes:
        start = b""
        while len(start) < size and (more := self._read(size - len(start))):
            start += more
        return start

    def _decode(self, data: bytes, number: int, offset: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = number + data.count(b"\n", 0, error.start)
            # The cause is left out: it holds the data.
            raise InvalidValueError(
                f"{self.name}, line {line}, byte {offset + error.start} of the file: not UTF-8; "
                "convert the file, for instance with iconv"
            ) from None

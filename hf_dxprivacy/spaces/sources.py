"""Streaming in: files of vectors, plain or compressed, and the matrix that grows from them."""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces import checks

# Bytes that are read, and rows of them parsed, at once.
CHUNK_BYTES = 1 << 22

# A line longer than this at the top of a file is taken for binary data.
_LONGEST_LINE = 1 << 20


class Source:
    """A file that is read from the front, decompressed if its content is gzip.

    Attributes:
        path: The file, for messages.
    """

    def __init__(self, path: Path, raw: BinaryIO, bar: "tqdm[NoReturn]") -> None:
        self.path = path
        self._raw, self._bar = raw, bar
        self._size = path.stat().st_size
        start = raw.read(4)
        raw.seek(0)
        if start == b"PK\x03\x04":
            raise InvalidValueError(f"{path}: this is a zip archive; unpack it and read the member")
        packed = start[:2] == b"\x1f\x8b"
        unpacked = gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw
        self._stream = io.BufferedReader(unpacked, CHUNK_BYTES)  # type: ignore[arg-type, type-var, unused-ignore]

    @property
    def fraction(self) -> float:
        """Part of the file that has been read, above 0 and at most 1."""
        return min(1.0, max(self._raw.tell(), 1) / max(self._size, 1))

    def first_line(self) -> bytes:
        """Return the first line, without its end.

        Raises:
            InvalidValueError: If there is none, or no end to it.
        """
        with self._guard():
            line = self._stream.readline(_LONGEST_LINE)
        if not line:
            raise InvalidValueError(f"{self.path}: expected at least one word, the file is empty")
        if len(line) == _LONGEST_LINE:
            raise InvalidValueError(
                f"{self.path}, line 1: longer than {_LONGEST_LINE} bytes; expected GloVe or "
                "word2vec text, word2vec binary or fastText .vec"
            )
        return line.rstrip(b" \r\n")

    def peek(self) -> bytes:
        """Return some of the bytes that come next, without moving on."""
        with self._guard():
            return self._stream.peek(1)

    def lines(self) -> list[bytes]:
        """Return the next lines, about `CHUNK_BYTES` of them; none at the end."""
        with self._guard():
            return self._stream.readlines(CHUNK_BYTES)

    def read(self) -> bytes:
        """Return the next bytes, about `CHUNK_BYTES` of them; none at the end."""
        with self._guard():
            return self._stream.read(CHUNK_BYTES)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{self.path}: the gzip stream is truncated or damaged ({error}); fetch the file "
                "again"
            ) from error
        self._bar.update(self._raw.tell() - self._bar.n)


@contextmanager
def open_source(path: Path, progress: bool) -> Iterator[Source]:
    """Open a file for reading, with a progress bar over its bytes if asked for."""
    with (
        path.open("rb") as raw,
        tqdm(
            total=path.stat().st_size,
            unit="B",
            unit_scale=True,
            desc=path.name,
            disable=not progress,
        ) as bar,
    ):
        yield Source(path, raw, bar)


class Rows:
    """Words and a float32 matrix that grow together, every row checked.

    The matrix is enlarged in place by what the part of the file still to come will need, so that
    hardly more memory than for the matrix itself is ever in use.

    Attributes:
        words: The words so far.
    """

    def __init__(
        self, source: Source, dim: int, limit: int | None, unit: str = "line", first: int = 1
    ) -> None:
        """Start empty.

        Args:
            source: Where the rows come from.
            dim: Numbers per row.
            limit: Rows to take at most.
            unit: What a row is called in messages.
            first: Number of the first row in messages.
        """
        self.words: list[str] = []
        self._source, self._limit, self._unit, self._first = source, limit, unit, first
        self._index: dict[str, int] = {}
        self._matrix = np.empty((0, dim), dtype=np.float32)

    @property
    def dim(self) -> int:
        """Numbers per row."""
        return int(self._matrix.shape[1])

    @property
    def wanted(self) -> int | None:
        """How many more rows to take; None for all."""
        return None if self._limit is None else self._limit - len(self.words)

    def where(self, row: int) -> str:
        """Return the file and the place of a row, for messages."""
        return f"{self._source.path}, {self._unit} {self._first + row}"

    def add(self, words: Sequence[bytes], block: NDArray[np.float32]) -> None:
        """Append rows.

        Args:
            words: Words in UTF-8.
            block: (len(words), dim) vectors.

        Raises:
            InvalidValueError: If a word is empty, not UTF-8 or a duplicate, or a number not
                finite; names the file and the line.
        """
        start = len(self.words)
        for offset, word in enumerate(words):
            self._add_word(word, start + offset)
        if not np.isfinite(block).all():
            row = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise InvalidValueError(
                f"{self.where(row)}: the vector of {self.words[row]!r} has an entry that is NaN, "
                "infinite or too large for float32; remove this row"
            )
        self._reserve(len(self.words))
        self._matrix[start : len(self.words)] = block

    def finish(self, announced: int | None) -> tuple[list[str], NDArray[np.float32]]:
        """Return words and matrix.

        Args:
            announced: Number of rows that the header has promised.

        Raises:
            InvalidValueError: If there are none, or not as many as announced and no limit
                explains it.
        """
        size, path = len(self.words), self._source.path
        if not size:
            raise InvalidValueError(f"{path}: expected at least one word, the file has no rows")
        if announced is not None and self.wanted != 0 and size != announced:
            raise InvalidValueError(
                f"{path}: the header announces {announced} rows, the file has {size}; it is "
                "truncated or the header is wrong"
            )
        self._matrix.resize((size, self.dim), refcheck=False)
        return self.words, self._matrix

    def _add_word(self, raw: bytes, row: int) -> None:
        try:
            word = raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidValueError(
                f"{self.where(row)}: the word {raw!r} is not UTF-8; convert the file"
            ) from error
        checks.check_word(word, self.where(row))
        if (earlier := self._index.setdefault(word, row)) != row:
            raise InvalidValueError(
                f"{self.where(row)}: the word {word!r} is already on {self._unit} "
                f"{self._first + earlier}; keep one vector per word"
            )
        self.words.append(word)

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._matrix):
            return
        expected = min(int(1.02 * needed / self._source.fraction), 4 * needed)
        if self._limit is not None:
            expected = min(expected, self._limit)
        self._matrix.resize((max(needed, expected), self.dim), refcheck=False)

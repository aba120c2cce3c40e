"""Readers of word vectors: GloVe, word2vec and fastText files, plain or gzip, as streams."""

import codecs
import gzip
import io
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.spaces import checks

# Bytes that are read, and rows of them parsed, at once.
CHUNK_BYTES = 1 << 22

# A line longer than this at the top of a file is taken for binary data.
_LONGEST_FIRST = 1 << 20
# No row is that long; a gzip file of some kilobytes may hold a line that fills the memory.
LONGEST_LINE = 1 << 26
# A number of more digits is no size of a matrix.
_LONGEST_COUNT = 10

_NUMERALS = b"0123456789+-.eE \n"

Vectors = tuple[list[str], NDArray[np.float32]]


def read_vectors(path: str | Path, *, limit: int | None = None, progress: bool = True) -> Vectors:
    """Read a file of word vectors, streaming; memory is that of the result.

    GloVe text, word2vec text with its header, word2vec binary and fastText ``.vec``, each plain or
    gzip. Format and compression are recognised from the content. Text lines are split at single
    spaces from the right, since some published words contain spaces or no-break spaces.

    Args:
        path: The file.
        limit: Read at most this many rows from the top.
        progress: Show a progress bar over the bytes of the file.

    Returns:
        V words and a (V, n) float32 matrix.

    Raises:
        InvalidValueError: If the file is empty, truncated or damaged, a row is ragged, its word
            not UTF-8, empty or a duplicate, a field not a finite number, or the header announces
            another number of rows; names the file and, where there is one, the line.
    """
    if limit is not None:
        require_at_least(1, limit=limit)
    path = Path(path)
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
        try:
            return _read(_Source(path, raw, bar), limit)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{path}: the gzip stream is truncated or damaged ({error}); fetch the file again"
            ) from error


class _Source:
    """A file that is read from the front, decompressed if its content is gzip."""

    def __init__(self, path: Path, raw: BinaryIO, bar: "tqdm[NoReturn]") -> None:
        self.path, self.size = path, path.stat().st_size
        self._raw, self._bar = raw, bar
        start = raw.read(4)
        raw.seek(0)
        if start == b"PK\x03\x04":
            raise InvalidValueError(f"{path}: this is a zip archive; unpack it and read the member")
        packed = start[:2] == b"\x1f\x8b"
        unpacked = gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw
        self.stream = io.BufferedReader(unpacked, CHUNK_BYTES)  # type: ignore[arg-type, type-var, unused-ignore]

    @property
    def fraction(self) -> float:
        """Part of the file that has been read, above 0 and at most 1."""
        return min(1.0, max(self._raw.tell(), 1) / max(self.size, 1))

    def read(self) -> bytes:
        """Return the next bytes, about `CHUNK_BYTES` of them; none at the end."""
        block = self.stream.read(CHUNK_BYTES)
        self._bar.update(self._raw.tell() - self._bar.n)
        return block


class _Rows:
    """Words and a float32 matrix that grow together, every row checked.

    The matrix is enlarged in place by what the part of the file still to come will need, so that
    hardly more memory than for the matrix itself is ever in use.
    """

    def __init__(
        self, source: _Source, dim: int, limit: int | None, unit: str = "line", first: int = 1
    ) -> None:
        """Start empty; messages call row 0 by the unit and the first number."""
        self.words: list[str] = []
        self.dim = dim
        self._source, self._limit, self._unit, self._first = source, limit, unit, first
        self._index: dict[str, int] = {}
        self._matrix = np.empty((0, dim), dtype=np.float32)

    @property
    def wanted(self) -> int | None:
        """Number of rows still to take; None for all."""
        return None if self._limit is None else self._limit - len(self.words)

    def where(self, row: int) -> str:
        """Return the file and the place of a row, for messages."""
        return f"{self._source.path}, {self._unit} {self._first + row}"

    def add(self, words: Sequence[bytes], block: NDArray[np.float32]) -> None:
        """Append words in UTF-8 and their (len(words), dim) vectors, after checking both."""
        start = len(self.words)
        for row, raw in enumerate(words, start):
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
        if not np.isfinite(block).all():
            row = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise InvalidValueError(
                f"{self.where(row)}: the vector of {self.words[row]!r} has an entry that is NaN, "
                "infinite or too large for float32; remove this row"
            )
        needed = len(self.words)
        if needed > len(self._matrix):
            expected = min(int(1.02 * needed / self._source.fraction), 4 * needed)
            if self._limit is not None:
                expected = min(expected, self._limit)
            self._matrix.resize((max(needed, expected), self.dim), refcheck=False)
        self._matrix[start:needed] = block

    def finish(self, announced: int | None) -> Vectors:
        """Return words and matrix, as many as a header has announced unless a limit explains it."""
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


def _is_binary(start: bytes, dim: int) -> bool:
    line = start.partition(b"\n")[0].rstrip(b" \r")
    if not _problem_with(line.split(b" ")[-dim:]):
        return False
    numbers = start.partition(b" ")[2][: 4 * dim]
    return any(byte < 9 or 13 < byte < 32 or byte > 126 for byte in numbers)


def _read(source: _Source, limit: int | None) -> Vectors:
    path, first = source.path, source.stream.readline(_LONGEST_FIRST)
    if not first:
        raise InvalidValueError(f"{path}: expected at least one word, the file is empty")
    if len(first) == _LONGEST_FIRST:
        raise InvalidValueError(
            f"{path}, line 1: longer than {_LONGEST_FIRST} bytes; expected GloVe or word2vec text, "
            "word2vec binary or fastText .vec"
        )
    # The byte order mark that programs for Windows write is no part of the first word.
    first = first.removeprefix(codecs.BOM_UTF8).rstrip(b" \r\n")
    header = first.split()
    if len(header) == 2 and all(n.isdigit() and len(n) <= _LONGEST_COUNT for n in header):
        count, dim = map(int, header)
        if dim < 1:
            raise InvalidValueError(f"{path}, line 1: expected dimension >= 1, got {dim}")
        if _is_binary(source.stream.peek(1), dim):
            return _read_binary(source, count, dim, limit)
        return _read_text(source, _Rows(source, dim, limit, first=2), count, [])
    dim = first.count(b" ")
    if dim < 1:
        raise InvalidValueError(
            f"{path}, line 1: expected a word and its numbers, separated by single spaces"
        )
    return _read_text(source, _Rows(source, dim, limit), None, [first])


def _read_text(source: _Source, rows: _Rows, announced: int | None, lines: list[bytes]) -> Vectors:
    """Read the lines of the source, after those that have been read already."""
    while rows.wanted != 0:
        if not lines:
            block = source.read()
            rest = b"" if block.endswith(b"\n") else source.stream.readline(LONGEST_LINE)
            lines = io.BytesIO(block + rest).readlines()
            if len(rest) == LONGEST_LINE:
                raise InvalidValueError(
                    f"{rows.where(len(rows.words) + len(lines) - 1)}: longer than "
                    f"{LONGEST_LINE >> 20} MiB; expected one word and its numbers a line"
                )
            if not lines:
                break
        words, numbers = [], []
        for at, line in enumerate(lines[: rows.wanted], len(rows.words)):
            line = line.rstrip(b" \r\n")
            word, _, rest = line.partition(b" ")
            if (spaces := line.count(b" ")) != rows.dim:
                word = line.rsplit(b" ", rows.dim)[0]
                rest = line[len(word) + 1 :]
                # A word may contain spaces, but one that ends in a number is a row with too many.
                if spaces < rows.dim or not _problem_with(word.split(b" ")[1:][-1:]):
                    raise InvalidValueError(
                        f"{rows.where(at)}: expected a word and {rows.dim} numbers separated by "
                        f"single spaces, got {spaces + 1} fields; the line is ragged or the file "
                        "truncated"
                    )
            words.append(word)
            numbers.append(rest)
        rows.add(words, _parsed(numbers, rows))
        lines = []
    return rows.finish(announced)


def _parsed(numbers: list[bytes], rows: _Rows) -> NDArray[np.float32]:
    # pandas is slow to import and only reading needs it.
    import pandas as pd

    text = b"\n".join(numbers)
    if not text.translate(None, _NUMERALS):
        with suppress(ValueError), np.errstate(over="ignore"):
            table = pd.read_csv(
                io.BytesIO(text),
                sep=" ",
                header=None,
                dtype=np.float32,
                na_filter=False,
                skip_blank_lines=False,
                engine="c",
            )
            block: NDArray[np.float32] = table.to_numpy()
            if block.shape == (len(numbers), rows.dim) and np.isfinite(block).all():
                return block
    # Line by line, to name the one that is no row of numbers.
    block = np.empty((len(numbers), rows.dim), dtype=np.float32)
    for offset, line in enumerate(numbers):
        fields = line.split(b" ")
        if problem := _problem_with(fields):
            raise InvalidValueError(
                f"{rows.where(len(rows.words) + offset)}: expected {rows.dim} numbers separated "
                f"by single spaces, got {problem}"
            )
        with np.errstate(over="ignore"):
            block[offset] = [float(field) for field in fields]
    return block


def _problem_with(fields: list[bytes]) -> str:
    for field in fields:
        try:
            float(field)
        except ValueError:
            return repr(field.decode(errors="replace"))
        if b"_" in field:
            return repr(field.decode())
    return ""


def _read_binary(source: _Source, count: int, dim: int, limit: int | None) -> Vectors:
    rows = _Rows(source, dim, limit, unit="row")
    target = count if limit is None else min(count, limit)
    rest = b""
    while len(rows.words) < target:
        chunk = source.read()
        if not chunk:
            raise InvalidValueError(
                f"{rows.where(len(rows.words))}: the file ends within this row, the header "
                f"announces {count} rows of {dim} numbers; fetch the file again"
            )
        buffer, position = rest + chunk, 0
        words: list[bytes] = []
        vectors: list[NDArray[np.float32]] = []
        while len(rows.words) + len(words) < target:
            space = buffer.find(b" ", position)
            end = space + 1 + 4 * dim
            if space < 0 or end > len(buffer):
                break
            # word2vec writes a line end after each vector, gensim does not.
            words.append(buffer[position:space].lstrip(b"\n"))
            vectors.append(np.frombuffer(buffer, "<f4", dim, space + 1))
            position = end
        if words:
            rows.add(words, np.stack(vectors))
        rest = buffer[position:]
        if len(rest) > LONGEST_LINE:
            raise InvalidValueError(
                f"{rows.where(len(rows.words))}: longer than {LONGEST_LINE >> 20} MiB; expected a "
                f"word and {dim} numbers"
            )
    if limit is None and (rest.strip(b"\n") or source.read()):
        raise InvalidValueError(f"{source.path}: more follows after the {count} announced rows")
    return rows.finish(None if limit is not None else count)

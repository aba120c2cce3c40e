"""Readers of word vectors: GloVe, word2vec and fastText files."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.sources import Rows, Source, open_source

_NUMERALS = b"0123456789+-.eE \n"


def read_vectors(
    path: str | Path, *, limit: int | None = None, progress: bool = True
) -> tuple[list[str], NDArray[np.float32]]:
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
        _validate.at_least(1, limit=limit)
    with open_source(Path(path), progress) as source:
        first = source.first_line()
        header = first.split()
        if len(header) == 2 and all(field.isdigit() for field in header):
            count, dim = map(int, header)
            if dim < 1:
                raise InvalidValueError(f"{path}, line 1: expected dimension >= 1, got {dim}")
            if _is_binary(source.peek(), dim):
                return _read_binary(source, count, dim, limit)
            return _read_text(source, Rows(source, dim, limit, first=2), count, [])
        dim = first.count(b" ")
        if dim < 1:
            raise InvalidValueError(
                f"{path}, line 1: expected a word and its numbers, separated by single spaces"
            )
        return _read_text(source, Rows(source, dim, limit), None, [first])


def _is_binary(start: bytes, dim: int) -> bool:
    line = start.partition(b"\n")[0].rstrip(b" \r")
    if not _problem_with(line.split(b" ")[-dim:]):
        return False
    numbers = start.partition(b" ")[2][: 4 * dim]
    return any(byte < 9 or 13 < byte < 32 or byte > 126 for byte in numbers)


def _read_text(
    source: Source, rows: Rows, announced: int | None, lines: list[bytes]
) -> tuple[list[str], NDArray[np.float32]]:
    dim = rows.dim
    while rows.wanted != 0 and (lines := lines or source.lines()):
        words, numbers = [], []
        for offset, line in enumerate(lines[: rows.wanted]):
            word, rest = _split(line, dim, rows.where(len(rows.words) + offset))
            words.append(word)
            numbers.append(rest)
        block = _parse_fast(numbers, dim)
        if block is None:
            block = _parse_slowly(numbers, rows)
        rows.add(words, block)
        lines = []
    return rows.finish(announced)


def _split(line: bytes, dim: int, where: str) -> tuple[bytes, bytes]:
    line = line.rstrip(b" \r\n")
    spaces = line.count(b" ")
    if spaces == dim:
        word, _, rest = line.partition(b" ")
        return word, rest
    word = line.rsplit(b" ", dim)[0]
    # A word may contain spaces, but one that ends in a number is a row with too many of them.
    if spaces < dim or not _problem_with(word.split(b" ")[1:][-1:]):
        raise InvalidValueError(
            f"{where}: expected a word and {dim} numbers separated by single spaces, got "
            f"{spaces + 1} fields; the line is ragged or the file truncated"
        )
    return word, line[len(word) + 1 :]


def _parse_fast(numbers: list[bytes], dim: int) -> NDArray[np.float32] | None:
    # pandas is slow to import and only reading needs it.
    import pandas as pd

    text = b"\n".join(numbers)
    if text.translate(None, _NUMERALS):
        return None
    try:
        with np.errstate(over="ignore"):
            table = pd.read_csv(
                io.BytesIO(text),
                sep=" ",
                header=None,
                dtype=np.float32,
                na_filter=False,
                skip_blank_lines=False,
                engine="c",
            )
    except (ValueError, pd.errors.ParserError):
        return None
    block = table.to_numpy()
    return block if block.shape == (len(numbers), dim) and np.isfinite(block).all() else None


def _parse_slowly(numbers: list[bytes], rows: Rows) -> NDArray[np.float32]:
    block = np.empty((len(numbers), rows.dim), dtype=np.float32)
    for offset, line in enumerate(numbers):
        fields = line.split(b" ")
        if problem := _problem_with(fields):
            raise InvalidValueError(
                f"{rows.where(len(rows.words) + offset)}: expected {rows.dim} numbers separated "
                f"by single spaces, got {problem}"
            )
        with np.errstate(over="ignore"):
            block[offset] = np.array([float(field) for field in fields])
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


def _read_binary(
    source: Source, count: int, dim: int, limit: int | None
) -> tuple[list[str], NDArray[np.float32]]:
    rows = Rows(source, dim, limit, unit="row")
    target = count if limit is None else min(count, limit)
    rest = b""
    while len(rows.words) < target:
        chunk = source.read()
        if not chunk:
            raise InvalidValueError(
                f"{rows.where(len(rows.words))}: the file ends within this row, the header "
                f"announces {count} rows of {dim} numbers; fetch the file again"
            )
        rest = _take_rows(rest + chunk, rows, target)
    if limit is None and (rest.strip(b"\n") or source.read()):
        raise InvalidValueError(f"{source.path}: more follows after the {count} announced rows")
    return rows.finish(None if limit is not None else count)


def _take_rows(buffer: bytes, rows: Rows, target: int) -> bytes:
    words: list[bytes] = []
    vectors: list[NDArray[np.float32]] = []
    position = 0
    while len(rows.words) + len(words) < target:
        space = buffer.find(b" ", position)
        end = space + 1 + 4 * rows.dim
        if space < 0 or end > len(buffer):
            break
        # word2vec writes a line end after each vector, gensim does not.
        words.append(buffer[position:space].lstrip(b"\n"))
        vectors.append(np.frombuffer(buffer, "<f4", rows.dim, space + 1))
        position = end
    if words:
        rows.add(words, np.stack(vectors))
    return buffer[position:]

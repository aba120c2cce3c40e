"""Rows of WebIsADB, read and added up in segments that a later call goes on from.

Import this module only when reading: it needs the extra ``train``.
"""

import hashlib
import io
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.training.archives import Part
from hf_dxprivacy.training.webisadb import Tally

polars: Any = require("polars", "train")

# The dump as published, and as the tools of WebIsALOD flatten it, both sometimes without header.
PUBLISHED = ("_id", "instance", "class", "frequency", "pidspread", "pldspread", "modifications")
FLATTENED = (
    *("id", "instance", "class", "frequency", "pidspread", "pldspread", "ipremod", "ilemma"),
    *("ipostmod", "cpremod", "clemma", "cpostmod", "pids", "plds", "provids"),
)

# Sums of whole numbers up to this are exact whatever the order.
LARGEST_FREQUENCY = 2**53

# A quoted field, or one without commas, in which quotes mean themselves. That a doubled quote is
# read as the end of one run and the start of the next makes the pattern deterministic, which the
# engine matches twice as fast.
_FIELD = r'(?:(?:"[^"]*")+|[^",\n][^,\n]*|)'
_START = rf'(?:{_FIELD},){{3}}"?[\d.]+"?,"?\d+"?,"?\d+"?,'
_FLATTENED_ROW = re.compile(rf"{_START}(?:{_FIELD},){{8}}")
_PUBLISHED_ROW = re.compile(rf'{_START}"?\[')

# Lines at the front of a file among which one without damage is looked for.
_LOOKED_AT = 100

# Bytes that are parsed at once, and bytes whose rows make a segment.
BLOCK = 1 << 23
SEGMENT = 1 << 29

# Rows of segments that are added up at once.
ROWS_AT_ONCE = 4_000_000

_FORMAT = 1
_METADATA = b"webisadb"
_PAIR = ("instance", "class")

# What names a result, and the function and the arguments that it is made with.
_Task = tuple[Any, Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Layout:
    """Positions of the needed fields in a row.

    Attributes:
        columns: Names of the columns.
        header: Whether the first line holds them.
    """

    columns: tuple[str, ...]
    header: bool

    @property
    def pattern(self) -> str:
        """A regular expression for the start of a row, with the needed fields as groups."""
        flat = {"ilemma", "clemma"} <= set(self.columns)
        wanted = {
            self.columns.index("ilemma" if flat else "instance"): "instance",
            self.columns.index("clemma" if flat else "class"): "class",
            self.columns.index("frequency"): "frequency",
        }
        fields = [
            f"(?P<{wanted[place]}>{_FIELD})" if place in wanted else _FIELD
            for place in range(max(wanted) + 1)
        ]
        if not self.has_modifications:
            return "^" + ",".join(fields) + r"(?:,|\n)"
        fields += [_FIELD] * (len(self.columns) - 1 - len(fields))
        return "^" + ",".join(fields) + r',(?P<opening>"?[^"\n]?)'

    @property
    def has_modifications(self) -> bool:
        """True if a JSON list comes last."""
        return self.columns[-1] == "modifications"


def find_layout(start: bytes, name: str) -> Layout:
    """Tell the layout of a file from its first lines.

    Args:
        start: Lines.
        name: The file, for messages.

    Raises:
        ArtifactError: If they are not of WebIsADB.
    """
    first = start.split(b"\n", _LOOKED_AT)[:-1]
    lines = [line.decode(errors="replace").replace("\0", "") for line in first]
    header = tuple(lines[0].rstrip("\r").replace('"', "").split(","))
    if {"instance", "class", "frequency"} <= set(header):
        return Layout(header, header=True)
    for columns, row in ((FLATTENED, _FLATTENED_ROW), (PUBLISHED, _PUBLISHED_ROW)):
        if any(map(row.match, lines)):
            return Layout(columns, header=False)
    raise ArtifactError(
        f"{name}: not a file of WebIsADB; expected the columns {','.join(PUBLISHED)} or "
        f"{','.join(FLATTENED)}"
    )


def read_rows(block: bytes, layout: Layout) -> tuple[Any, Tally]:
    """Read whole lines.

    Args:
        block: The lines, none of them a header.
        layout: Where the fields are.

    Returns:
        A table of the columns "instance", "class" and "frequency", with one row for every line
        that is complete; and what was met on the way.
    """
    size = len(block)
    # To look for one byte is much faster than to count it, or to look for two.
    block = block.replace(b"\0", b"") if b"\0" in block else block
    nul_bytes = size - len(block)
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    lines, undecodable = _decoded(_lines(block))
    line = polars.col("line")
    fields = (
        lines.to_frame()
        .select(
            line.str.extract_groups(layout.pattern).struct.unnest(),
            closed=line.str.ends_with(']"\n') | line.str.ends_with("]\n"),
        )
        .drop_nulls("instance")
    )
    counted = fields.select(
        _unquoted(polars.col("instance")),
        _unquoted(polars.col("class")),
        _count(polars.col("frequency").str.strip_chars('" ')),
    ).drop_nulls("frequency")
    return counted, Tally(
        rows=len(lines),
        nul_bytes=nul_bytes,
        undecodable=undecodable,
        incomplete=len(lines) - len(fields),
        bad_frequency=len(fields) - len(counted),
        broken_modifications=_count_broken(fields) if layout.has_modifications else 0,
    )


def _lines(block: bytes) -> Any:
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + 1
    buffers = [None, pa.py_buffer(np.append(0, ends)), pa.py_buffer(block)]
    array = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), buffers)
    lines = polars.Series("line", array)
    return lines.filter(lines.bin.size() > 1)


def _decoded(lines: Any) -> tuple[Any, int]:
    """Return lines as text, with U+FFFD in the place of what is not UTF-8, and count such lines."""
    try:
        return lines.cast(polars.String), 0
    except polars.exceptions.ComputeError:
        if len(lines) == 1:
            return polars.Series("line", [lines[0].decode(errors="replace")]), 1
    # To halve the lines until the damaged ones are found is faster than to look at each.
    half = len(lines) // 2
    (first, damaged), (second, more) = _decoded(lines[:half]), _decoded(lines[half:])
    return first.append(second), damaged + more


def _unquoted(field: Any) -> Any:
    inside = field.str.strip_prefix('"').str.strip_suffix('"')
    inside = inside.str.replace_all('""', '"', literal=True)
    return polars.when(field.str.starts_with('"')).then(inside).otherwise(field)


def _count(number: Any) -> Any:
    number = number.cast(polars.Float64, strict=False)
    is_count = number.is_between(0, LARGEST_FREQUENCY)
    return polars.when(is_count).then(number).cast(polars.Int64)


def _count_broken(fields: Any) -> int:
    whole = fields["opening"].str.ends_with("[") & fields["closed"]
    return len(fields) - int(whole.sum())


def threads() -> int:
    """Return how many blocks are worth parsing at a time."""
    return int(polars.thread_pool_size())


class Segments:
    """Frequencies of pairs of words, added up within stretches of a part.

    Attributes:
        tally: What was met in the segments so far.
    """

    def __init__(self, folder: Path, words: list[str]) -> None:
        """Start with none.

        Args:
            folder: Where they are kept, as Parquet files; created if necessary.
            words: The vocabulary, whose numbers the files hold.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.tally = Tally()
        self._numbers = polars.LazyFrame({"word": words}).with_row_index("number")
        self._vocabulary = hashlib.sha256("\n".join(words).encode()).hexdigest()
        self._folder = folder
        self._files: list[Path] = []

    def include(self, parts: Iterable[Part], pool: Executor) -> Iterator[None]:
        """Read parts, each from where an earlier run has left it, and stop after each segment.

        Raises:
            ArtifactError: If a part is damaged or not of WebIsADB.
        """
        started = time.perf_counter()
        for (path, state, tally), (sums, outside) in _in_order(pool, self._sums(parts, pool), 1):
            seconds = time.perf_counter() - started
            tally += Tally(outside_vocabulary=outside, seconds=seconds)
            _write(path, sums, state | {"tally": asdict(tally)})
            self._take(path, tally)
            yield
            started = time.perf_counter()

    def totals(self, min_frequency: int) -> tuple[NDArray[np.int64], int]:
        """Add up what was included.

        Returns:
            (m, 2) numbers of instance and class of the pairs that are frequent enough, and the
            number of all pairs.
        """
        rows = sum(pq.read_metadata(path).num_rows for path in self._files)
        shares = 1 + rows // ROWS_AT_ONCE
        segments = polars.scan_parquet(self._files)
        frequent, distinct = [], 0
        for share in range(shares):
            mine = segments.filter(polars.col("instance") % shares == share)
            sums = mine.group_by(_PAIR).agg(polars.col("frequency").sum())
            sums = sums.collect(engine="streaming")
            distinct += len(sums)
            sums = sums.filter(polars.col("frequency") >= min_frequency)
            frequent.append(sums.select(_PAIR).to_numpy().astype(np.int64))
        return np.concatenate(frequent), distinct

    def _sums(self, parts: Iterable[Part], pool: Executor) -> Iterator[_Task]:
        """Yield what adds up the rows of a segment, once all of them are read."""
        blocks = (block for part in parts for block in self._blocks(part))
        tables, tally = [], Tally()
        for (path, state), (table, found) in _in_order(pool, blocks, threads() + 1):
            tables.append(table)
            tally += found
            if state is not None:
                yield (path, state, tally), self._add_up, (tables,)
                tables, tally = [], Tally()

    def _blocks(self, part: Part) -> Iterator[_Task]:
        """Yield what reads the rows of a block, with the segment that it belongs to.

        With the last block of a segment comes the state of the part behind it.
        """
        start, last = self._resume(part)
        if last:
            return
        end, layout = 0, Layout(PUBLISHED, header=False)
        for block in part.blocks(BLOCK):
            if end == 0:
                layout = find_layout(block, part.name)
            lines = block.partition(b"\n")[2] if layout.header and end == 0 else block
            end += len(block)
            if end > start:
                full = end - start >= SEGMENT
                state = {"end": end, "last": False} if full else None
                yield (self._path(part, start), state), read_rows, (lines, layout)
                start = end if full else start
        yield (self._path(part, start), {"end": end, "last": True}), read_rows, (b"", layout)

    def _resume(self, part: Part) -> tuple[int, bool]:
        """Take the segments that are there; return where they end, and whether the part does."""
        end, last = 0, False
        while not last and (path := self._path(part, end)).exists():
            state = json.loads(pq.read_schema(path).metadata[_METADATA])
            self._take(path, Tally(**state["tally"]))
            end, last = state["end"], state["last"]
        return end, last

    def _take(self, path: Path, tally: Tally) -> None:
        self._files.append(path)
        self.tally += tally

    def _add_up(self, tables: list[Any]) -> tuple[Any, int]:
        """Return the sums for each pair of words, and the number of other rows."""
        rows = polars.concat(tables)
        known = rows.lazy()
        for column in _PAIR:
            numbers = self._numbers.rename({"number": column})
            word = polars.col(column).str.to_lowercase().alias("word")
            known = known.select(word, polars.exclude("word", column)).join(numbers, on="word")
        sums = known.group_by(_PAIR).agg(
            polars.col("frequency").sum(),
            rows=polars.len(),
        )
        sums = sums.collect()
        return sums.drop("rows").to_arrow(), len(rows) - int(sums["rows"].sum())

    def _path(self, part: Part, start: int) -> Path:
        """Return the place of a segment, another one if anything differs that it depends on."""
        name = str(Path(part.name).resolve())
        source = json.dumps([_FORMAT, BLOCK, name, part.version, self._vocabulary])
        digest = hashlib.sha256(source.encode()).hexdigest()[:24]
        return self._folder / f"{digest}-{start:015d}.parquet"


def _write(path: Path, sums: Any, state: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    pq.write_table(sums.replace_schema_metadata({_METADATA: json.dumps(state)}), buffer)
    atomic_write(path, [buffer.getbuffer()])


def _in_order(pool: Executor, tasks: Iterable[_Task], ahead: int) -> Iterator[tuple[Any, Any]]:
    """Run tasks, as many ahead while the results of those before them are made use of."""
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    for key, function, arguments in tasks:
        waiting.append((key, pool.submit(function, *arguments)))
        if len(waiting) > ahead:
            key, future = waiting.popleft()
            yield key, future.result()
    for key, future in waiting:
        yield key, future.result()

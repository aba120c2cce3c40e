"""Rows of WebIsADB, parsed and added up in segments from which a later call goes on.

Import this module only when reading: it needs the extra ``train``.
"""

import hashlib
import io
import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.training.archives import Part

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

# Blocks that are worth parsing at a time.
THREADS = polars.thread_pool_size()

# Rows of segments that are added up at once.
ROWS_AT_ONCE = 4_000_000

Counts = Counter[str]

_FORMAT = 1
_METADATA = b"webisadb"
_PAIR = ("instance", "class")
_NOTHING = polars.DataFrame(
    schema=dict.fromkeys(_PAIR, polars.String) | {"frequency": polars.Int64}
)


class Layout(NamedTuple):
    """Layout of a file.

    Attributes:
        pattern: A regular expression for the start of a row, with the needed fields as groups.
        header: Whether the first line holds the names of the columns.
        has_modifications: Whether a JSON list comes last.
    """

    pattern: str
    header: bool
    has_modifications: bool


def find_layout(start: bytes, name: str) -> Layout:
    """Tell the layout of the file of this name from its first lines.

    Raises:
        ArtifactError: If they are not of WebIsADB.
    """
    first = start.split(b"\n", _LOOKED_AT)[:-1]
    lines = [line.decode(errors="replace").replace("\0", "") for line in first]
    header = tuple(lines[0].rstrip("\r").replace('"', "").split(","))
    if {"instance", "class", "frequency"} <= set(header):
        return _layout(header, header=True)
    for columns, row in ((FLATTENED, _FLATTENED_ROW), (PUBLISHED, _PUBLISHED_ROW)):
        if any(map(row.match, lines)):
            return _layout(columns, header=False)
    raise ArtifactError(
        f"{name}: not a file of WebIsADB; expected the columns {','.join(PUBLISHED)} or "
        f"{','.join(FLATTENED)}"
    )


def _layout(columns: tuple[str, ...], header: bool) -> Layout:
    flat = {"ilemma", "clemma"} <= set(columns)
    wanted = {
        columns.index("ilemma" if flat else "instance"): "instance",
        columns.index("clemma" if flat else "class"): "class",
        columns.index("frequency"): "frequency",
    }
    fields = [
        f"(?P<{wanted[place]}>{_FIELD})" if place in wanted else _FIELD
        for place in range(max(wanted) + 1)
    ]
    if columns[-1] != "modifications":
        return Layout("^" + ",".join(fields) + r"(?:,|\n)", header, has_modifications=False)
    fields += [_FIELD] * (len(columns) - 1 - len(fields))
    pattern = "^" + ",".join(fields) + r',(?P<opening>"?[^"\n]?)'
    return Layout(pattern, header, has_modifications=True)


def read_rows(block: bytes, layout: Layout) -> tuple[Any, Counts]:
    """Parse whole lines, none of them a header.

    Returns:
        A table of the columns "instance", "class" and "frequency", with one row for every line
        that is complete; and counts of lines and damage, named as in `WebIsADBSummary`.
    """
    size = len(block)
    # To look for one byte is much faster than to count it, or to look for two.
    block = block.replace(b"\0", b"") if b"\0" in block else block
    nul_bytes = size - len(block)
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + 1
    buffers = [None, pa.py_buffer(np.append(0, ends)), pa.py_buffer(block)]
    raw = polars.Series(
        "line", pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), buffers)
    )
    lines, undecodable = _decoded(raw.filter(raw.bin.size() > 1))
    line, frequency = polars.col("line"), polars.col("frequency")
    fields = (
        lines.to_frame()
        .select(
            line.str.extract_groups(layout.pattern).struct.unnest(),
            closed=line.str.ends_with(']"\n') | line.str.ends_with("]\n"),
        )
        .drop_nulls("instance")
    )
    number = frequency.str.strip_chars('" ').cast(polars.Float64, strict=False)
    is_count = number.is_between(0, LARGEST_FREQUENCY)
    counted = fields.select(
        *map(_unquoted, _PAIR),
        polars.when(is_count).then(number).cast(polars.Int64),
    ).drop_nulls("frequency")
    broken = 0
    if layout.has_modifications:
        whole = fields["opening"].str.ends_with("[") & fields["closed"]
        broken = len(fields) - int(whole.sum())
    return counted, Counter(
        rows=len(lines),
        nul_bytes=nul_bytes,
        undecodable=undecodable,
        incomplete=len(lines) - len(fields),
        bad_frequency=len(fields) - len(counted),
        broken_modifications=broken,
    )


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


def _unquoted(column: str) -> Any:
    field = polars.col(column)
    inside = field.str.strip_prefix('"').str.strip_suffix('"')
    inside = inside.str.replace_all('""', '"', literal=True)
    return polars.when(field.str.starts_with('"')).then(inside).otherwise(field)


class Segments:
    """Frequencies of pairs of words, added up within stretches of a part.

    Args:
        folder: Where they are kept, as Parquet files; created if necessary.
        words: The vocabulary, whose numbers the files hold.

    Attributes:
        counts: Of rows and damage in all segments so far, named as in `WebIsADBSummary`.
        seconds: Time that reading them took.
    """

    def __init__(self, folder: Path, words: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.counts, self.seconds = Counts(), 0.0
        self._numbers = polars.LazyFrame({"word": words}).with_row_index("number")
        self._vocabulary = hashlib.sha256("\n".join(words).encode()).hexdigest()
        self._folder = folder
        self._files: list[Path] = []

    def include(self, parts: Iterable[Part]) -> Iterator[None]:
        """Read parts, each from where an earlier run has left it, and stop after each segment.

        Raises:
            ArtifactError: If a part is damaged or not of WebIsADB.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            for part in parts:
                started = time.perf_counter()
                start, last = self._resume(part)
                if last:
                    continue
                end, tables, counts = start, [_NOTHING], Counts()
                for end, (table, found) in _parsed(part, start, pool):
                    tables.append(table)
                    counts.update(found)
                    if end - start >= SEGMENT:
                        self._add(self._path(part, start), tables, counts, started, end, last=False)
                        yield
                        started = time.perf_counter()
                        start, tables, counts = end, [_NOTHING], Counts()
                self._add(self._path(part, start), tables, counts, started, end, last=True)
                yield

    def totals(self, min_frequency: int) -> tuple[NDArray[np.int64], int]:
        """Add up the segments.

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

    def _resume(self, part: Part) -> tuple[int, bool]:
        """Take the segments that are there; return where they end, and whether the part does."""
        end, last = 0, False
        while not last and (path := self._path(part, end)).exists():
            try:
                state = json.loads(pq.read_schema(path).metadata[_METADATA])
                end, last, counts = state["end"], state["last"], state["tally"]
                self.seconds += counts.pop("seconds")
            except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
                raise ArtifactError(f"{path}: damaged; delete it to read again") from error
            self._files.append(path)
            self.counts.update(counts)
        return end, last

    def _path(self, part: Part, start: int) -> Path:
        """Return the file of a segment, named by a digest of all that its sums depend on."""
        name = str(Path(part.name).resolve())
        source = json.dumps([_FORMAT, BLOCK, name, part.version, self._vocabulary])
        digest = hashlib.sha256(source.encode()).hexdigest()[:24]
        return self._folder / f"{digest}-{start:015d}.parquet"

    def _add(
        self, path: Path, tables: list[Any], counts: Counts, started: float, end: int, last: bool
    ) -> None:
        """Add up the rows of a segment for each pair of words, and write the sums."""
        rows = polars.concat(tables)
        known = rows.lazy()
        for column in _PAIR:
            numbers = self._numbers.rename({"number": column})
            word = polars.col(column).str.to_lowercase().alias("word")
            known = known.select(word, polars.exclude("word", column)).join(numbers, on="word")
        sums = known.group_by(_PAIR).agg(polars.col("frequency").sum(), rows=polars.len()).collect()
        counts["outside_vocabulary"] = len(rows) - int(sums["rows"].sum())
        seconds = time.perf_counter() - started
        state = json.dumps({"end": end, "last": last, "tally": {**counts, "seconds": seconds}})
        buffer = io.BytesIO()
        table = sums.drop("rows").to_arrow().replace_schema_metadata({_METADATA: state})
        pq.write_table(table, buffer)
        atomic_write(path, [buffer.getbuffer()])
        self._files.append(path)
        self.counts.update(counts)
        self.seconds += seconds


def _parsed(part: Part, start: int, pool: Executor) -> Iterator[tuple[int, tuple[Any, Counts]]]:
    """Yield where each block behind `start` ends, and its rows; others are parsed meanwhile."""
    waiting: deque[tuple[int, Future[tuple[Any, Counts]]]] = deque()
    end, layout = 0, None
    for block in part.blocks(BLOCK):
        layout = layout or find_layout(block, part.name)
        lines = block.partition(b"\n")[2] if layout.header and end == 0 else block
        end += len(block)
        if end > start:
            waiting.append((end, pool.submit(read_rows, lines, layout)))
        if len(waiting) > THREADS + 1:
            place, rows = waiting.popleft()
            yield place, rows.result()
    for place, rows in waiting:
        yield place, rows.result()

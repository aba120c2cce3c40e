"""Rows of WebIsADB or counted pairs, parsed and added up in segments; a later call goes on.

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
# Pairs with counts, such as those of Roller, Kiela & Nickel (ACL 2018), with tabs or commas.
COUNTED = ("hyponym", "hypernym", "count")
_SAME = dict(zip(COUNTED, ("instance", "class", "frequency"), strict=True))

# Sums of whole numbers up to this are exact whatever the order.
LARGEST_FREQUENCY = 2**53

# A quoted field, or one without commas, in which quotes mean themselves. That a doubled quote is
# read as the end of one run and the start of the next makes the pattern deterministic, which the
# engine matches twice as fast.
_FIELD = r'(?:(?:"[^"]*")+|[^",\n][^,\n]*|)'
_START = rf'(?:{_FIELD},){{3}}"?[\d.]+"?,"?\d+"?,"?\d+"?,'
_FLATTENED_ROW = re.compile(rf"{_START}(?:{_FIELD},){{8}}")
_PUBLISHED_ROW = re.compile(rf'{_START}"?\[')
_TABBED = r"[^\t\n]*"
_COUNTED_ROWS = {
    "\t": re.compile(r"[^\t]+\t[^\t]+\t\d+\r?$"),
    ",": re.compile(rf'{_FIELD},{_FIELD},"?\d+"?\r?$'),
}

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

# What is left of a phrase by the option of `read_webisadb`: all, or what stands before "of" and is
# the last word there.
_AFTER_OF, _BEFORE_HEAD = "_of_.*$", "^.*_"
_SHORTENED = {"whole": (), "class": ("class",), "head": ("instance", "class")}
PHRASES = tuple(_SHORTENED)

_FORMAT = 2
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
        is_counted: Whether these are pairs with counts, not of WebIsADB.
    """

    pattern: str
    header: bool
    has_modifications: bool
    is_counted: bool


def find_layout(start: bytes, name: str) -> Layout:
    """Tell the layout of the file of this name from its first lines.

    Raises:
        ArtifactError: If they are neither of WebIsADB nor counted pairs.
    """
    first = start.split(b"\n", _LOOKED_AT)[:-1]
    lines = [line.decode(errors="replace").replace("\0", "") for line in first]
    names = lines[0].rstrip("\r").replace('"', "")
    separator = "\t" if "\t" in names else ","
    header = tuple(names.split(separator))
    if any(set(known) <= set(header) for known in (COUNTED, _SAME.values())):
        return _layout(header, header=True, separator=separator)
    for columns, row in ((FLATTENED, _FLATTENED_ROW), (PUBLISHED, _PUBLISHED_ROW)):
        if any(map(row.match, lines)):
            return _layout(columns, header=False)
    for separator, row in _COUNTED_ROWS.items():
        if any(map(row.match, lines)):
            return _layout(COUNTED, header=False, separator=separator)
    raise ArtifactError(
        f"{name}: neither a file of WebIsADB nor counted pairs; expected the columns "
        f"{','.join(PUBLISHED)} or {','.join(FLATTENED)}, or {', '.join(COUNTED)} with tabs or "
        "commas between them"
    )


def _layout(columns: tuple[str, ...], header: bool, separator: str = ",") -> Layout:
    flat = {"ilemma", "clemma"} <= set(columns)
    is_counted = "hyponym" in columns
    columns = tuple(_SAME.get(column, column) if is_counted else column for column in columns)
    wanted = {
        columns.index("ilemma" if flat else "instance"): "instance",
        columns.index("clemma" if flat else "class"): "class",
        columns.index("frequency"): "frequency",
    }
    field = _FIELD if separator == "," else _TABBED
    fields = [
        f"(?P<{wanted[place]}>{field})" if place in wanted else field
        for place in range(max(wanted) + 1)
    ]
    if columns[-1] != "modifications":
        end = rf"(?:{separator}|\n)" if len(fields) < len(columns) else r"\n"
        return Layout("^" + separator.join(fields) + end, header, False, is_counted)
    fields += [_FIELD] * (len(columns) - 1 - len(fields))
    pattern = "^" + ",".join(fields) + r',(?P<opening>"?[^"\n]?)'
    return Layout(pattern, header, True, is_counted)


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
    is_count = number.is_between(0, LARGEST_FREQUENCY) & (number == number.floor())
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
        counted_pairs=len(lines) * layout.is_counted,
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
        phrases: One of `PHRASES`.

    Attributes:
        counts: Of rows and damage in all segments so far, named as in `WebIsADBSummary`.
        seconds: Time that reading them took.
    """

    def __init__(self, folder: Path, words: list[str], phrases: str = "whole") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._phrases = phrases
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
            (m, 3) numbers of instance and class of the pairs that are frequent enough, and their
            frequency; and the number of all pairs.
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
            frequent.append(sums.select(*_PAIR, "frequency").to_numpy().astype(np.int64))
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
        read = [_FORMAT, BLOCK, name, part.version, self._vocabulary, self._phrases]
        source = json.dumps(read)
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
            word = polars.col(column).str.to_lowercase().str.replace_all(" ", "_", literal=True)
            if column in _SHORTENED[self._phrases]:
                word = word.str.replace(_AFTER_OF, "").str.replace(_BEFORE_HEAD, "")
            word = word.alias("word")
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

"""What was read of WebIsADB so far: segments in a folder, each of them complete or absent.

Import this module only when reading: it needs the extra ``train``.
"""

import hashlib
import io
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.hub.records import write_whole
from hf_dxprivacy.training.parts import Part
from hf_dxprivacy.training.webisadb_rows import PUBLISHED, Layout, find_layout, read_rows
from hf_dxprivacy.training.webisadb_summary import Tally

polars: Any = require("polars", "train")

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
        sums = known.group_by(_PAIR).agg(polars.col("frequency").sum(), rows=polars.len())
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
    write_whole(path, [buffer.getbuffer()])


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

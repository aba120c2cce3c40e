"""What was read of WebIsADB so far: segments in a folder, each of them complete or absent.

Import this module only when reading: it needs the extra ``train``.
"""

import hashlib
import io
import json
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.hub.records import write_whole
from hf_dxprivacy.training.parts import Part
from hf_dxprivacy.training.webisadb_rows import find_layout, read_rows
from hf_dxprivacy.training.webisadb_summary import Tally

polars: Any = require("polars", "train")

# Bytes that are parsed at once, and bytes whose rows make a segment.
BLOCK = 1 << 23
SEGMENT = 1 << 29

# Rows of segments that are added up at once.
ROWS_AT_ONCE = 20_000_000

_FORMAT = 1
_METADATA = b"webisadb"
_PAIR = ("instance", "class")


def threads() -> int:
    """Return how many blocks are worth parsing at a time."""
    return int(polars.thread_pool_size())


class Segments:
    """Frequencies of pairs of words, added up within stretches of a part.

    Args:
        folder: Where they are, as Parquet files; created if necessary.
        words: The vocabulary, whose numbers the files hold.
    """

    def __init__(self, folder: Path, words: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._words = polars.Enum(words)
        self._vocabulary = hashlib.sha256("\n".join(words).encode()).hexdigest()
        columns = dict.fromkeys(_PAIR, polars.String)
        self._empty = polars.DataFrame(schema=columns | {"frequency": polars.Int64})
        self._folder = folder
        self._files: list[Path] = []

    def include(self, part: Part, pool: Executor) -> Iterator[Tally]:
        """Read a part from where an earlier run has left it; yield what each segment held.

        Raises:
            ArtifactError: If the part is damaged or not of WebIsADB.
        """
        start, last = 0, False
        while not last and (path := self._path(part, start)).exists():
            state = json.loads(pq.read_schema(path).metadata[_METADATA])
            start, last = state["end"], state["last"]
            self._files.append(path)
            yield Tally(**state["tally"])
        if last:
            return
        tables, tally, started = [], Tally(), time.perf_counter()
        for end, table, found in self._parse(part, start, pool):
            tables.append(table)
            tally += found
            if end - start >= SEGMENT:
                tally += Tally(seconds=time.perf_counter() - started)
                yield self._save(self._path(part, start), tables, tally, end, last=False)
                start, tables, tally, started = end, [], Tally(), time.perf_counter()
        tally += Tally(seconds=time.perf_counter() - started)
        yield self._save(self._path(part, start), tables, tally, start, last=True)

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

    def _parse(self, part: Part, start: int, pool: Executor) -> Iterator[tuple[int, Any, Tally]]:
        """Yield the rows behind `start`, block by block in order, and where each block ends."""
        waiting: deque[tuple[int, Any]] = deque()
        ahead, end, layout = threads() + 1, 0, None
        for block in part.blocks(BLOCK):
            end += len(block)
            if layout is None:
                layout = find_layout(block, part.name)
                block = block.partition(b"\n")[2] if layout.header else block
            if end > start:
                waiting.append((end, pool.submit(read_rows, block, layout)))
            if len(waiting) > ahead:
                place, result = waiting.popleft()
                yield place, *result.result()
        for place, result in waiting:
            yield place, *result.result()

    def _save(self, path: Path, tables: list[Any], tally: Tally, end: int, last: bool) -> Tally:
        rows = polars.concat([self._empty, *tables])
        known = rows.select(self._number("instance"), self._number("class"), "frequency")
        known = known.drop_nulls()
        tally += Tally(outside_vocabulary=len(rows) - len(known))
        sums = known.group_by(_PAIR).agg(polars.col("frequency").sum()).to_arrow()
        state = json.dumps({"end": end, "last": last, "tally": asdict(tally)})
        buffer = io.BytesIO()
        pq.write_table(sums.replace_schema_metadata({_METADATA: state}), buffer)
        write_whole(path, [buffer.getbuffer()])
        self._files.append(path)
        return tally

    def _number(self, column: str) -> Any:
        # Looked up in many rows at once, since the table of words is built anew every time.
        word = polars.col(column).str.to_lowercase().cast(self._words, strict=False)
        return word.to_physical().cast(polars.UInt32)

    def _path(self, part: Part, start: int) -> Path:
        """Return the place of a segment, another one if anything differs that it depends on."""
        name = str(Path(part.name).resolve())
        source = json.dumps([_FORMAT, BLOCK, name, part.version, self._vocabulary])
        digest = hashlib.sha256(source.encode()).hexdigest()[:24]
        return self._folder / f"{digest}-{start:015d}.parquet"

"""Rows of WebIsADB: which layout a file has, and what stands in the fields that are needed.

Import this module only when reading: it needs the extra ``train``.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.training.webisadb_summary import Tally

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


@dataclass(frozen=True)
class Layout:
    """Where in a row the needed fields are.

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
        """Whether a JSON list comes last."""
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

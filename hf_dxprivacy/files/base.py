"""What every file format has in common: columns, batches of rows, readers and sinks."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from hf_dxprivacy.errors import InvalidValueError

Cell = str | list[str | None] | None

# A batch ends here even if it has fewer rows than asked for: long rows shall not fill the memory.
BATCH_CHARACTERS = 1 << 22

# How many names an error message shows, and how many words a name may have for that.
_SHOWN_NAMES, _SHOWN_WORDS = 30, 3


@dataclass(frozen=True)
class Columns:
    """Which columns hold text, and which ones take the result, in the same order."""

    text: tuple[str, ...]
    output: tuple[str, ...]

    def require(self, present: Sequence[str], where: str, hint: str = "") -> None:
        """Require every text column once, and no other column where a result goes.

        Args:
            present: The columns that there are.
            where: The file, for the message.
            hint: What else may be wrong.

        Raises:
            InvalidValueError: If a column is missing, there are several of that name, or another
                one would be lost.
        """
        for name in self.text:
            if name not in present:
                raise InvalidValueError(
                    f"{where}: there is no column {name!r}; "
                    + (f"the columns are {_listed(present)}" if present else "there is none at all")
                    + (f"; {hint}" if hint else "")
                )
            if list(present).count(name) > 1:
                raise InvalidValueError(
                    f"{where}: there are several columns {name!r}; rename all but one, or text "
                    "would be left as it is in the others"
                )
        for name in self.added:
            if name in present:
                raise InvalidValueError(
                    f"{where}: there is a column {name!r} already, which would be lost; name "
                    "another one for the result (--output-column)"
                )

    @property
    def added(self) -> tuple[str, ...]:
        """The output columns that are not text columns."""
        return tuple(name for name in self.output if name not in self.text)


class Batch(ABC):
    """Some consecutive rows."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def cells(self, column: str) -> list[Cell]:
        """Return the cells of a text column."""

    @abstractmethod
    def replace(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Put new cells into columns; a column that is not there yet is added at the end."""


class TableBatch(Batch):
    """Rows that have all the same columns."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return all columns."""


class TextBatch(Batch):
    """Rows of a text format, which can be written down as they were read."""

    @abstractmethod
    def encode(self) -> bytes:
        """Return the rows in the format they came in, all but the replaced cells unchanged."""


class Reader(ABC):
    """A table that is read from the front.

    Attributes:
        unit: Unit of `total` and `position`: "B" for bytes, "rows" for rows.
        total: Size of the input, or None if unknown.
    """

    unit: str = "B"
    total: int | None = None

    @property
    @abstractmethod
    def position(self) -> int:
        """How much of the input has been read."""

    @abstractmethod
    def batches(self, size: int) -> Iterator[Batch]:
        """Return the rows, at most `size` in a batch."""


class TableReader(Reader):
    """Reads rows that have all the same columns, in batches that are each a `TableBatch`."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result, as `TableBatch.to_arrow` returns them after replacement."""


class TextReader(Reader):
    """Reads a text format, in batches that are each a `TextBatch`."""

    @abstractmethod
    def head(self) -> bytes:
        """Return what precedes the rows of the result, such as the header."""


class Sink(Protocol):
    """Where the batches go."""

    def write(self, batch: Batch) -> None:
        """Write the rows of a batch."""


class Sized(Protocol):
    """A record that knows about how many characters it holds."""

    @property
    def characters(self) -> int:
        """Number of characters."""


Record = TypeVar("Record", bound=Sized)


def grouped(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    """Collect records into groups of at most `size`, and of not much over `BATCH_CHARACTERS`."""
    group: list[Record] = []
    characters = 0
    for record in records:
        group.append(record)
        characters += record.characters
        if len(group) == size or characters >= BATCH_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _listed(names: Sequence[str]) -> str:
    shown = [_named(name) for name in names[:_SHOWN_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _named(name: str) -> str:
    """Return a name; not what may be a text, as in the first line of a file without names."""
    plain = re.sub("[-. ]", "_", name).isidentifier() and len(name.split()) <= _SHOWN_WORDS
    return repr(name) if plain else f"one of {len(name)} characters"

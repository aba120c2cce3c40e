"""The formats by name, and opening a file in the right one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.files.arrow import ParquetReader, is_hub_name, open_hub_dataset
from hf_dxprivacy.files.base import Columns, Reader
from hf_dxprivacy.files.delimited import DelimitedReader, Dialect
from hf_dxprivacy.files.jsonl import JsonLinesReader
from hf_dxprivacy.files.source import Source
from hf_dxprivacy.files.txt import TxtReader

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")

# Standard input or output.
STANDARD = "-"

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "txt",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def format_of(name: str) -> str | None:
    """Return the format that the ending of a file name stands for, if it is known."""
    return _ENDINGS.get(Path(name.lower().removesuffix(".gz")).suffix)


def is_packed(name: str) -> bool:
    """Tell whether the ending of a file name says gzip."""
    return name.lower().endswith(".gz")


def dialect_of(file_format: str, quoted: bool = True, delimiter: str | None = None) -> Dialect:
    """Return how the fields of csv or tsv are told apart."""
    return Dialect(delimiter or _DELIMITERS.get(file_format, ","), quoted)


def check_ending(name: str) -> None:
    """Require that the ending of a file to write, if it has one, is of a format that is written.

    Raises:
        InvalidValueError: If not.
    """
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending and format_of(name) is None:
        raise InvalidValueError(
            f"{name}: can not write the format of the ending {ending!r}; choose one of "
            f"{', '.join(_ENDINGS)}, or none for the format of the input"
        )


@dataclass(frozen=True)
class Input:
    """Where the rows come from.

    Attributes:
        name: A file, "-" for standard input, or the name of a dataset on the Hugging Face Hub.
        kind: One of `FORMATS`, or "hub".
        quoted: Whether csv and tsv have quotes.
        subset: Configuration of a dataset.
        split: Split of a dataset.
        delimiter: What stands between the fields of csv or tsv, if not what the format says.
    """

    name: str
    kind: str
    quoted: bool = True
    subset: str | None = None
    split: str = "train"
    delimiter: str | None = None

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return None if self.kind == "hub" or self.name == STANDARD else Path(self.name)


def is_dataset(name: str, kind: str | None) -> bool:
    """Tell whether an input is a dataset on the Hub, and not a file.

    Args:
        name: A file, "-" for standard input, or the name of a dataset.
        kind: The format that the caller says a file has.

    Raises:
        InvalidValueError: If it can be neither.
    """
    if name == STANDARD:
        return False
    if Path(name).is_dir():
        raise InvalidValueError(f"{name} is a folder; name a file in it")
    if Path(name).exists():
        return False
    if kind or format_of(name) or not is_hub_name(name):
        raise InvalidValueError(f"there is no file {name}; check the path")
    return True


def describe_file(
    name: str, kind: str | None, quoted: bool = True, delimiter: str | None = None
) -> Input:
    """Tell how to read a file.

    Args:
        name: A file, or "-" for standard input.
        kind: Its format, instead of what the ending says.
        quoted: Whether csv and tsv have quotes.
        delimiter: What stands between the fields of csv or tsv, instead of what the format says.

    Raises:
        InvalidValueError: If the format is not known, can not be read from there, or has no such
            delimiter.
    """
    known = kind or format_of(name)
    if known is None:
        raise InvalidValueError(
            f"the name {name!r} does not tell the format; say which of {', '.join(FORMATS)} it is "
            "(--format)"
        )
    if known == "parquet" and (name == STANDARD or is_packed(name)):
        raise InvalidValueError("parquet is read from a file that is not compressed as a whole")
    if delimiter is not None and (known not in _DELIMITERS or not _can_delimit(delimiter)):
        raise InvalidValueError(
            "expected the delimiter of csv or tsv to be one character, no quote and no line end; "
            f"got {delimiter!r} for {known}"
        )
    return Input(name, known, quoted, delimiter=delimiter)


def _can_delimit(delimiter: str) -> bool:
    return len(delimiter) == 1 and delimiter not in '"\r\n'


@contextmanager
def open_reader(source: Input, columns: Columns) -> Iterator[Reader]:
    """Open an input.

    Args:
        source: What to read.
        columns: Which columns hold text, and which take the result.

    Raises:
        InvalidValueError: If it is damaged or a column is missing; names the file and the line.
        InvalidTypeError: If a text column holds something else.
    """
    if source.kind == "hub":
        yield open_hub_dataset(source.name, source.subset, source.split, columns)
    elif source.kind == "parquet":
        with closing(ParquetReader(Path(source.name), columns)) as reader:
            yield reader
    else:
        with closing(Source(source.path)) as lines:
            yield _text_reader(lines, source, columns)


def _text_reader(lines: Source, source: Input, columns: Columns) -> Reader:
    if source.kind == "txt":
        return TxtReader(lines, columns)
    if source.kind == "jsonl":
        return JsonLinesReader(lines, columns)
    return DelimitedReader(lines, dialect_of(source.kind, source.quoted, source.delimiter), columns)

"""Where rows come from, and which of their columns hold texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_dxprivacy.errors import InvalidValueError, describe_columns, nearest_path

STANDARD = "-"  # standard input or output
ENDINGS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".txt": "txt"},
    **{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet"},
}
DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Columns:
    """The text columns, and those for the results, in the same order."""

    text: tuple[str, ...]
    output: tuple[str, ...]
    any_type: bool = False  # whether they may hold other values than texts, as labels are
    nested: frozenset[str] = frozenset()  # those that hold texts in lists of dicts

    @property
    def plain(self) -> tuple[str, ...]:
        """The text columns whose cells are texts or lists of tokens."""
        return () if self.any_type else tuple(n for n in self.text if n not in self.nested)

    def require(self, present: Sequence[str], where: str, hint: str = "") -> None:
        """Require every text column once, and no column that a result would replace.

        Args:
            present: The columns of the data.
            where: File and line, for the message.
            hint: A likely reason for a missing column, for the message.

        Raises:
            InvalidValueError: If a column is missing, repeated or would be lost.
        """
        for name in self.text:
            if name not in present:
                raise InvalidValueError(
                    f"{where}: there is no column {name!r}; {describe_columns(present, name)}"
                    + (f"; {hint}" if hint else "")
                )
            if list(present).count(name) > 1:
                raise InvalidValueError(
                    f"{where}: there are several columns {name!r}; rename all but one, or text "
                    "would be left as it is in the others"
                )
        for name in self.output:
            if name in present and name not in self.text:
                raise InvalidValueError(
                    f"{where}: there is a column {name!r} already, which would be lost; name "
                    "another one for the result (--output-column)"
                )


@dataclass(frozen=True)
class Input:
    """Source of rows: a file, standard input, or a dataset on the Hub."""

    name: str  # "-" for standard input
    kind: str  # "csv", "tsv", "jsonl", "txt", "parquet" or "hub"
    quoted: bool = True  # whether csv and tsv have quotes
    delimiter: str | None = None  # of csv or tsv, if not that of the format
    subset: str | None = None  # configuration of a dataset
    split: str = "train"

    @property
    def is_file(self) -> bool:
        """Whether it has a path."""
        return self.name != STANDARD and self.kind != "hub"


def find_input(
    name: str,
    kind: str | None = None,
    quoted: bool = True,
    delimiter: str | None = None,
    subset: str | None = None,
    split: str | None = None,
) -> Input:
    """Decide whether a name is a file or a dataset on the Hub, and how to read it; see `Input`.

    Raises:
        OSError: If it can be neither.
        InvalidValueError: If the format is unknown or cannot be read from there.
    """
    known = kind or ENDINGS.get(Path(name.lower().removesuffix(".gz")).suffix)
    if name != STANDARD and Path(name).is_dir():
        raise IsADirectoryError(21, "a folder; name a file in it", name)
    if name != STANDARD and not Path(name).exists():
        # No dataset without an owner is named as r.xlsx is: nothing of a misspelt path is sent.
        is_path = re.fullmatch(r"[^/]*\.[A-Za-z]\w*", name)
        place = re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", name)
        if known or is_path or not place:
            near = nearest_path(name) or "; check the path"
            raise FileNotFoundError(2, f"there is no such file{near}", name)
        return Input(name, "hub", quoted, None, subset, split or "train")
    if subset or split:
        raise InvalidValueError(f"--split and --subset are for the Hub, but {name} is a file")
    if known is None:
        raise InvalidValueError(
            f"the name {name!r} does not tell the format; say which of "
            f"{', '.join(dict.fromkeys(ENDINGS.values()))} it is (--format)"
        )
    if known == "parquet" and (name == STANDARD or name.lower().endswith(".gz")):
        raise InvalidValueError("parquet is read from a file that is not compressed as a whole")
    one = delimiter is None or re.fullmatch('[^"\r\n]', delimiter)
    if not one or (delimiter and known not in DELIMITERS):
        raise InvalidValueError(
            "expected the delimiter of csv or tsv to be one character, no quote and no line end; "
            f"got {delimiter!r} for {known}"
        )
    return Input(name, known, quoted, delimiter)

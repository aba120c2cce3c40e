"""A released file and the report of its release: a dataset with a card, ready to be pushed."""

import csv
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError, DxPrivacyError, InvalidValueError
from hf_dxprivacy.files.readers import open_reader
from hf_dxprivacy.files.source import DELIMITERS, Columns, Input
from hf_dxprivacy.hub import atomic_write
from hf_dxprivacy.hub.artifact import read_json, require_unaltered, to_json
from hf_dxprivacy.publishing import ReleasedDataset
from hf_dxprivacy.publishing.released_dataset import (
    CLAIMED,
    DATA,
    OPTIONAL,
    SHOWN_ROWS,
    Part,
    sha256_of,
)

AGAIN = "privatize once more with --report, and publish that output only"
_GZIP = b"\x1f\x8b"
_PIECE = 1 << 20


def released_dataset(
    path: Path,
    report: Path | None = None,
    *,
    license: str | None = None,
    description: str | None = None,
    with_originals: bool = False,
) -> ReleasedDataset:
    """Return a file that ``hf-dxprivacy privatize --report`` has written, with a card.

    The guarantee is that of the report, which names the SHA-256 of the file: neither another file
    nor an altered one gets a card. Of the report nothing but the claim is used.

    Args:
        path: The file, which is read once. It becomes the data of the repository as it is.
        report: Its report; by default the one next to it.
        license: As for `ReleasedDataset`.
        description: As for `ReleasedDataset`.
        with_originals: As for `ReleasedDataset`.

    Raises:
        OSError: If the file cannot be read.
        ArtifactError: If there is no report, or it is damaged or of another file.
        InvalidValueError: If a released column is missing, an original one is left, or the licence
            is unknown.
    """
    report = report or path.with_name(f"{path.name}.report.json")
    claim, file = _claim(path, report)
    try:
        return _released(path, claim, file, license, description, with_originals)
    except (DxPrivacyError, OSError):
        raise
    except Exception as error:
        raise ArtifactError(
            f"{report}: a field is missing or of another type than 'privatize' wrote "
            f"({type(error).__name__}); undo the change, or {AGAIN}"
        ) from error


def _released(
    path: Path, claim: dict[str, Any], file: Mapping[str, Any], *about: Any
) -> ReleasedDataset:
    """Return a file with the card of its claim, all of which was used once."""
    kind = file["format"]
    with path.open("rb") as opened:
        packed = opened.read(len(_GZIP)) == _GZIP
    name = f"{DATA}/train.{kind}{'.gz' * packed}"
    if kind == "txt":  # which has no place for the name of its column
        claim["privatized"] = {"text": "text"}
    delimiter, quoted = file.get("delimiter"), file.get("quoted", True)
    text = (*claim["privatized"],)
    columns, examples, rows = _look(Input(str(path), kind, quoted, delimiter), text)
    reading: dict[str, Any] = {}
    if kind in DELIMITERS:
        # A released "None" or "NA" is a word; an empty cell is a missing one, as in other formats.
        reading = {"keep_default_na": False, "na_values": [""]}
        reading |= {"sep": delimiter} if delimiter else {}
        reading |= {} if quoted else {"quoting": csv.QUOTE_NONE}

    def write(folder: Path) -> None:
        atomic_write(folder / name, _pieces(path))
        _require_digest(path, sha256_of(folder / name), file["sha256"])

    parts = {"train": Part(rows, (name,), write)}
    card = ReleasedDataset(claim, columns, parts, examples, reading, *about)
    to_json({"card": str(card), "croissant": card._croissant(None, name, {})})
    return card


def _claim(path: Path, report: Path) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what a report claims of a file, having checked that it is of this one."""
    found = sha256_of(path)
    if not report.is_file():
        raise ArtifactError(
            f"there is no report {report}, which says what holds for {path}; name it with --report "
            f"if it is elsewhere, or {AGAIN}"
        )
    content = read_json(report, "expected the report of a release")
    require_unaltered(report, content)
    file = content.get("released")
    if not isinstance(file, dict) or not {"sha256", "format"} <= {*file}:
        why = "of a release to standard output" if "guarantee" in content else "no report"
        raise ArtifactError(
            f"{report}: it names no file, so it may be {why}, or of an older version; {AGAIN}"
        )
    _require_digest(path, found, file["sha256"])
    if missing := sorted({*CLAIMED} - OPTIONAL - {*content}):
        raise ArtifactError(f"{report}: missing {', '.join(missing)}; the report was altered")
    claim = {name: content[name] for name in CLAIMED if name in content}
    return claim, file


def _require_digest(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ArtifactError(
            f"{path}: SHA-256 is {found}, but its report is of a file with {expected}; it was "
            f"altered since, or is no release at all. Publish the file that was written, or {AGAIN}"
        )


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _look(source: Input, text: tuple[str, ...]) -> tuple[tuple[str, ...], list[Any], int]:
    """Read a file once: the names of its columns, its first rows, and how many there are."""
    names: dict[str, None] = {}
    examples: list[Any] = []
    rows = 0
    with open_reader(source, Columns(text, text, any_type=True)) as reader:
        whole = None if source.kind != "parquet" else reader.total
        for batch in reader.batches(1000 if whole is None else SHOWN_ROWS):
            first = batch[:SHOWN_ROWS] if isinstance(batch, list) else batch.slice(0, SHOWN_ROWS)
            examples += first if isinstance(first, list) else first.to_pylist()
            if isinstance(batch, list):
                names |= dict.fromkeys(chain.from_iterable(batch))
            rows += len(batch)
            if whole is not None and rows >= SHOWN_ROWS:
                break
        names |= dict.fromkeys(() if reader.schema is None else reader.schema.names)
    rows = rows if whole is None else whole
    if not rows:
        raise InvalidValueError(f"{source.name}: there are no rows to publish")
    return (*names,), examples[:SHOWN_ROWS], rows

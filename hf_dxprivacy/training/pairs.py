"""Relations from plain files: pairs of names, and triples as ConceptNet has them."""

from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.training.parts import find_files, read_parts
from hf_dxprivacy.training.relations import Relations

_BLOCK = 1 << 22


def read_pairs(path: str | Path, *, progress: bool = True) -> Relations:
    """Read pairs of a node and its class, one a line with a tab between them.

    Args:
        path: A file in UTF-8, plain or compressed, or a folder of such files. Empty lines are
            skipped, and there is no header.
        progress: Show a progress bar.

    Returns:
        The relations, each once, with the names as they are written.

    Raises:
        ArtifactError: If a file is missing or damaged, or a line is not a pair.
    """
    return Relations.from_names(_pair(*line) for line in _lines(path, progress))


def read_conceptnet(
    path: str | Path, relation: str = "IsA", language: str = "en", *, progress: bool = True
) -> Relations:
    """Read one relation of ConceptNet 5 among terms of one language.

    Args:
        path: The file of assertions, plain or compressed: lines of an identifier, the relation
            (``/r/IsA``), its start (``/c/en/dog/n``), its end and more, with tabs between them.
        relation: Name of a relation that leads from a node to its class.
        language: Code of the language.
        progress: Show a progress bar.

    Returns:
        The relations between terms without their senses, underscores between the parts of a term.
        Pairs of a term with itself are left out. `Relations.among` keeps those of a vocabulary.

    Raises:
        ArtifactError: If a file is missing or damaged, or a line is not such an assertion.
    """
    term = f"/c/{language}/"
    assertions = (_assertion(*line) for line in _lines(path, progress))
    ends = (
        (start.split("/")[3], end.split("/")[3])
        for kind, start, end in assertions
        if kind == f"/r/{relation}" and start.startswith(term) and end.startswith(term)
    )
    return Relations.from_names((node, above) for node, above in ends if node != above)


def _lines(path: str | Path, progress: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not empty, each behind its place for messages."""
    files = find_files(path)
    size = sum(file.stat().st_size for file in files)
    with tqdm(total=size, unit="B", unit_scale=True, disable=not progress) as bar:
        for part in read_parts(files, bar):
            rows = (row for block in part.blocks(_BLOCK) for row in block.split(b"\n")[:-1])
            for number, row in enumerate(rows, start=1):
                where = f"{part.name}, line {number}"
                try:
                    line = row.decode().rstrip("\r")
                except UnicodeDecodeError as error:
                    raise ArtifactError(f"{where}: not UTF-8; convert the file") from error
                if line:
                    yield where, line


def _pair(where: str, line: str) -> tuple[str, str]:
    fields = line.split("\t")
    if len(fields) != 2 or not all(fields):
        raise ArtifactError(f"{where}: expected a node, a tab and its class")
    return fields[0], fields[1]


def _assertion(where: str, line: str) -> tuple[str, str, str]:
    fields = line.split("\t")
    if len(fields) < 4 or not fields[1].startswith("/r/"):
        raise ArtifactError(
            f"{where}: expected an identifier, a relation such as /r/IsA, its start and its end, "
            "with tabs between them"
        )
    return fields[1], fields[2], fields[3]

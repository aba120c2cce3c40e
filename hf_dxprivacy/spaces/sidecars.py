"""Optional files of a space: its index, its stored bounds of distances and its tree.

An index is read by faiss, in C++, and stored bounds of distances cannot be checked without
computing them again. Their digests in ``config.json`` show damage and exchange, not malice: they
are loaded only if the caller asks for them. A tree is checked as a whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, HubFileNotFoundError, InvalidValueError
from hf_dxprivacy.hub import tensors
from hf_dxprivacy.hub.artifact import CONFIG
from hf_dxprivacy.hub.download import ArtifactSource
from hf_dxprivacy.spaces.stored_space import StoredSpace


class Part(Protocol):
    """What a sidecar holds."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the file, in hexadecimal."""

    @property
    def pieces(self) -> Iterable[bytes | memoryview]:
        """The file, in pieces."""

    @property
    def described(self) -> dict[str, Any]:
        """What the configuration says of it beside digests."""

    @classmethod
    def restored(
        cls, content: Any, entry: Mapping[str, Any], vectors: NDArray[np.floating]
    ) -> "Part":
        """Make it of the content of the file, the entry of the configuration, and the vectors."""


@dataclass(frozen=True, eq=False)
class Sidecar:
    """An optional file of a space.

    Attributes:
        entry: The entry of ``config.json`` that describes it, and the attribute of a space.
        file: Its name.
        what: A space without it is stored without this, in messages.
        remedy: What to do if it cannot be read, with a place for what was asked for.
        kinds: Type of each field of the entry, in their order.
        owner: The digest of a space that the file belongs to, and the field with that digest.
        made_by: The module and the class of the `Part`, imported when there is one.
    """

    entry: str
    file: str
    what: str
    remedy: str
    kinds: Mapping[str, type]
    owner: tuple[Literal["digest", "vectors_sha256"], str]
    made_by: tuple[str, str]

    def of(self, space: StoredSpace) -> Part | None:
        """Return the part that a space has, if any."""
        part: Part | None = getattr(space, self.entry)
        return part

    def entry_for(self, space: StoredSpace, part: Part) -> dict[str, Any]:
        """Return the entry of ``config.json`` for the part of a space."""
        digest, field = self.owner
        values = part.described | {"sha256": part.sha256, field: getattr(space, digest)}
        return {name: values[name] for name in self.kinds}

    def described(self, config: Mapping[str, Any], path: Path, asked: object) -> dict[str, Any]:
        """Return the entry of a configuration.

        Args:
            config: The configuration.
            path: Where it is.
            asked: The kind of index that was asked for; else True, or None for any kind.

        Raises:
            ArtifactError: If there is none, a field is missing, or another kind was asked for.
        """
        entry, remedy = config.get(self.entry), self.remedy.format(asked or "ivf")
        if entry is None:
            raise ArtifactError(f"{path}: this space is stored without {self.what}; {remedy}")
        found = entry if isinstance(entry, dict) else {}
        if {field: type(found.get(field)) for field in self.kinds} != self.kinds:
            raise ArtifactError(
                f"{path}: the entry {self.entry} lacks one of {', '.join(self.kinds)}; {remedy}"
            )
        if isinstance(asked, str) and found["kind"] != asked:
            raise ArtifactError(
                f"{path}: the {self.entry} is of kind {found['kind']!r}, not {asked!r}; {remedy}"
            )
        return found

    def read(
        self, source: ArtifactSource, config: Mapping[str, Any], space: StoredSpace, asked: object
    ) -> Part:
        """Read the file, if it belongs to a space, and make the part of what it holds.

        Args:
            source: Where it is.
            config: The configuration there.
            space: The space without it.
            asked: See `described`.

        Raises:
            ArtifactError: If it is missing, damaged or of another space.
            HubError: If the Hub refuses it or cannot be reached.
        """
        entry = self.described(config, source.folder / CONFIG, asked)
        module, name = self.made_by
        kind: type[Part] = getattr(import_module(module), name)
        digest, field = self.owner
        try:
            with source.errors_named():
                if getattr(space, digest) != entry[field]:
                    raise ArtifactError(
                        f"{source.folder / self.file} was made for another space than this one"
                    )
                path = source.file(self.file)
                reads = tensors.read if path.suffix == ".safetensors" else tensors.read_bytes
                content = reads(path, entry["sha256"])
                try:
                    return kind.restored(content, entry, space.vectors)
                except InvalidValueError as error:
                    raise ArtifactError(f"{path}: {error}") from error
        except (ArtifactError, HubFileNotFoundError) as error:
            raise ArtifactError(f"{error}; {self.remedy.format(asked)}") from error


INDEX = Sidecar(
    "index",
    "index.faiss",
    "an index",
    "make one with space.build_index({!r}), or load without index=",
    dict.fromkeys(("kind", "factory", "faiss", "sha256", "vectors_sha256"), str)
    | {"quality": dict},
    ("vectors_sha256", "vectors_sha256"),
    ("hf_dxprivacy.search.ann_index", "VectorIndex"),
)
BOUNDS = Sidecar(
    "neighbour_lists",
    "neighbours.safetensors",
    "lists of neighbours",
    "make lists with space.build_neighbours(), or load without neighbour_lists=",
    {"k": int, "sha256": str, "space": str},
    ("digest", "space"),
    ("hf_dxprivacy.spaces.partition", "DistanceBounds"),
)
TREE = Sidecar(
    "hierarchy",
    "hierarchy.safetensors",
    "a tree",
    "make it again with build_hierarchy",
    {"method": str, "clusters": int, "sha256": str, "space": str},
    ("digest", "space"),
    ("hf_dxprivacy.spaces.hierarchy", "Hierarchy"),
)
SIDECARS = (INDEX, BOUNDS, TREE)

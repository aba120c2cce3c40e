"""What a space consists of, in memory and in a folder: words, vectors, a metric, and parts.

A part has a file of its own. A tree is checked as a whole. An index is read by faiss, in C++, and
stored bounds of distances cannot be checked without computing them again. Their digests in
``config.json`` show damage and exchange, not malice: they are loaded only if asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property
from hf_dxprivacy.errors import (
    ArtifactError,
    HubFileNotFoundError,
    InvalidTypeError,
    InvalidValueError,
)
from hf_dxprivacy.hub import ArtifactSource, HubCommit, tensors
from hf_dxprivacy.hub.artifact import CONFIG, TENSOR, vocabulary_bytes
from hf_dxprivacy.spaces import checks
from hf_dxprivacy.text.shapes import SHAPES

if TYPE_CHECKING:
    from hf_dxprivacy.search.ann_index import VectorIndex
    from hf_dxprivacy.spaces.hierarchy import Hierarchy
    from hf_dxprivacy.spaces.partition import DistanceBounds, Partition
    from hf_dxprivacy.spaces.shared_bounds import SharedBounds

S = TypeVar("S", bound="StoredSpace")
ItemKind = Literal["words", "sentences"]


def item_kind(provenance: object) -> ItemKind:
    """Return what the vocabulary of a stored space consists of, by its provenance."""
    found = provenance.get("entries") if isinstance(provenance, dict) else None
    return "sentences" if found == "sentences" else "words"


@dataclass(eq=False)
class SpaceCache:
    """Values computed from a space, remembered beside it and shared by its copies.

    They follow from the space, so that it makes no difference which thread adds one, or when:
    medians of distances to the k-th neighbour and the distances of which they are, by k; privacy
    levels of "calibrated", as the config stores them; partitions, by device and stored bounds.
    """

    neighbour_distances: dict[int, float] = field(default_factory=dict)
    samples: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    certificates: dict[str, Any] = field(default_factory=dict)
    partitions: dict[tuple[str, DistanceBounds | None], Partition] = field(default_factory=dict)
    shared: SharedBounds | None = None

    def share(self, size: int) -> None:
        """Make room for bounds that processes forked from now on share, but not in one of them."""
        from hf_dxprivacy.spaces.shared_bounds import BLOCKS, SharedBounds

        if hasattr(os, "fork") and (self.shared is None or self.shared.owner == os.getpid()):
            with suppress(OSError):
                self.shared = SharedBounds(size, min(BLOCKS, size))


@dataclass(frozen=True, eq=False, repr=False)
class StoredSpace:
    """The data of a space, checked, and what identifies it; see `EmbeddingSpace`."""

    words: tuple[str, ...]
    vectors: NDArray[np.floating]
    metric: str = "euclidean"
    scale: float = 1.0
    provenance: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    location: str | None = None
    commit: HubCommit | None = None
    index: VectorIndex | None = None
    neighbour_lists: DistanceBounds | None = None
    hierarchy: Hierarchy | None = None
    shapes: tuple[str, ...] = ()
    stored_sha256: Mapping[str, str] = field(default_factory=dict)
    cache: SpaceCache = field(default_factory=SpaceCache)

    def __post_init__(self) -> None:
        checks.check_metric(self.metric, self.scale)
        vectors = checks.as_matrix(self.vectors).view()
        vectors.setflags(write=False)
        object.__setattr__(self, "words", checks.as_words(self.words))
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "scale", float(self.scale))
        checks.check_vectors(self.words, vectors, self.metric)
        # A word that occurs twice is refused here.
        rows = self._rows
        if wrong := [shape for shape in self.shapes if shape not in rows or shape not in SHAPES]:
            raise InvalidValueError(
                f"expected shapes to be words of the vocabulary, among {', '.join(SHAPES)}; got "
                f"{', '.join(wrong)}"
            )

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def item_kind(self) -> ItemKind:
        """What the vocabulary consists of: "words", or "sentences" in the space of a pool."""
        return item_kind(self.provenance)

    @property
    def entries(self) -> ItemKind:
        """The name of `item_kind` up to version 0.3."""
        return self.item_kind

    @property
    def dim(self) -> int:
        """Number of dimensions n."""
        return int(self.vectors.shape[1])

    @property
    def certificates(self) -> dict[str, Any]:
        """A copy of the privacy levels that calibration has computed for this space."""
        return dict(self.cache.certificates)

    @lazy_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal of the vectors, the vocabulary, the metric, scale and shapes.

        Saving and loading does not change it.
        """
        vocabulary = self.stored_sha256.get("vocabulary")
        if vocabulary is None:
            vocabulary = hashlib.sha256(vocabulary_bytes(self.words)).hexdigest()
        bound = [self.vectors_sha256, vocabulary, self.metric, self.scale]
        if self.shapes:
            bound.append(list(self.shapes))
        return hashlib.sha256(json.dumps(bound).encode()).hexdigest()

    @lazy_property
    def vectors_sha256(self) -> str:
        """SHA-256 of the vectors as they would be saved, in hexadecimal."""
        return self.stored_sha256.get("vectors") or tensors.sha256({TENSOR: self.vectors})

    @lazy_property
    def is_shape(self) -> NDArray[np.bool_]:
        """(V,) whether each word is one of `shapes`."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[self.ids(self.shapes)] = True
        return found

    def ids(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Return the row of each word, (m,) int64; −1 for a word that is not in the vocabulary."""
        if isinstance(words, str):
            raise InvalidTypeError("expected a sequence of words, got a single string; pass a list")
        return np.fromiter(map(self._rows.get, words, repeat(-1)), dtype=np.int64)

    @lazy_property
    def _rows(self) -> dict[str, int]:
        return checks.index_of(self.words)

    def _with(self: S, **changes: Any) -> S:
        """Return a copy with other attributes, not validated again, and with the same cache."""
        space = object.__new__(type(self))
        vars(space).update(vars(self), **changes)
        return space


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
    ) -> Part:
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

"""Embedding spaces as artifacts in folders, and shared between processes by digest."""

from __future__ import annotations

import logging
import shutil
import tempfile
import weakref
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, require_within
from hf_dxprivacy.hub import HubOptions, cache_dir, cards
from hf_dxprivacy.hub import artifact as folder
from hf_dxprivacy.hub.download import ArtifactSource
from hf_dxprivacy.spaces import ann_artifact, distance_bounds, hierarchy

if TYPE_CHECKING:
    from hf_dxprivacy.spaces.space import EmbeddingSpace

logger = logging.getLogger(__name__)

# Files that every space is read from, and all that saving one may write.
READ = (folder.CONFIG, folder.VOCABULARY, folder.VECTORS)
PARTS = (ann_artifact.FILE, distance_bounds.FILE, hierarchy.FILE)
FILES = (*READ, *PARTS, cards.README, cards.PICTURE)

NESTED = ("provenance", "certificates", "figures")

# The spaces of this process by identity, so that a worker loads each one once; a forked child
# inherits its parent's and so the very same memory. The last few that were unpickled are kept
# alive, since a worker receives the same one again with every task.
_known: weakref.WeakValueDictionary[str, EmbeddingSpace] = weakref.WeakValueDictionary()
_recent: deque[EmbeddingSpace] = deque(maxlen=4)


@dataclass(frozen=True)
class ArtifactParts:
    """Optional parts of the artifact of a space.

    Attributes:
        index: Kind of its index; None for no index.
        bounds: Whether with stored distance bounds.
    """

    index: str | None = None
    bounds: bool = False

    @classmethod
    def of(cls, space: EmbeddingSpace) -> ArtifactParts:
        """Return the parts that a space has."""
        kind = None if space.index is None else space.index.kind
        return cls(kind, space.neighbour_lists is not None)

    @property
    def files(self) -> tuple[str, ...]:
        """Files to fetch, including the optional parts."""
        wanted = {ann_artifact.FILE: self.index is not None, distance_bounds.FILE: self.bounds}
        return (*READ, *(name for name, is_wanted in wanted.items() if is_wanted))

    def load(
        self,
        space: EmbeddingSpace,
        config: dict[str, Any],
        source: ArtifactSource,
        access: HubOptions,
    ) -> dict[str, Any]:
        """Load the parts, by the names of the attributes of a space.

        Args:
            space: The space.
            config: What ``config.json`` says.
            source: Where the space was loaded from.
            access: How to reach the Hub.

        Raises:
            ArtifactError: If one is missing, damaged or of another space.
            HubError: If the Hub refuses it or cannot be reached.
        """
        size, digest = len(space), space.digest
        found: dict[str, Any] = {}
        if config.get(hierarchy.ENTRY) is not None:
            found["hierarchy"] = hierarchy.load(config, size, digest, source, access)
        if self.index is not None:
            found["index"] = ann_artifact.load(space, self.index, config, source, access)
        if self.bounds:
            found["neighbour_lists"] = distance_bounds.load(config, size, digest, source, access)
        return found


def register(space: EmbeddingSpace, keep: bool = False) -> None:
    """Make a space known under its identity, and with `keep` hold on to it for a while."""
    _known[identity(space)] = space
    if keep and not any(kept is space for kept in _recent):
        _recent.append(space)


def registered(identity: str) -> EmbeddingSpace | None:
    """Return the space of this identity if this process has it."""
    return _known.get(identity)


def identity(space: EmbeddingSpace) -> str:
    """Return the digests of a space and of its parts: of all that must come back."""
    parts = (space.index, space.neighbour_lists, space.hierarchy)
    return "-".join([space.digest, *(part.sha256 for part in parts if part is not None)])


def write(space: EmbeddingSpace, directory: Path) -> None:
    """Write a space into a folder; optional parts of an earlier one do not stay behind."""
    config: dict[str, Any] = {
        "metric": space.metric,
        "scale": space.scale,
        "provenance": space.provenance,
        "neighbour_distances": {str(k): d for k, d in space.cache.neighbour_distances.items()},
        "certificates": space.certificates,
        "figures": space.figures,
    }
    if space.shapes:
        config["shapes"] = list(space.shapes)
    files: dict[str, bytes | memoryview] = {}
    if space.index is not None:
        config[ann_artifact.ENTRY] = ann_artifact.entry(space.index, space.vectors_sha256)
        files[ann_artifact.FILE] = space.index.content.data
    if space.neighbour_lists is not None:
        config[distance_bounds.ENTRY] = distance_bounds.entry(space.neighbour_lists, space.digest)
        files[distance_bounds.FILE] = space.neighbour_lists.content.data
    if space.hierarchy is not None:
        config[hierarchy.ENTRY] = hierarchy.entry(space.hierarchy, space.digest)
        files[hierarchy.FILE] = space.hierarchy.serialized()
    folder.write_artifact(
        directory, vectors=space.vectors, words=space.words, config=config, files=files
    )
    for name in set(PARTS) - set(files):
        (directory / name).unlink(missing_ok=True)


def cache_space(space: EmbeddingSpace) -> Path:
    """Save an in-memory space in the user's cache, where other processes find it by its identity.

    Written into a folder of its own and renamed, so that processes may do so at the same time.

    Returns:
        The folder, the same for the same identity.
    """
    shelf = cache_dir().absolute() / "spaces"
    final = shelf / identity(space)
    if (final / folder.CONFIG).is_file():
        return final
    shelf.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".") as beside:
        written = Path(beside) / "space"
        write(space, written)
        try:
            written.rename(final)
        except OSError:
            if not (final / folder.CONFIG).is_file():
                # What is there is no artifact, for instance the remains of an interrupted clean-up.
                shutil.rmtree(final, ignore_errors=True)
                written.rename(final)
    return final


def description(artifact: folder.Artifact) -> dict[str, Any]:
    """Return the constructor arguments of a space that a config gives.

    Measurements that no digest protects from damage are left out: a level that lost a digit states
    a guarantee that does not hold, and only computing it anew would show it. So the first use does.

    Raises:
        InvalidValueError: If an entry is missing, of the wrong kind or altered.
    """
    config = artifact.config
    try:
        found = {"metric": config["metric"], "scale": config["scale"]}
    except KeyError as error:
        raise InvalidValueError(f"missing {error.args[0]!r}") from error
    for name in NESTED:
        found[name] = config.get(name, {})
        if not isinstance(found[name], dict):
            raise InvalidTypeError(f"expected {name} to be an object, got {found[name]!r}")
    if config.get("shapes"):
        found["shapes"] = _shapes(config["shapes"])
    found["neighbour_medians"] = _neighbour_distances(config)
    if not folder.is_bound(config):
        if found["certificates"]:
            logger.warning(
                "%s was written by version 0.2, without a digest of its privacy levels; "
                "'calibrated' computes them anew. Saving the space again stores them with a digest",
                artifact.folder,
            )
        found |= {"certificates": {}, "figures": {}, "neighbour_medians": {}}
    found["stored_sha256"] = {"vocabulary": config["vocabulary_sha256"]}
    # float16 is held as float32, whose digest is another one.
    if config["dtype"] != "float16":
        found["stored_sha256"]["vectors"] = config["vectors_sha256"]
    return found


def _shapes(stored: Any) -> tuple[str, ...]:
    if not isinstance(stored, list) or not all(isinstance(shape, str) for shape in stored):
        raise InvalidTypeError(f"expected shapes to be a list of words, got {stored!r}")
    return tuple(stored)


def _neighbour_distances(config: dict[str, Any]) -> dict[int, float]:
    stored = config.get("neighbour_distances", {})
    if not isinstance(stored, dict) or not all(rank.isdecimal() for rank in stored):
        raise InvalidValueError("expected neighbour_distances to map ranks to distances")
    for rank, value in stored.items():
        require_within(0.0, float("inf"), **{f"neighbour_distances[{rank}]": value})
    return {int(rank): float(value) for rank, value in stored.items()}


def mismatch(location: str, expected: str, found: str) -> ArtifactError:
    """Return the error for a folder that no longer holds the space it held when pickled."""
    return ArtifactError(
        f"{location}: expected the space with digest {expected}, found {found}; the folder was "
        "changed after the space was pickled; load the space and pickle it again"
    )

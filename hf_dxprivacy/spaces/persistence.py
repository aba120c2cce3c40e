"""Spaces to and from folders, and by digest between processes."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, cache, folder
from hf_dxprivacy.spaces import indexing, listing
from hf_dxprivacy.spaces.locate import Place

if TYPE_CHECKING:
    from hf_dxprivacy.spaces.space import EmbeddingSpace

# What a space is read from, and all that saving one may write.
READ = (folder.CONFIG, folder.VOCABULARY, folder.VECTORS)
FILES = (*READ, indexing.FILE, listing.FILE, "README.md", "privacy.png")

NESTED = ("provenance", "certificates", "figures")

# The spaces of this process by identity, so that a worker loads each one once; a forked child
# inherits its parent's and so the very same memory. The last few that were unpickled are kept
# alive, since a worker receives the same one again with every task.
_known: weakref.WeakValueDictionary[str, EmbeddingSpace] = weakref.WeakValueDictionary()
_recent: deque[EmbeddingSpace] = deque(maxlen=4)


@dataclass(frozen=True)
class Extras:
    """What a space has beside its vectors, or should be loaded with.

    Attributes:
        index: Kind of its index; None for no index.
        lists: Whether with lists of neighbours.
    """

    index: str | None = None
    lists: bool = False

    @classmethod
    def of(cls, space: EmbeddingSpace) -> Extras:
        """Tell what a space has."""
        kind = None if space.index is None else space.index.kind
        return cls(kind, space.neighbour_lists is not None)

    @property
    def files(self) -> tuple[str, ...]:
        """What a space is read from that has them."""
        wanted = {indexing.FILE: self.index is not None, listing.FILE: self.lists}
        return (*READ, *(name for name, is_wanted in wanted.items() if is_wanted))

    def load(
        self, space: EmbeddingSpace, config: dict[str, Any], place: Place, access: HubAccess
    ) -> dict[str, Any]:
        """Return them, by the names of the attributes of a space.

        Args:
            space: The space.
            config: What ``config.json`` says.
            place: Where the space was loaded from.
            access: How to reach the Hub.

        Raises:
            ArtifactError: If one is missing, damaged or of another space.
            HubError: If the Hub refuses it or can not be reached.
        """
        found: dict[str, Any] = {}
        if self.index is not None:
            found["index"] = indexing.load(space, self.index, config, place, access)
        if self.lists:
            found["neighbour_lists"] = listing.load(config, len(space), space.digest, place, access)
        return found


def remember(space: EmbeddingSpace, keep: bool = False) -> None:
    """Make a space known under its identity, and with `keep` hold on to it for a while."""
    _known[identity(space)] = space
    if keep and not any(kept is space for kept in _recent):
        _recent.append(space)


def recall(identity: str) -> EmbeddingSpace | None:
    """Return the space of this identity if this process has it."""
    return _known.get(identity)


def identity(space: EmbeddingSpace) -> str:
    """Return the digests of a space, of its index and of its lists: of all that must come back."""
    extras = (space.index, space.neighbour_lists)
    return "-".join([space.digest, *(extra.sha256 for extra in extras if extra is not None)])


def write(space: EmbeddingSpace, directory: Path, neighbour_distances: dict[int, float]) -> None:
    """Write a space into a folder; what an earlier one had beside does not stay behind."""
    config: dict[str, Any] = {
        "metric": space.metric,
        "scale": space.scale,
        "provenance": space.provenance,
        "neighbour_distances": {str(k): value for k, value in neighbour_distances.items()},
        "certificates": space.certificates,
        "figures": space.figures,
    }
    files = {}
    if space.index is not None:
        config["index"] = indexing.entry(space.index, space.vectors_sha256)
        files[indexing.FILE] = space.index.content.data
    if space.neighbour_lists is not None:
        config[listing.ENTRY] = listing.entry(space.neighbour_lists, space.digest)
        files[listing.FILE] = space.neighbour_lists.content.data
    folder.write_artifact(
        directory, vectors=space.vectors, words=space.words, config=config, files=files
    )
    for name in {indexing.FILE, listing.FILE} - set(files):
        (directory / name).unlink(missing_ok=True)


def stash(space: EmbeddingSpace, neighbour_distances: dict[int, float]) -> Path:
    """Save an in-memory space in the user's cache, where other processes find it by its identity.

    Written into a folder of its own and renamed, so that processes may do so at the same time.

    Returns:
        The folder, the same for the same identity.
    """
    shelf = cache.cache_dir().absolute() / "spaces"
    final = shelf / identity(space)
    if (final / folder.CONFIG).is_file():
        return final
    shelf.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".") as beside:
        written = Path(beside) / "space"
        write(space, written, neighbour_distances)
        try:
            written.rename(final)
        except OSError:
            if not (final / folder.CONFIG).is_file():
                # What is there is no artifact, for instance the remains of an interrupted clean-up.
                shutil.rmtree(final, ignore_errors=True)
                written.rename(final)
    return final


def fields(config: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a config that describes a space, by the names of its attributes.

    Raises:
        InvalidValueError: If an entry is missing or of the wrong kind.
    """
    try:
        metric, scale = config["metric"], config["scale"]
        nested = {name: config.get(name, {}) for name in NESTED}
    except KeyError as error:
        raise InvalidValueError(f"missing {error.args[0]!r}") from error
    for name, value in nested.items():
        if not isinstance(value, dict):
            raise InvalidTypeError(f"expected {name} to be an object, got {value!r}")
    return {"metric": metric, "scale": scale, **nested}


def known_results(config: dict[str, Any]) -> dict[str, Any]:
    """Return what a config saves a space from computing, by the names of its private attributes.

    Raises:
        InvalidValueError: If the neighbour distances are not numbers by rank.
    """
    stored = config.get("neighbour_distances", {})
    if not isinstance(stored, dict) or not all(rank.isdecimal() for rank in stored):
        raise InvalidValueError("expected neighbour_distances to map ranks to distances")
    for rank, value in stored.items():
        _validate.within(0.0, float("inf"), **{f"neighbour_distances[{rank}]": value})
    known: dict[str, Any] = {
        "_neighbours": {int(rank): float(value) for rank, value in stored.items()},
        "_vocabulary_sha256": config["vocabulary_sha256"],
    }
    # float16 is held as float32, whose digest is another one.
    if config["dtype"] != "float16":
        known["vectors_sha256"] = config["vectors_sha256"]
    return known


def mismatch(location: str, expected: str, found: str) -> ArtifactError:
    """Return the error for a folder that no longer holds the space it held when pickled."""
    return ArtifactError(
        f"{location}: expected the space with digest {expected}, found {found}; the folder was "
        "changed after the space was pickled; load the space and pickle it again"
    )

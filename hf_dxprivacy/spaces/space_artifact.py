"""Embedding spaces as artifacts in folders, and shared between processes by digest."""

import logging
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError, require_within
from hf_dxprivacy.hub import HubCommit, artifact, cache_dir, tensors
from hf_dxprivacy.hub.download import ArtifactSource, resolve
from hf_dxprivacy.spaces.stored_space import BOUNDS, INDEX, SIDECARS, TREE, StoredSpace

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=StoredSpace)

# Files that every space is read from, and all that saving one may write.
READ = (artifact.CONFIG, artifact.VOCABULARY, artifact.VECTORS)
FILES = (*READ, *(part.file for part in SIDECARS), artifact.README, artifact.PICTURE)

# The spaces of this process by identity, so that a worker loads each one once; a forked child
# inherits its parent's and so the very same memory. The last few that were unpickled are kept
# alive, since a worker receives the same one again with every task.
_known: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_recent: deque[StoredSpace] = deque(maxlen=4)


def identity(space: StoredSpace) -> str:
    """Return the digests of a space and of its parts: of all that must come back."""
    parts = [sidecar.of(space) for sidecar in SIDECARS]
    return "-".join([space.digest] + [part.sha256 for part in parts if part is not None])


def load(make: type[S], source: ArtifactSource, index: str | None, neighbour_lists: bool) -> S:
    """Load a space, with its tree if it has one, and make it known under its identity.

    Args:
        make: The class.
        source: Where it is.
        index: Kind of the index to load too.
        neighbour_lists: Whether to load the stored bounds of distances too.

    Raises:
        ArtifactError: If a file is missing, damaged or of another space.
        HubError: If the Hub refuses a file or cannot be reached.
    """
    path = source.folder / artifact.CONFIG
    with source.errors_named():
        stored = artifact.read_artifact(source.folder)
    config = stored.config
    try:
        arguments, remembered = _described(config, source)
        space = make(stored.words, stored.vectors, **arguments)
    except (InvalidValueError, InvalidTypeError) as error:
        raise ArtifactError(f"{path}: {error}") from error
    tensors.release(stored.vectors)
    for name, values in remembered.items():
        getattr(space.cache, name).update(values)

    asked = {
        TREE: True if config.get(TREE.entry) is not None else None,
        INDEX: index,
        BOUNDS: True if neighbour_lists else None,
    }
    parts = {
        part.entry: part.read(source, config, space, kind)
        for part, kind in asked.items()
        if kind is not None
    }
    space = space._with(**parts)
    _known[identity(space)] = space
    return space


def stored_parts(folder: Path) -> dict[str, Any]:
    """Return the arguments of `EmbeddingSpace.from_pretrained` that load all that a folder holds.

    Raises:
        ArtifactError: If the folder holds no artifact, or one of which the index is not described.
    """
    config, kind = artifact.read_config(folder), None
    if config.get(INDEX.entry) is not None:
        kind = INDEX.described(config, folder / artifact.CONFIG, None)["kind"]
    return {"index": kind, "neighbour_lists": config.get(BOUNDS.entry) is not None}


def reference(space: StoredSpace) -> tuple[str, HubCommit | None, str, str | None, bool]:
    """Return the arguments of `restore`; a space in memory is saved in the user's cache first."""
    _known[identity(space)] = space
    location = space.location or str(cache_space(space))
    kind = None if space.index is None else space.index.kind
    return location, space.commit, identity(space), kind, space.neighbour_lists is not None


def restore(
    make: type[S],
    location: str,
    commit: HubCommit | None,
    wanted: str,
    index: str | None,
    neighbour_lists: bool,
) -> S:
    """Return a pickled space: the one that this process has, or else loaded, perhaps elsewhere.

    Args:
        make: The class.
        location: The attribute of the space that was pickled.
        commit: The attribute of that space.
        wanted: Its `identity`.
        index: Kind of its index.
        neighbour_lists: Whether it has stored bounds.

    Raises:
        ArtifactError: If there is another space now, or a file is damaged.
    """
    space: S | None = _known.get(wanted)
    if space is None:
        if commit is None:
            source = resolve(location, READ)
        elif all((Path(location) / name).is_file() for name in READ):
            source = ArtifactSource(Path(location), location, commit)
        else:
            source = resolve(commit.repo_id, READ, commit.sha)
        space = load(make, source, index, neighbour_lists)
        if (found := identity(space)) != wanted:
            raise ArtifactError(
                f"{location}: expected the space with digest {wanted}, found {found}; the folder "
                "was changed after the space was pickled; load the space and pickle it again"
            )
    if not any(kept is space for kept in _recent):
        _recent.append(space)
    return space


def write(space: StoredSpace, directory: Path) -> None:
    """Write a space into a folder; optional parts of an earlier one do not stay behind."""
    # Late: loading does not write.
    from hf_dxprivacy.hub import write_artifact

    entries, files = written_parts(space)
    config: dict[str, Any] = {
        "metric": space.metric,
        "scale": space.scale,
        "provenance": space.provenance,
        "neighbour_distances": {str(k): d for k, d in space.cache.neighbour_distances.items()},
        "certificates": space.certificates,
        "figures": space.figures,
        **({"shapes": list(space.shapes)} if space.shapes else {}),
        **entries,
    }
    write_artifact(directory, vectors=space.vectors, words=space.words, config=config, files=files)
    for part in SIDECARS:
        if part.file not in files:
            (directory / part.file).unlink(missing_ok=True)


def written_parts(
    space: StoredSpace,
) -> tuple[dict[str, Any], dict[str, Iterable[bytes | memoryview]]]:
    """Return the entries in ``config.json`` of the parts of a space, and their files in pieces."""
    found = {part: held for part in SIDECARS if (held := part.of(space)) is not None}
    entries = {part.entry: part.entry_for(space, held) for part, held in found.items()}
    return entries, {part.file: held.pieces for part, held in found.items()}


def cache_space(space: StoredSpace) -> Path:
    """Save an in-memory space in the user's cache, where other processes find it by its identity.

    Written into a folder of its own and renamed, so that processes may do so at the same time.

    Returns:
        The folder, the same for the same identity.
    """
    shelf = cache_dir().absolute() / "spaces"
    final = shelf / identity(space)
    if (final / artifact.CONFIG).is_file():
        return final
    shelf.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".") as beside:
        written = Path(beside) / "space"
        write(space, written)
        try:
            written.rename(final)
        except OSError:
            if not (final / artifact.CONFIG).is_file():
                # What is there is no artifact, for instance the remains of an interrupted clean-up.
                shutil.rmtree(final, ignore_errors=True)
                written.rename(final)
    return final


def refer(space: StoredSpace) -> dict[str, Any]:
    """Return where a space is found again, and its digest, which has to be the same then.

    Returns:
        "name" of a built-in space, of a repository on the Hub, or path of a local folder;
        "commit", None but for a repository; "digest".

    Raises:
        InvalidValueError: If it is in memory only.
    """
    if space.commit is not None:
        name, commit = space.commit.repo_id, space.commit.sha
        return {"name": name, "commit": commit, "digest": space.digest}
    if space.location is None:
        raise InvalidValueError(
            "the space is in memory only, so nothing can refer to it; save it with "
            "space.save_pretrained or space.push_to_hub, load it from there with "
            "EmbeddingSpace.from_pretrained, and make the privatizer over that"
        )
    return {"name": space.location, "commit": None, "digest": space.digest}


def require_digest(reference: Mapping[str, Any], digest: str) -> None:
    """Require what was loaded to be what is referred to.

    Raises:
        ArtifactError: If it has changed.
    """
    if digest != reference["digest"]:
        raise ArtifactError(
            f"the space {reference['name']!r} has the digest {digest}, but the privatizer was "
            f"saved with {reference['digest']}: the space was changed since; its ε would be one of "
            "another metric, so make a new privatizer"
        )


def _described(
    config: dict[str, Any], source: ArtifactSource
) -> tuple[dict[str, Any], dict[str, dict[Any, Any]]]:
    """Return the constructor arguments of a space that a config gives, and values of its cache.

    Measurements that no digest protects from damage are left out: a level that lost a digit states
    a guarantee that does not hold, and only computing it anew would show it. So the first use does.
    """
    if missing := [name for name in ("metric", "scale") if name not in config]:
        raise InvalidValueError(f"missing {missing[0]!r}")
    nested = {name: config.get(name, {}) for name in ("provenance", "certificates", "figures")}
    for name, value in nested.items():
        if not isinstance(value, dict):
            raise InvalidTypeError(f"expected {name} to be an object, got {value!r}")
    shapes = config.get("shapes") or []
    if not isinstance(shapes, list) or not {*map(type, shapes)} <= {str}:
        raise InvalidTypeError(f"expected shapes to be a list of words, got {shapes!r}")
    medians = config.get("neighbour_distances", {})
    if not isinstance(medians, dict) or not all(map(str.isdecimal, medians)):
        raise InvalidValueError("expected neighbour_distances to map ranks to distances")
    require_within(
        0.0,
        float("inf"),
        **{f"neighbour_distances[{rank}]": value for rank, value in medians.items()},
    )
    remembered = {
        "certificates": nested.pop("certificates"),
        "neighbour_distances": {int(rank): float(value) for rank, value in medians.items()},
    }
    if not artifact.is_bound(config):
        if remembered["certificates"]:
            logger.warning(
                "%s was written by version 0.2, without a digest of its privacy levels; "
                "'calibrated' computes them anew. Saving the space again stores them with a digest",
                source.folder,
            )
        remembered, nested["figures"] = {}, {}
    arguments = {
        "metric": config["metric"],
        "scale": config["scale"],
        "shapes": tuple(shapes),
        "location": source.location,
        "commit": source.commit,
        "stored_sha256": {"vocabulary": config["vocabulary_sha256"]},
        **nested,
    }
    # float16 is held as float32, whose digest is another one.
    if config["dtype"] != "float16":
        arguments["stored_sha256"]["vectors"] = config["vectors_sha256"]
    return arguments, remembered

"""From a name, a folder or a repository to local files, all of them of one commit."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import (
    ArtifactError,
    HubError,
    InvalidValueError,
    did_you_mean,
    nearest_path,
)
from hf_dxprivacy.hub.artifact import CONFIG, ENCODER

BUILTIN = Path(__file__).parents[1] / "builtin"


@dataclass(frozen=True)
class HubCommit:
    """One commit of one repository, to which a branch or a tag was resolved.

    Attributes:
        repo_id: "namespace/name".
        sha: 40 hexadecimal digits.
    """

    repo_id: str
    sha: str

    def __str__(self) -> str:
        return f"{self.repo_id}@{self.sha}"


@dataclass(frozen=True)
class HubOptions:
    """Options of a download; the arguments have the names and meanings of `huggingface_hub`.

    Attributes:
        cache_dir: Cache folder; ``$HF_HUB_CACHE`` by default.
        token: A token, True for the stored one, False for none; by default the stored one.
        local_files_only: Use the cache and never the network.
        force_download: Fetch again what the cache has.
    """

    cache_dir: str | Path | None = None
    token: str | bool | None = field(default=None, repr=False)
    local_files_only: bool = False
    force_download: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # A token is no part of a pickle, nor of the fingerprint that `datasets` makes of one.
        return HubOptions, (self.cache_dir, None, self.local_files_only)


@dataclass(frozen=True)
class ArtifactSource:
    """The place that files are read from.

    Attributes:
        folder: A local folder.
        location: Name or path to find it by again: of a built-in space, or of the folder.
        commit: The commit on the Hub that the folder is a copy of.
        options: How to reach the Hub.
    """

    folder: Path
    location: str
    commit: HubCommit | None = None
    options: HubOptions = HubOptions()

    def file(self, name: str) -> Path:
        """Return the path of an optional file, fetched only now.

        Raises:
            HubError: If the Hub refuses it or cannot be reached.
        """
        path = self.folder / name
        if self.commit is not None and (self.options.force_download or not path.is_file()):
            return fetch(self.commit.repo_id, (name,), self.commit.sha, self.options)[0] / name
        return path

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Add the commit to an `ArtifactError`, and how to fetch the file again."""
        try:
            yield
        except ArtifactError as error:
            if self.commit is None:
                raise
            raise ArtifactError(
                f"{self.commit}: {error}; if the repository has the right file, "
                "force_download=True fetches it again"
            ) from error


def resolve(
    name_or_path: str | Path,
    files: Sequence[str],
    revision: str | None = None,
    options: HubOptions = HubOptions(),
    *,
    what: str = "a space",
    ships: bool = True,
) -> ArtifactSource:
    """Resolve a name, a path or a repository to a folder that holds its files.

    A string without a path separator is a built-in space if there is one of that name; write
    ``"./name"`` for a local folder of the same name.

    Args:
        name_or_path: Name of a built-in space, a local folder, or "namespace/name" on the Hub.
        files: Names of files to fetch from the Hub, all of one commit.
        revision: Branch, tag or commit on the Hub.
        options: How to reach the Hub.
        what: What is looked for, in messages.
        ships: Whether built-in names count.

    Raises:
        InvalidValueError: If it is none of these, or a revision of a local folder is asked for.
        HubError: If the Hub refuses it or cannot be reached.
    """
    text = str(name_or_path)
    is_string = isinstance(name_or_path, str)
    built_in = ships and is_string and is_builtin(text)
    if built_in or (text and Path(text).is_dir()):
        if revision is not None:
            raise InvalidValueError(
                f"revision={revision!r} is for repositories on the Hub, and {text!r} is local"
            )
        if built_in:
            return ArtifactSource(BUILTIN / text, text)
        from hf_dxprivacy.hub.atomic import current_folder

        return ArtifactSource(current_folder(text), str(Path(text).resolve()))
    namespace, _, name = text.partition("/")
    if is_string and namespace and name and "/" not in name and not text.startswith((".", "~")):
        try:
            folder, commit = fetch(text, files, revision, options)
        except HubError as error:
            if near := nearest_path(text):
                raise type(error)(f"{error}; nor is there a folder {text!r} here{near}") from error
            raise
        return ArtifactSource(folder, str(folder), commit, options)
    names = builtin_names() * ("space" in what) + builtin_pools() * ("pool" in what)
    near = did_you_mean(text.replace("_", "-"), names) if ships else ""
    hint = (near or nearest_path(text))[2:] or "check the spelling or the path"
    if Path(text).is_file():
        hint = f"that is a file, and {what} is a folder of files"
    known = ", ".join(map(repr, names)) or "none installed"
    kind = what.removeprefix("a ")
    shipped = f"the name of a built-in {kind} ({known}), " if ships else ""
    raise InvalidValueError(
        f"expected {shipped}a local folder that holds {what}, or a repository 'namespace/name' "
        f"on the Hub, got {text!r}, which is none of them; {hint}"
    )


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in spaces, sorted."""
    shipped = (path.parent.name for path in BUILTIN.glob(f"*/{CONFIG}"))
    return tuple(sorted({*shipped} - {*builtin_pools()}))


def builtin_pools() -> tuple[str, ...]:
    """Return the names of the built-in pools of sentences, sorted."""
    return tuple(sorted(path.parent.name for path in BUILTIN.glob(f"*/{ENCODER}")))


def is_builtin(name: str) -> bool:
    """Whether a space or a pool of this name ships with the package."""
    return name in [path.parent.name for path in BUILTIN.glob(f"*/{CONFIG}")]


def fetch(
    repo_id: str,
    files: Sequence[str],
    revision: str | None = None,
    options: HubOptions = HubOptions(),
) -> tuple[Path, HubCommit]:
    """Fetch files of a repository, all of them from one commit.

    Only the files that are named are ever asked for. The revision is resolved once, with the first
    file; the others are read from the commit that was found, which costs no request once they are
    cached. ``HF_ENDPOINT``, ``HF_HUB_OFFLINE`` and the other variables of `huggingface_hub` hold.

    Args:
        repo_id: "namespace/name" of a model repository.
        files: Paths of files in it, at least one.
        revision: Branch, tag or commit; the main branch by default.
        options: How to reach the Hub.

    Returns:
        The folder that holds the files, and the commit.

    Raises:
        HubFileNotFoundError: If the repository lacks one of the files.
        HubError: If the Hub refuses it, or cannot be reached and the cache lacks a file.
        InvalidValueError: If the name cannot be one of a repository, or the options contradict
            each other.
    """
    # Late, because the client takes a while to load and built-in spaces need none.
    from hf_dxprivacy.hub.client import fetch_files

    folder = fetch_files(repo_id, files, revision, **asdict(options))
    return folder, HubCommit(repo_id, folder.name)

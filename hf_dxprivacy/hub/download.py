"""From a name, a folder or a repository to local files, all of them of one commit.

The errors of `huggingface_hub` and of the network become `HubError` with a remedy.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import (
    ArtifactError,
    DxPrivacyError,
    HubError,
    HubFileNotFoundError,
    InvalidValueError,
)
from hf_dxprivacy.hub.artifact import CONFIG, LIBRARY_NAME
from hf_dxprivacy.hub.atomic import current_folder

T = TypeVar("T")

BUILTIN = Path(__file__).parents[1] / "builtin"

_OFFLINE = "HF_HUB_OFFLINE is set, which forbids to use the network; unset it"

_BY_STATUS = {
    401: "the token is not valid; run `hf auth login` or pass token=",
    403: "the token may not do this; use one with that right (`hf auth login`, or token=)",
}


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
    token: str | bool | None = None
    local_files_only: bool = False
    force_download: bool = False


@dataclass(frozen=True)
class ArtifactSource:
    """The place that files are read from.

    Attributes:
        folder: A local folder.
        location: Name or path to find it by again: of a built-in space, or of the folder.
        commit: The commit on the Hub that the folder is a copy of.
    """

    folder: Path
    location: str
    commit: HubCommit | None = None

    def file(self, name: str, options: HubOptions) -> Path:
        """Return the path of an optional file, fetched only now.

        Args:
            name: Its name.
            options: How to reach the Hub.

        Raises:
            HubError: If the Hub refuses it or cannot be reached.
        """
        path = self.folder / name
        if self.commit is not None and (options.force_download or not path.is_file()):
            return fetch(self.commit.repo_id, (name,), self.commit.sha, options)[0] / name
        return path

    def sidecar(self, name: str, options: HubOptions, remedy: str, read: Callable[[Path], T]) -> T:
        """Read an optional file.

        Args:
            name: Its name.
            options: How to reach the Hub.
            remedy: Ends the message of an error.
            read: Reads the file of a path.

        Raises:
            ArtifactError: If it is missing or damaged.
            HubError: If the Hub refuses it or cannot be reached.
        """
        try:
            path = self.file(name, options)
            with self.errors_named():
                return read(path)
        except (ArtifactError, HubFileNotFoundError) as error:
            raise ArtifactError(f"{error}; {remedy}") from error

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Add the commit to the error of a damaged file, and how to fetch it again.

        Raises:
            ArtifactError: In the place of one that is raised inside.
        """
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
    options: HubOptions | None = None,
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
    names = builtin_names() if ships and isinstance(name_or_path, str) else ()
    if text in names or (text and Path(text).is_dir()):
        if revision is not None:
            raise InvalidValueError(
                f"revision={revision!r} is for repositories on the Hub, and {text!r} is local"
            )
        if text in names:
            return ArtifactSource(builtin_folder(text), text)
        return ArtifactSource(current_folder(text), str(Path(text).resolve()))
    if isinstance(name_or_path, str) and may_be_repository(text):
        found, commit = fetch(text, files, revision, options)
        return ArtifactSource(found, str(found), commit)
    known = ", ".join(map(repr, builtin_names())) or "none installed"
    near = get_close_matches(text.lower().replace("_", "-"), names, 1)
    hint = f"did you mean {near[0]!r}?" if near else "check the spelling or the path"
    built_in = f"the name of a built-in space ({known}), " if ships else ""
    raise InvalidValueError(
        f"expected {built_in}a local folder that holds {what}, or a repository 'namespace/name' "
        f"on the Hub, got {text!r}, which is none of them; {hint}"
    )


def resolve_again(location: str, commit: HubCommit | None, files: Sequence[str]) -> ArtifactSource:
    """Find a source that was found before, perhaps on another machine.

    Args:
        location: The attribute of that source.
        commit: The attribute of that source.
        files: The files that are needed.
    """
    if commit is None:
        return resolve(location, files)
    if all((Path(location) / name).is_file() for name in files):
        return ArtifactSource(Path(location), location, commit)
    return resolve(commit.repo_id, files, commit.sha)


def may_be_repository(text: str) -> bool:
    """Tell whether a string has the form "namespace/name", so that it is looked up on the Hub."""
    namespace, _, name = text.partition("/")
    return bool(namespace and name) and "/" not in name and not text.startswith((".", "~"))


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in spaces, sorted."""
    return tuple(sorted(path.parent.name for path in BUILTIN.glob(f"*/{CONFIG}")))


def builtin_folder(name: str) -> Path:
    """Return the folder of a built-in space."""
    return BUILTIN / name


def fetch(
    repo_id: str,
    files: Sequence[str],
    revision: str | None = None,
    options: HubOptions | None = None,
) -> tuple[Path, HubCommit]:
    """Fetch files of a repository, all of them from one commit.

    Only the files that are named are ever asked for. The revision is resolved once, with the first
    file; the others are read from the commit that was found, which costs no request once they are
    cached. ``HF_ENDPOINT``, ``HF_HUB_OFFLINE`` and the other variables of `huggingface_hub` hold.

    Args:
        repo_id: "namespace/name" of a model repository.
        files: Names of files at its root; at least one.
        revision: Branch, tag or commit; the main branch by default.
        options: Token, cache and the like.

    Returns:
        The folder that holds the files, and the commit.

    Raises:
        HubFileNotFoundError: If the repository lacks one of the files.
        HubError: If the repository or revision does not exist or is not open to this token, or if
            the Hub cannot be reached and the cache lacks a file.
        InvalidValueError: If the name cannot be one of a repository, or the options contradict
            each other.
    """
    options = options or HubOptions()
    if options.force_download and options.local_files_only:
        raise InvalidValueError(
            "force_download=True fetches again and local_files_only=True forbids it; leave one out"
        )
    first, *others = files
    paths = [_download(repo_id, first, revision, options)]
    commit = HubCommit(repo_id, paths[0].parent.name)
    paths += [_download(repo_id, name, commit.sha, options) for name in others]
    return paths[0].parent, commit


def _download(repo_id: str, name: str, revision: str | None, options: HubOptions) -> Path:
    # Late, because the client takes a while to load and built-in spaces need none.
    from huggingface_hub import hf_hub_download

    with hub_errors(repo_id, f"{name!r} of revision {revision or 'main'!r}"):
        return Path(
            hf_hub_download(
                repo_id,
                name,
                revision=revision,
                cache_dir=options.cache_dir,
                token=options.token,
                local_files_only=options.local_files_only,
                force_download=options.force_download,
                library_name=LIBRARY_NAME,
                library_version=__version__,
            )
        )


@contextmanager
def hub_errors(repo_id: str, what: str, *, pushes: bool = False) -> Iterator[None]:
    """Translate the errors of the Hub's client.

    Args:
        repo_id: The repository.
        what: What is read or written there, for the message.
        pushes: Whether a model card is sent, which the client may refuse by a ValueError.

    Raises:
        HubFileNotFoundError: If the repository lacks the file.
        HubError: For anything else that the Hub refuses or the network does not bring.
        OSError: As it is, if it is this machine's, such as a full disk.
        InvalidValueError: If the name cannot be one of a repository, or the Hub refuses the card.
    """
    try:
        yield
    except DxPrivacyError:
        raise
    except Exception as error:
        ours = _refused(error, f"{repo_id}, {what}", pushes)
        ours = ours or _not_transferred(error, f"{repo_id}, {what}")
        if ours is None:
            raise
        raise ours from error


def _refused(error: Exception, what: str, pushes: bool) -> DxPrivacyError | None:
    """Return the error for something that the Hub, its client or the cache refuses."""
    from huggingface_hub import errors

    if isinstance(error, errors.HFValidationError):
        return InvalidValueError(f"{what}: expected a repository 'namespace/name': {error}")
    if isinstance(error, errors.LocalEntryNotFoundError):
        return HubError(f"{what}: not in the cache, and {_why_not_fetched(error)}")
    if isinstance(error, errors.EntryNotFoundError):
        return HubFileNotFoundError(f"{what}: there is no such file")
    if isinstance(error, errors.OfflineModeIsEnabled):
        return HubError(f"{what}: {_OFFLINE}")
    if isinstance(error, errors.HfHubHTTPError):
        return HubError(f"{what}: {_refusal(error)}")
    if isinstance(error, ValueError):
        if pushes:
            return InvalidValueError(f"{what}: the Hub refuses the model card: {error}")
        return HubError(
            f"{what}: the client refuses the answer of the Hub ({error}); check HF_ENDPOINT, which "
            "names the server that is asked and trusted"
        )
    return None


def _not_transferred(error: Exception, what: str) -> HubError | None:
    """Return the error for a broken connection; None for a fault of this machine."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    # The root of all errors of the client's HTTP library, whichever one it uses.
    if isinstance(error, HfHubHTTPError.__bases__[0]):
        return HubError(
            f"{what}: {constants.ENDPOINT} cannot be reached, or the connection broke "
            f"({type(error).__name__}); check it and try again"
        )
    # The client wraps whatever ends an upload, and has no class for a file that is too short.
    wrapped = isinstance(error, RuntimeError) or (isinstance(error, OSError) and not error.errno)
    return HubError(f"{what}: {error}; check the connection and try again") if wrapped else None


def _why_not_fetched(error: Exception) -> str:
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error.__cause__, OfflineModeIsEnabled):
        return _OFFLINE
    if isinstance(error.__cause__, HfHubHTTPError):
        return _refusal(error.__cause__)
    if error.__cause__ is None:
        return "local_files_only=True forbids to fetch it"
    return f"{constants.ENDPOINT} cannot be reached; check the connection and try again"


def _refusal(error: Exception) -> str:
    """Say why the Hub refuses a request, and the remedy."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return "its owner grants access one by one; ask for it on its page, then log in"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "no such repository, or a private one that the token does not open; check the name, "
            "run `hf auth login` or pass token="
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return "no such branch, tag or commit"
    assert isinstance(error, errors.HfHubHTTPError)
    status = error.response.status_code
    said = f" ({error.server_message})" if error.server_message else ""
    return _BY_STATUS.get(status, f"the Hub answered {status}; try again later") + said

"""Files of repositories by the client of the Hub, whose errors become `HubError` with a remedy."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import (
    constants,
    errors,
    get_session,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import DxPrivacyError, HubError, HubFileNotFoundError, InvalidValueError
from hf_dxprivacy.hub.artifact import LIBRARY_NAME

_BY_STATUS = {
    401: "the token is not valid; run `hf auth login` or pass token=",
    403: "the token may not do this; use one with that right (`hf auth login`, or token=)",
}


def fetch_files(
    repo_id: str,
    files: Sequence[str],
    revision: str | None,
    *,
    cache_dir: str | Path | None,
    token: str | bool | None,
    local_files_only: bool,
    force_download: bool,
) -> Path:
    """Return the folder that holds files of one commit, and is named like it; see `fetch`."""
    if force_download and local_files_only:
        raise InvalidValueError(
            "force_download=True fetches again and local_files_only=True forbids it; leave one out"
        )
    folder = Path()
    with hub_errors(repo_id, repr(files[0])):
        cached = try_to_load_from_cache(repo_id, files[0], cache_dir, revision)
        address = hf_hub_url(repo_id, files[0], revision=revision)
    if not isinstance(cached, str) and not local_files_only and is_unreachable(address):
        raise HubError(f"{repo_id}, {files[0]!r}: not in the cache, and {no_connection()}")
    for name in files:
        with hub_errors(repo_id, f"{name!r} of revision {revision or 'main'!r}"):
            path = hf_hub_download(
                repo_id,
                name,
                revision=revision,
                library_name=LIBRARY_NAME,
                library_version=__version__,
                cache_dir=cache_dir,
                token=token,
                local_files_only=local_files_only,
                force_download=force_download,
            )
        folder = Path(path).parents[name.count("/")]
        revision = folder.name
    return folder


def is_unreachable(address: str) -> bool:
    """Tell whether no connection to the Hub can be made, which its client tries for 23 seconds."""
    try:
        timeout = constants.HF_HUB_ETAG_TIMEOUT
        get_session().head(address, timeout=timeout, follow_redirects=False)
    except Exception as error:  # of the client's HTTP library, whichever one it uses
        return type(error).__name__ in ("ConnectError", "ConnectTimeout")
    return False


def no_connection() -> str:
    """Say that the Hub cannot be reached."""
    return f"{constants.ENDPOINT} cannot be reached; check the connection and try again"


@contextmanager
def hub_errors(repo_id: str, what: str, *, pushes: bool = False) -> Iterator[None]:
    """Translate the errors of the Hub's client, in messages that name the repository and `what`.

    With `pushes`, a card is sent, which the client may refuse by a ValueError.

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
        ours = _translated(error, f"{repo_id}, {what}", pushes)
        if ours is None:
            raise
        raise ours from error


def _translated(error: Exception, what: str, pushes: bool) -> DxPrivacyError | None:
    """Return the error for a refusal or a broken connection; None for a fault of this machine."""
    if isinstance(error, errors.HFValidationError):
        return InvalidValueError(f"{what}: expected a repository 'namespace/name': {error}")
    if isinstance(error, errors.LocalEntryNotFoundError):
        reason = no_connection()
        if error.__cause__ is None:
            reason = "local_files_only=True forbids to fetch it"
        return HubError(f"{what}: not in the cache, and {_refusal(error.__cause__) or reason}")
    if isinstance(error, errors.EntryNotFoundError):
        return HubFileNotFoundError(f"{what}: there is no such file")
    if refusal := _refusal(error):
        return HubError(f"{what}: {refusal}")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # Files of the cache bear the name that the answer gives them.
        error = ValueError("an ETag that is too long for the name of a file")
    if isinstance(error, ValueError) and pushes:
        return InvalidValueError(f"{what}: the Hub refuses the card: {error}")
    if isinstance(error, ValueError):
        return HubError(
            f"{what}: the client refuses the answer of the Hub ({error}); check HF_ENDPOINT, which "
            "names the server that is asked and trusted"
        )
    # The root of all errors of the client's HTTP library, whichever one it uses.
    if isinstance(error, errors.HfHubHTTPError.__bases__[0]):
        return HubError(
            f"{what}: {constants.ENDPOINT} cannot be reached, or the connection broke "
            f"({type(error).__name__}); check it and try again"
        )
    # The client wraps whatever ends an upload, and has no class for a file that is too short.
    wrapped = isinstance(error, RuntimeError) or (isinstance(error, OSError) and not error.errno)
    return HubError(f"{what}: {error}; check the connection and try again") if wrapped else None


def _refusal(error: BaseException | None) -> str | None:
    """Return the reason why the Hub, or HF_HUB_OFFLINE, refuses a request, and the remedy."""
    if isinstance(error, errors.OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set, which forbids to use the network; unset it"
    if isinstance(error, errors.GatedRepoError):
        return "its owner grants access one by one; ask for it on its page, then log in"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "no such repository, or a private one that the token does not open; check the name, "
            "run `hf auth login` or pass token="
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return "no such branch, tag or commit"
    if not isinstance(error, errors.HfHubHTTPError):
        return None
    status = error.response.status_code
    said = f" ({error.server_message})" if error.server_message else ""
    return _BY_STATUS.get(status, f"the Hub answered {status}; try again later") + said

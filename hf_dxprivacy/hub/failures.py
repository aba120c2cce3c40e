"""What the Hub refuses and the network does not bring, said so that a user knows what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from hf_dxprivacy.errors import DxPrivacyError, HubError, HubFileNotFoundError, InvalidValueError

# The root of all errors of the client's HTTP library, whichever one it uses.
_TRANSPORT: type[Exception] = HfHubHTTPError.__bases__[0]

_OFFLINE = "HF_HUB_OFFLINE is set, which forbids to use the network; unset it"

_BY_STATUS = {
    401: "the token is not valid; run `hf auth login` or pass token=",
    403: "the token may not do this; use one with that right (`hf auth login`, or token=)",
}


@contextmanager
def explained(repo_id: str, what: str) -> Iterator[None]:
    """Turn the errors of the Hub's client into ours.

    Args:
        repo_id: The repository.
        what: What is read or written there, for the message.

    Raises:
        HubFileNotFoundError: If the repository lacks the file.
        HubError: For whatever else the Hub refuses or the network does not bring.
        OSError: As it is, if it is this machine's, such as a full disk.
        InvalidValueError: If the name can not be one of a repository, or the Hub refuses the card.
    """
    try:
        yield
    except Exception as error:
        ours = _of_the_hub(error, f"{repo_id}, {what}") or _of_the_way(error, f"{repo_id}, {what}")
        if ours is None:
            raise
        raise ours from error


def _of_the_hub(error: Exception, what: str) -> DxPrivacyError | None:
    """Return the error for something that the Hub, its client or the cache refuses."""
    if isinstance(error, HFValidationError):
        return InvalidValueError(f"{what}: expected a repository 'namespace/name': {error}")
    if isinstance(error, LocalEntryNotFoundError):
        return HubError(f"{what}: not in the cache, and {_why_not_fetched(error)}")
    if isinstance(error, EntryNotFoundError):
        return HubFileNotFoundError(f"{what}: there is no such file")
    if isinstance(error, OfflineModeIsEnabled):
        return HubError(f"{what}: {_OFFLINE}")
    if isinstance(error, HfHubHTTPError):
        return HubError(f"{what}: {_refusal(error)}")
    if isinstance(error, ValueError) and not isinstance(error, DxPrivacyError):
        return InvalidValueError(f"{what}: the Hub refuses the model card: {error}")
    return None


def _of_the_way(error: Exception, what: str) -> HubError | None:
    """Return the error for a network that does not bring it; None for a fault of this machine."""
    if isinstance(error, _TRANSPORT):
        return HubError(
            f"{what}: {constants.ENDPOINT} can not be reached, or the connection broke "
            f"({type(error).__name__}); check it and try again"
        )
    # The client wraps whatever ends an upload, and has no class for a file that is too short.
    wrapped = isinstance(error, RuntimeError) or (isinstance(error, OSError) and not error.errno)
    return HubError(f"{what}: {error}; check the connection and try again") if wrapped else None


def _why_not_fetched(error: LocalEntryNotFoundError) -> str:
    if isinstance(error.__cause__, OfflineModeIsEnabled):
        return _OFFLINE
    if isinstance(error.__cause__, HfHubHTTPError):
        return _refusal(error.__cause__)
    if error.__cause__ is None:
        return "local_files_only=True forbids to fetch it"
    return f"{constants.ENDPOINT} can not be reached; check the connection and try again"


def _refusal(error: HfHubHTTPError) -> str:
    if isinstance(error, GatedRepoError):
        return "its owner grants access one by one; ask for it on its page, then log in"
    if isinstance(error, RepositoryNotFoundError):
        return (
            "no such repository, or a private one that the token does not open; check the name, "
            "run `hf auth login` or pass token="
        )
    if isinstance(error, RevisionNotFoundError):
        return "no such branch, tag or commit"
    status = error.response.status_code
    said = f" ({error.server_message})" if error.server_message else ""
    return _BY_STATUS.get(status, f"the Hub answered {status}; try again later") + said

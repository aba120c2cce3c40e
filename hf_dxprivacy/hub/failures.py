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

from hf_dxprivacy.errors import HubError, HubFileNotFoundError, InvalidValueError

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
        InvalidValueError: If the name can not be one of a repository.
    """
    try:
        yield
    except HFValidationError as error:
        raise InvalidValueError(
            f"{repo_id!r} can not be a repository on the Hub (expected 'namespace/name'): {error}"
        ) from error
    except LocalEntryNotFoundError as error:
        raise HubError(
            f"{repo_id}: {what} is not in the cache, and {_why_not_fetched(error)}"
        ) from error
    except EntryNotFoundError as error:
        raise HubFileNotFoundError(f"{repo_id}: there is no {what}") from error
    except OfflineModeIsEnabled as error:
        raise HubError(f"{repo_id}, {what}: {_OFFLINE}") from error
    except HfHubHTTPError as error:
        raise HubError(f"{repo_id}, {what}: {_refusal(error)}") from error
    except _TRANSPORT as error:
        raise HubError(
            f"{repo_id}, {what}: {constants.ENDPOINT} can not be reached, or the connection broke "
            f"({type(error).__name__}); check it and try again"
        ) from error


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

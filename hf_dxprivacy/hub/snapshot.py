"""Files of one commit of a Hub repository, in the cache that `huggingface_hub` keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub.folder import LIBRARY_NAME


@dataclass(frozen=True)
class HubCommit:
    """One commit of one repository: what a branch or a tag stood for when it was read.

    Attributes:
        repo_id: "namespace/name".
        sha: 40 hexadecimal digits.
    """

    repo_id: str
    sha: str

    def __str__(self) -> str:
        return f"{self.repo_id}@{self.sha}"


@dataclass(frozen=True)
class HubAccess:
    """How files are fetched; the arguments have the names and meanings of `huggingface_hub`.

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


def fetch(
    repo_id: str,
    files: Sequence[str],
    revision: str | None = None,
    access: HubAccess | None = None,
) -> tuple[Path, HubCommit]:
    """Fetch files of a repository, all of them from one commit.

    Only the files that are named are ever asked for. The revision is resolved once, with the first
    file; the others are read from the commit that was found, which costs no request once they are
    cached. ``HF_ENDPOINT``, ``HF_HUB_OFFLINE`` and the other variables of `huggingface_hub` hold.

    Args:
        repo_id: "namespace/name" of a model repository.
        files: Names of files at its root; at least one.
        revision: Branch, tag or commit; the main branch by default.
        access: Token, cache and the like.

    Returns:
        The folder that holds the files, and the commit.

    Raises:
        HubFileNotFoundError: If the repository lacks one of the files.
        HubError: If the repository or revision does not exist or is not open to this token, or if
            the Hub can not be reached and the cache lacks a file.
        InvalidValueError: If the name can not be one of a repository, or the access contradicts
            itself.
    """
    access = access or HubAccess()
    if access.force_download and access.local_files_only:
        raise InvalidValueError(
            "force_download=True fetches again and local_files_only=True forbids it; leave one out"
        )
    first, *others = files
    paths = [_download(repo_id, first, revision, access)]
    commit = HubCommit(repo_id, paths[0].parent.name)
    paths += [_download(repo_id, name, commit.sha, access) for name in others]
    return paths[0].parent, commit


def _download(repo_id: str, name: str, revision: str | None, access: HubAccess) -> Path:
    # Late, because the client takes a while to load and built-in spaces need none.
    from huggingface_hub import hf_hub_download

    from hf_dxprivacy.hub.failures import explained

    with explained(repo_id, f"{name!r} of revision {revision or 'main'!r}"):
        return Path(
            hf_hub_download(
                repo_id,
                name,
                revision=revision,
                cache_dir=access.cache_dir,
                token=access.token,
                local_files_only=access.local_files_only,
                force_download=access.force_download,
                library_name=LIBRARY_NAME,
                library_version=__version__,
            )
        )

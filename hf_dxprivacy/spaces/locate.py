"""From the name that a user gives to the folder that holds the files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, HubCommit, fetch
from hf_dxprivacy.spaces import builtin


@dataclass(frozen=True)
class Place:
    """Where the files of a space are.

    Attributes:
        folder: A local folder.
        location: What to find it by again: the name of a built-in space, or the folder.
        commit: The commit on the Hub that the folder is a copy of.
    """

    folder: Path
    location: str
    commit: HubCommit | None = None

    def file(self, name: str, access: HubAccess) -> Path:
        """Return the path of a file that is not fetched with the others, and is now.

        Args:
            name: Its name.
            access: How to reach the Hub.

        Raises:
            HubError: If the Hub refuses it or can not be reached.
        """
        path = self.folder / name
        if self.commit is not None and (access.force_download or not path.is_file()):
            return fetch(self.commit.repo_id, (name,), self.commit.sha, access)[0] / name
        return path

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of a damaged file that it came from the Hub, and how to fetch it again.

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

    @classmethod
    def again(cls, location: str, commit: HubCommit | None, files: Sequence[str]) -> "Place":
        """Find a place that was found before, perhaps on another machine.

        Args:
            location: The attribute of that place.
            commit: The attribute of that place.
            files: The files that are needed.
        """
        if commit is None:
            return locate(location, files)
        if all((Path(location) / name).is_file() for name in files):
            return cls(Path(location), location, commit)
        return locate(commit.repo_id, files, commit.sha)


def locate(
    name_or_path: str | Path,
    files: Sequence[str],
    revision: str | None = None,
    access: HubAccess | None = None,
) -> Place:
    """Find the folder that a name, a path or a repository stands for.

    A string without a path separator is a built-in space if there is one of that name; write
    ``"./name"`` for a local folder that is called the same.

    Args:
        name_or_path: Name of a built-in space, a local folder, or "namespace/name" on the Hub.
        files: What to fetch from the Hub.
        revision: Branch, tag or commit on the Hub.
        access: How to reach the Hub.

    Raises:
        InvalidValueError: If there is none of them, or a revision of something that has none.
        HubError: If the Hub refuses it or can not be reached.
    """
    text = str(name_or_path)
    built_in = isinstance(name_or_path, str) and text in builtin.builtin_names()
    if built_in or (text and Path(text).is_dir()):
        if revision is not None:
            raise InvalidValueError(
                f"revision={revision!r} is for repositories on the Hub, and {text!r} is local"
            )
        if built_in:
            return Place(builtin.folder(text), text)
        return Place(Path(text), str(Path(text).resolve()))
    if isinstance(name_or_path, str) and may_be_repository(text):
        found, commit = fetch(text, files, revision, access)
        return Place(found, str(found), commit)
    known = ", ".join(repr(name) for name in builtin.builtin_names()) or "none installed"
    raise InvalidValueError(
        f"expected the name of a built-in space ({known}), a local folder that holds one, or a "
        f"repository 'namespace/name' on the Hub, got {text!r}, which is none of them; check the "
        "spelling or the path"
    )


def may_be_repository(text: str) -> bool:
    """Tell whether a string has the form "namespace/name", so that it is looked up on the Hub."""
    namespace, _, name = text.partition("/")
    return bool(namespace and name) and "/" not in name and not text.startswith((".", "~"))

"""Saving into a folder, and pushing to the Hub as one commit."""

import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub.artifact import LIBRARY_NAME

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo


class Publishable(ABC):
    """Base class of what is saved into a folder and pushed to the Hub.

    Attributes:
        repo_type: What a repository of it is: "model" or "dataset".
        published_files: Every file that a save may write. A push removes those of them that are
            in the repository but not in the new state, so that nothing stale remains.
    """

    published_files: ClassVar[tuple[str, ...]]
    repo_type: ClassVar[str] = "model"

    def save_pretrained(
        self,
        directory: str | Path,
        *,
        license: str | None = None,
        push_to_hub: bool = False,
        repo_id: str | None = None,
    ) -> None:
        """Save into a folder, from which `from_pretrained` loads, with a model card.

        A folder that exists holds its old or its new files at every moment, also if this is
        killed; files of other names stay.

        Args:
            directory: Made if missing; the files of an earlier save are replaced.
            license: Licence for the card, as the Hub names it ("mit", "cc-by-4.0", "other", …).
                By default the one that is known, if any.
            push_to_hub: Push it afterwards, as `push_to_hub` does, which has more options.
            repo_id: With `push_to_hub`, the repository; by default named like the folder.

        Raises:
            InvalidValueError: If the Hub knows no such licence.
            HubError: With `push_to_hub`, if the Hub refuses it or cannot be reached.
            OSError: If a file cannot be written.
        """
        # Late here and below: loading neither writes nor needs the client, which takes a while.
        from hf_dxprivacy.hub.atomic import atomic_folder

        if repo_id is not None and not push_to_hub:
            raise InvalidValueError(f"repo_id={repo_id!r} is for push_to_hub=True; add it")
        _check_licence(license)
        if push_to_hub:
            self._check_publishable(license)
        folder = Path(directory)
        name = folder.resolve().name
        with atomic_folder(folder, self.published_files) as written:
            self._save(written)
            self._write_card(written, license=license, name=name)
        if push_to_hub:
            self.push_to_hub(repo_id or name, license=license)

    def write_card(
        self, directory: str | Path, *, license: str | None = None, name: str | None = None
    ) -> None:
        """Make the card anew in a folder that holds what this was loaded from.

        `name` is what the card calls it, by default the name of the folder. The other arguments and
        the errors are those of `save_pretrained`.
        """
        from hf_dxprivacy.hub.atomic import current_folder

        _check_licence(license)
        name = name or Path(directory).resolve().name
        self._write_card(current_folder(directory), license=license, name=name)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        license: str | None = None,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        commit_message: str | None = None,
        create_pr: bool = False,
    ) -> "CommitInfo":
        """Push to a repository on the Hub, as one commit; a push that fails leaves none.

        Args:
            repo_id: "namespace/name", or "name" for one of your own; created if there is none.
            license: Licence for the card, as the Hub names it. Required unless it is known from
                where the object comes from: others may use what you publish only as it says.
            private: Whether a new repository is private; the account's setting by default.
            token: A token that may write, or True for the stored one, which is the default.
            revision: Branch to commit to; created if there is none. The main branch by default.
            commit_message: Says what was changed.
            create_pr: Open a pull request instead of committing.

        Returns:
            The commit; `oid` is what `from_pretrained` takes as ``revision=``.

        Raises:
            InvalidValueError: If there is no licence, or the repository's name is not possible.
            HubError: If the Hub refuses it or cannot be reached.
        """
        from huggingface_hub import HfApi

        from hf_dxprivacy.hub.client import hub_errors

        if not isinstance(repo_id, str):
            raise InvalidTypeError(f"expected repo_id to be a string, got {repo_id!r}")
        self._check_publishable(license)
        api = HfApi(token=token, library_name=LIBRARY_NAME, library_version=__version__)
        kind = self.repo_type
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            self._save(folder)
            with hub_errors(repo_id, "push", pushes=True):
                # The Hub adds the namespace of the token to a name without one.
                made = api.create_repo(repo_id, repo_type=kind, private=private, exist_ok=True)
                repo_id = made.repo_id
                self._write_card(folder, license=license, name=repo_id)
                if revision and not create_pr and not revision.startswith("refs/"):
                    api.create_branch(repo_id, repo_type=kind, branch=revision, exist_ok=True)
                return api.upload_folder(
                    repo_id=repo_id,
                    repo_type=kind,
                    folder_path=folder,
                    revision=revision,
                    commit_message=commit_message or f"Upload {type(self).__name__}",
                    create_pr=create_pr,
                    delete_patterns=[
                        file for file in self.published_files if not (folder / file).exists()
                    ],
                )

    @abstractmethod
    def _save(self, folder: Path) -> None:
        """Save into a folder, all but the card."""

    @abstractmethod
    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        """Write the card; `name` is what it calls this in its example of use."""

    @abstractmethod
    def _check_publishable(self, license: str | None) -> None:
        """Raise if this cannot be published as it is, before anything is written."""


def _check_licence(license: str | None) -> None:
    from hf_dxprivacy.hub.cards import check_licence

    check_licence(license)

"""Privatizers to and from folders and the Hub."""

import logging
from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hf_dxprivacy import cards, settings
from hf_dxprivacy._immutable import Immutable
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantees import PrivacyGuarantee
from hf_dxprivacy.hub import HubAccess, Publishable
from hf_dxprivacy.mechanisms import DEFAULT, required_index
from hf_dxprivacy.settings import Settings
from hf_dxprivacy.spaces import EmbeddingSpace

logger = logging.getLogger(__name__)

P = TypeVar("P", bound="StoredPrivatizer")


class StoredPrivatizer(Immutable, Publishable):
    """The part of a privatizer that saves and loads it."""

    published_files: ClassVar[tuple[str, ...]] = (settings.FILE, cards.README)
    settings_class: ClassVar[type[Settings]] = Settings
    # What may differ between two uses of one stored privatizer.
    per_use: ClassVar[tuple[str, ...]] = (
        *("text_column", "output_column", "seed", "device"),
        *("memoize", "user_column", "key", "budget", "is_split_into_words"),
    )
    is_split_into_words: bool | None

    @property
    @abstractmethod
    def guarantee(self) -> PrivacyGuarantee:
        """What holds for each word, and what it rests on."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """All decisions but the seed.

        Raises:
            InvalidValueError: If the space is in memory only.
        """

    @property
    @abstractmethod
    def space(self) -> EmbeddingSpace:
        """The embedding space."""

    @classmethod
    def from_pretrained(
        cls: type[P],
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        **arguments: Any,
    ) -> P:
        """Make a privatizer over a stored space, or load a stored privatizer.

        Args:
            name_or_path: Name of a built-in space, a local folder, or a repository on the Hub.
            revision: Branch, tag or commit on the Hub; the main branch by default.
            cache_dir: Cache of the Hub's files; ``$HF_HUB_CACHE`` by default.
            token: A token for the Hub, True for the stored one, False for none.
            local_files_only: Use what the cache has, and no network.
            force_download: Fetch again what the cache has.
            **arguments: With a space, as for the class; ``epsilon=`` is required. With a
                privatizer, which has its own ε and logs it: ``text_column``, ``output_column``,
                ``seed``, ``device``, ``memoize``, ``user_column``, ``key``, ``budget``,
                ``is_split_into_words``.

        Raises:
            InvalidValueError: If there is no such space or privatizer, or ε is missing.
            InvalidTypeError: If an argument is not for a stored privatizer.
            HubError: If the Hub refuses it or can not be reached.
            ArtifactError: If a file is missing, altered or of a newer format, or the space that a
                privatizer refers to has changed.
        """
        access = HubAccess(cache_dir, token, local_files_only, force_download)
        # A stored privatizer has its ε; looking for one costs a request that a space need not.
        if "epsilon" not in arguments:
            folder = settings.find(name_or_path, revision, access)
            if folder is not None:
                return cls._load(folder, access, arguments, str(name_or_path))
        elif (Path(name_or_path) / settings.FILE).is_file():
            raise InvalidValueError(
                f"{name_or_path} holds a privatizer, which has its own ε: leave epsilon out, or "
                "load it and make another privatizer over its space"
            )
        index = required_index(arguments.get("mechanism", DEFAULT), arguments)
        space = EmbeddingSpace.from_pretrained(
            name_or_path, revision=revision, index=index, **asdict(access)
        )
        return cls._over(space, arguments)

    @classmethod
    def _over(cls: type[P], space: EmbeddingSpace, arguments: dict[str, Any]) -> P:
        return cls(space, **arguments)  # type: ignore[call-arg]

    @classmethod
    def _load(
        cls: type[P], folder: Path, access: HubAccess, arguments: dict[str, Any], name: str
    ) -> P:
        if other := sorted(set(arguments) - set(cls.per_use)):
            raise InvalidTypeError(
                f"a stored privatizer brings its own settings, got {', '.join(other)}; only "
                f"{', '.join(cls.per_use)} may be given. To change more, load it and make another "
                "privatizer over its space"
            )
        stored = cls.settings_class.read(folder)
        try:
            index = required_index(stored.mechanism, stored.options)
            space = stored.space.load(access, index)
            own = stored.arguments() | cls._parts(stored, folder, access, name)
            privatizer = cls._over(space, own | arguments)
        except (InvalidTypeError, InvalidValueError) as error:
            raise ArtifactError(f"{folder / settings.FILE}: {error}") from error
        logger.warning("loaded a privatizer that is %s", str(privatizer.guarantee).split("\n")[0])
        return privatizer

    @classmethod
    def _parts(cls, stored: Settings, folder: Path, access: HubAccess, name: str) -> dict[str, Any]:
        """Load the arguments that are more than values in the settings."""
        del stored, folder, access, name
        return {}

    @property
    def _own_parts(self) -> dict[str, Any]:
        """The arguments that `_parts` loads."""
        return {}

    @property
    def _not_stored(self) -> tuple[str, ...]:
        """What limits repeated releases and is left out of the files."""
        return ()

    def _save(self, folder: Path) -> None:
        self.settings.write(folder)

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        stored = self.settings
        if self._not_stored:
            logger.warning(
                "not stored: %s; without them, given again to from_pretrained, what is loaded "
                "makes new releases",
                ", ".join(self._not_stored),
            )
        # The card is about what is loaded from here, which has no seed, key or budget.
        arguments = stored.arguments() | {"is_split_into_words": self.is_split_into_words}
        loaded = self._over(self.space, arguments | self._own_parts)
        cards.write_privatizer_card(
            folder, asdict(stored), str(loaded.guarantee), license=license, name=name
        )

    def _check_publishable(self, license: str | None) -> None:
        cards.require_licence(license, {})
        if not self.settings.space.is_public:
            raise InvalidValueError(
                f"the space is in the local folder {self.settings.space.name!r}, where nobody "
                "else can find it; push it with space.push_to_hub, load it from there with "
                "EmbeddingSpace.from_pretrained, and make the privatizer over that"
            )

"""A privatizer in one JSON file: its decisions, and where its space is. Never a seed or a key."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, TypeVar

from hf_dxprivacy.errors import ArtifactError, HubFileNotFoundError, InvalidValueError
from hf_dxprivacy.hub import HubAccess, fetch
from hf_dxprivacy.hub.folder import LIBRARY_NAME, PRIVATIZER
from hf_dxprivacy.hub.records import read_json, to_json, write_whole
from hf_dxprivacy.spaces import EmbeddingSpace, builtin_names
from hf_dxprivacy.spaces.locate import may_be_repository

FORMAT_VERSION = 1
FILE = PRIVATIZER

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class SpaceReference:
    """Where a space is found again, and its digest, which has to be the same then.

    Attributes:
        name: Name of a built-in space, "namespace/name" on the Hub, or path of a local folder.
        commit: For a repository, 40 hexadecimal digits.
        digest: `EmbeddingSpace.digest`.
    """

    name: str
    commit: str | None
    digest: str

    @classmethod
    def to(cls, space: EmbeddingSpace) -> "SpaceReference":
        """Refer to a space.

        Raises:
            InvalidValueError: If it is in memory only.
        """
        if space.commit is not None:
            return cls(space.commit.repo_id, space.commit.sha, space.digest)
        if space.location is None:
            raise InvalidValueError(
                "the space is in memory only, so nothing can refer to it; save it with "
                "space.save_pretrained or space.push_to_hub, load it from there with "
                "EmbeddingSpace.from_pretrained, and make the privatizer over that"
            )
        return cls(space.location, None, space.digest)

    @property
    def is_public(self) -> bool:
        """Whether the space is found from another machine too."""
        return self.commit is not None or self.name in builtin_names()

    def load(self, access: HubAccess, index: str | None) -> EmbeddingSpace:
        """Load the space, with the index of a kind if one is named.

        Raises:
            ArtifactError: If it has changed, or has no such index.
        """
        space = EmbeddingSpace.from_pretrained(
            self.name, revision=self.commit, index=index, **asdict(access)
        )
        if space.digest != self.digest:
            raise ArtifactError(
                f"the space {self.name!r} has the digest {space.digest}, but the privatizer was "
                f"saved with {self.digest}: the space was changed since; its ε would be one of "
                "another metric, so make a new privatizer"
            )
        return space


@dataclass(frozen=True)
class Settings:
    """What decides how a privatizer treats a text.

    Attributes:
        space: The space it works in.
        mechanism: Name of the mechanism.
        epsilon: ε, per unit of the mechanism's metric.
        options: The mechanism's options.
        text_column: Columns that are privatized.
        output_column: Where the results go; None for the text columns themselves.
        stopwords: Words released as they are, sorted.
        oov: What becomes of words out of vocabulary.
        case: "lower" or "preserve".
    """

    space: SpaceReference
    mechanism: str
    epsilon: float
    options: dict[str, Any]
    text_column: list[str]
    output_column: list[str] | None
    stopwords: list[str]
    oov: str
    case: str

    owner: ClassVar[str] = "DxPrivatizer"
    kinds: ClassVar[dict[str, Any]] = {
        "space": dict,
        "mechanism": str,
        "epsilon": (float, int),
        "options": dict,
        "text_column": list,
        "output_column": (list, NoneType),
        "stopwords": list,
        "oov": str,
        "case": str,
    }

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a privatizer beside its space."""
        decisions = {k: v for k, v in vars(self).items() if k not in ("space", "options")}
        return decisions | {"stopwords": frozenset(self.stopwords)} | self.options

    def write(self, folder: Path) -> None:
        """Write ``privatizer.json``, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        head = {"format_version": FORMAT_VERSION, "library_name": LIBRARY_NAME}
        write_whole(folder / FILE, [to_json(head | asdict(self))])

    @classmethod
    def read(cls: type[S], folder: Path) -> S:
        """Read ``privatizer.json``.

        Raises:
            ArtifactError: If it is damaged, of a newer format, or has not exactly the fields it
                should: one that is missing or unknown may well be one that privacy rests on.
        """
        path = folder / FILE
        entries = read_json(path, "expected the folder of a privatizer")
        version = entries.pop("format_version", None)
        if entries.pop("library_name", None) != LIBRARY_NAME or type(version) is not int:
            raise ArtifactError(f"{path}: not written by {LIBRARY_NAME}")
        if version > FORMAT_VERSION:
            raise ArtifactError(
                f"{path}: format_version is {version}, this version reads up to {FORMAT_VERSION}; "
                "run: pip install --upgrade hf-dxprivacy"
            )
        owner = _owner(entries)
        if owner != cls.owner:
            raise ArtifactError(f"{path}: this is a {owner}; load it with {owner}.from_pretrained")
        _require_fields(path, entries, cls.kinds)
        space = entries.pop("space")
        _require_fields(path, space, _SPACE_KINDS)
        return cls(space=SpaceReference(**space), **entries)


@dataclass(frozen=True)
class SlotSettings(Settings):
    """What decides how a privatizer of slots treats a text.

    Attributes:
        selector: What finds the slots, as `slots.stored_parts` describes it.
        mask_column: Where the masks go, if anywhere.
        spans_column: Where the spans go, if anywhere.
    """

    selector: dict[str, Any]
    mask_column: list[str] | None
    spans_column: list[str] | None

    owner: ClassVar[str] = "SlotPrivatizer"
    kinds: ClassVar[dict[str, Any]] = Settings.kinds | {
        "selector": dict,
        "mask_column": (list, NoneType),
        "spans_column": (list, NoneType),
    }


def owner_in(folder: Path) -> str:
    """Return the name of the class whose settings a folder holds.

    Raises:
        ArtifactError: If it holds none, or damaged ones.
    """
    return _owner(read_json(folder / FILE, "expected the folder of a privatizer"))


def _owner(entries: Mapping[str, Any]) -> str:
    return (SlotSettings if "selector" in entries else Settings).owner


def find(name_or_path: str | Path, revision: str | None, access: HubAccess) -> Path | None:
    """Find the folder of a stored privatizer.

    Returns:
        The folder; None if what the name stands for holds no privatizer.

    Raises:
        HubError: If the Hub refuses it or can not be reached.
    """
    text = str(name_or_path)
    if Path(text).is_dir():
        return Path(text) if (Path(text) / FILE).is_file() else None
    if not may_be_repository(text):
        return None
    try:
        return fetch(text, (FILE,), revision, access)[0]
    except HubFileNotFoundError:
        return None


_SPACE_KINDS = {"name": str, "commit": (str, NoneType), "digest": str}


def _require_fields(path: Path, entries: dict[str, Any], kinds: Mapping[str, Any]) -> None:
    if missing := sorted(set(kinds) - set(entries)):
        raise ArtifactError(f"{path}: missing {', '.join(missing)}; save the privatizer again")
    if unknown := sorted(set(entries) - set(kinds)):
        raise ArtifactError(
            f"{path}: unknown {', '.join(unknown)}; the file was altered, or written by a newer "
            "version (run: pip install --upgrade hf-dxprivacy)"
        )
    for name, kind in kinds.items():
        if not isinstance(entries[name], kind):
            raise ArtifactError(f"{path}: {name} can not be {entries[name]!r}; save it again")

"""Stored privatizers: one JSON file with all that decides the law. Never a seed or a key."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub.artifact import (
    PRIVATIZER,
    read_json,
    read_record,
    require_fields,
)

FILE = PRIVATIZER


@dataclass(frozen=True)
class PrivatizerConfig:
    """Configuration of a privatizer: all that decides its law but a seed or key.

    Attributes:
        space: Where its space is found again: the ``name`` of a built-in space, of a repository on
            the Hub or of a local folder, for a repository the ``commit``, and the ``digest`` of the
            space, which has to be the same then.
        mechanism: Name of the mechanism.
        epsilon: ε, per unit of the mechanism's metric.
        options: The mechanism's options.
        settings: Those of its class. Of texts: ``text_column``; ``output_column``, None for the
            text columns themselves; ``stopwords``, sorted; ``oov``; ``case``; and with slots the
            ``selector`` as `slots.selector_storage` describes it, ``mask_column`` and
            ``spans_column``. With a path to texts of some roles only, ``roles``; where another one
            than "words" splits texts, the identity of the ``segmenter``. Of whole
            sentences: ``text_column``, ``output_column``, ``sentence_unit``, ``language``,
            ``label_column`` and ``refill``. Of tokens: ``ids_column``, and of the ``tokenizer`` its
            name or path and the digest of its vocabulary.
    """

    space: dict[str, Any]
    mechanism: str
    epsilon: float
    options: dict[str, Any]
    settings: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as JSON-ready values."""
        entries = asdict(self)
        settings: dict[str, Any] = entries.pop("settings")
        return entries | settings

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a privatizer but its space, selector and tokenizer."""
        settings = {k: v for k, v in self.settings.items() if k not in ("selector", "tokenizer")}
        if "sentence_unit" in settings:
            settings["unit"] = settings.pop("sentence_unit")
        return {"mechanism": self.mechanism, "epsilon": self.epsilon} | settings | self.options

    def write(self, folder: Path) -> None:
        """Write ``privatizer.json``, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        from hf_dxprivacy.hub.writing import write_record

        write_record(folder / FILE, self.to_dict())

    @classmethod
    def read(cls, folder: Path, owner: str) -> "PrivatizerConfig":
        """Read ``privatizer.json`` from a folder, for the class of a name.

        Raises:
            ArtifactError: If it is damaged, of a newer format, for another class, or has not
                exactly the fields it should: one that is missing or unknown may well be one that
                privacy rests on.
        """
        path = folder / FILE
        entries = read_record(path, "expected the folder of a privatizer")
        stored_owner = _owner(entries)
        if stored_owner != owner:
            raise ArtifactError(
                f"{path}: this is a {stored_owner}; load it with {stored_owner}.from_pretrained"
            )
        fields = _COMMON | _SETTINGS[owner]
        if "roles" in entries and "text_column" in fields:
            fields["roles"] = list
        if "segmenter" in entries and "oov" in fields:
            fields["segmenter"] = str
        require_fields(path, entries, fields)
        for name in _PARTS.keys() & entries.keys():
            require_fields(path, entries[name], _PARTS[name])
        common = {name: entries.pop(name) for name in _COMMON}
        return cls(**common, settings=entries)


# Types of the JSON values by field.
_COMMON = {"space": dict, "mechanism": str, "epsilon": (float, int), "options": dict}
_COLUMNS = (list, NoneType)
_TEXTS = {
    "text_column": list,
    "output_column": _COLUMNS,
    "stopwords": list,
    "oov": str,
    "case": str,
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "DxPrivatizer": _TEXTS,
    "SlotPrivatizer": _TEXTS
    | {"selector": dict, "mask_column": _COLUMNS, "spans_column": _COLUMNS},
    "TokenPrivatizer": {"ids_column": str, "tokenizer": dict},
    "SentencePrivatizer": {
        **{"text_column": list, "output_column": _COLUMNS},
        **{"sentence_unit": str, "language": str, "label_column": (str, NoneType), "refill": bool},
    },
}
_PARTS: dict[str, dict[str, Any]] = {
    "space": {"name": str, "commit": (str, NoneType), "digest": str},
    "tokenizer": {"name": str, "digest": str},
}


def owner_in(folder: Path) -> str:
    """Return the name of the class that loads the privatizer in a folder.

    Raises:
        ArtifactError: If it holds none, or a damaged one.
    """
    return _owner(read_json(folder / FILE, "expected the folder of a privatizer"))


def _owner(entries: Mapping[str, Any]) -> str:
    if "tokenizer" in entries:
        return "TokenPrivatizer"
    if "sentence_unit" in entries:
        return "SentencePrivatizer"
    return "SlotPrivatizer" if "selector" in entries else "DxPrivatizer"

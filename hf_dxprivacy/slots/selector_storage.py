"""Storage of selectors in the configuration of a privatizer and the files next to it."""

from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.slots import low_transition
from hf_dxprivacy.slots.low_transition import FOLDER, LowTransitionSelector
from hf_dxprivacy.slots.span_selectors import NerSelector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.text.selector import Combined, ContentWordSelector, Selector, ShareSelector

# Everything that `save` may write.
FILES = "selector/*"

KINDS: dict[str, type[Selector]] = {
    **dict.fromkeys("|&~", Combined),
    "share": ShareSelector,
    "content-words": ContentWordSelector,
    "tag-column": TagColumnSelector,
    "low-transition": LowTransitionSelector,
    "ner": NerSelector,
}


def describe(selector: Selector) -> dict[str, Any]:
    """Return a selector and its parts as JSON-ready values; of n-grams only where they are.

    Raises:
        InvalidValueError: If a part cannot be stored.
    """
    grams = _with_grams(selector)

    def described(part: Selector) -> dict[str, Any]:
        places = [FOLDER.format(number) for number, other in enumerate(grams) if other is part]
        own = part.to_dict() | {"parts": [described(inner) for inner in part.parts]}
        return own | ({"folder": places[0]} if places else {})

    return described(selector)


def save(selector: Selector, folder: Path) -> None:
    """Write the n-grams of a selector and its parts below a folder."""
    for number, part in enumerate(_with_grams(selector)):
        part.save_pretrained(folder / FOLDER.format(number))


def files(described: Any) -> list[str]:
    """Return the names of the files that `load` needs."""
    if not isinstance(described, dict):
        return []
    names = low_transition.FILES if "folder" in described else ()
    own = [f"{described['folder']}/{name}" for name in names]
    return own + [name for part in described.get("parts", ()) for name in files(part)]


def load(described: Any, folder: Path) -> Selector:
    """Make a selector again.

    Args:
        described: What `describe` returned.
        folder: Where the files are.

    Raises:
        ArtifactError: If it is damaged, of a newer version, or a model or file has changed.
        InvalidValueError: If a value is out of range, or a model cannot be found.
        InvalidTypeError: If a value is of the wrong type.
        HubError: If the Hub refuses a model or cannot be reached.
    """
    try:
        values = dict(described)
        parts = [load(part, folder) for part in values.pop("parts")]
        return KINDS[values["kind"]].from_dict(values, parts, folder)
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"this version knows no such selector ({error!r}); the file was altered, or written by "
            "a newer version (run: pip install --upgrade hf-dxprivacy)"
        ) from error


def _with_grams(selector: Selector) -> list[LowTransitionSelector]:
    own = [selector] if isinstance(selector, LowTransitionSelector) else []
    return own + [each for part in selector.parts for each in _with_grams(part)]

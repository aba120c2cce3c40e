"""Storage of selectors in the configuration of a privatizer and the files next to it."""

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.slots import low_transition
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.span_selectors import NerSelector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.text.selector import ContentWordSelector, Selector, ShareSelector

# Everything that `save` may write.
FILES = "selector/*"

_FOLDER = "selector/{}"

# What makes a selector of its parts and its stored values, by its kind.
_MAKERS: dict[str, Callable[..., Selector]] = {
    "|": operator.or_,
    "&": operator.and_,
    "~": operator.invert,
    "share": ShareSelector,
    "content-words": ContentWordSelector.from_dict,
    "tag-column": TagColumnSelector,
    "low-transition": LowTransitionSelector.from_dict,
    "ner": NerSelector.from_dict,
}


def describe(selector: Selector) -> dict[str, Any]:
    """Return a selector and its parts as JSON-ready values; of n-grams only where they are.

    Raises:
        InvalidValueError: If a part cannot be stored.
    """
    grams = _with_grams(selector)

    def described(part: Selector) -> dict[str, Any]:
        places = [_FOLDER.format(number) for number, other in enumerate(grams) if other is part]
        own = part.to_dict() | {"parts": [described(inner) for inner in part.parts]}
        return own | ({"folder": places[0]} if places else {})

    return described(selector)


def save(selector: Selector, folder: Path) -> None:
    """Write the n-grams of a selector and its parts below a folder."""
    for number, part in enumerate(_with_grams(selector)):
        part.save_pretrained(folder / _FOLDER.format(number))


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
        if (name := values.get("folder")) is not None:
            if not re.fullmatch(_FOLDER.format("[0-9]{1,4}"), name):
                raise ArtifactError(
                    f"expected a folder such as {_FOLDER.format(0)!r}, got {name!r}"
                )
            values["folder"] = folder / name
        return _MAKERS[values.pop("kind")](*parts, **values)
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"this version knows no such selector ({error!r}); the file was altered, or written by "
            "a newer version (run: pip install --upgrade hf-dxprivacy)"
        ) from error


def _with_grams(selector: Selector) -> list[LowTransitionSelector]:
    own = [selector] if isinstance(selector, LowTransitionSelector) else []
    return own + [each for part in selector.parts for each in _with_grams(part)]

"""Storage of selectors in the configuration of a privatizer and the files beside it."""

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.slots import low_transition
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.span_selectors import NerSelector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.text.selector import ContentWordSelector, Selector, ShareSelector

# Everything that `save` may write.
FILES = "selector/*"

_FOLDER = "selector/{}"


def describe(selector: Selector) -> dict[str, Any]:
    """Return a selector and its parts as JSON-ready values; of n-grams only where they are.

    Raises:
        InvalidValueError: If a part cannot be stored.
    """
    grams = _with_grams(selector)

    def described(part: Selector) -> dict[str, Any]:
        if isinstance(part, LowTransitionSelector):
            number = next(n for n, stored in enumerate(grams) if stored is part)
            return {"kind": "low-transition", "parts": [], "folder": _FOLDER.format(number)}
        return part.to_dict() | {"parts": [described(inner) for inner in part.parts]}

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
        kind, parts = values.pop("kind"), [load(part, folder) for part in values.pop("parts")]
        return _made(kind, parts, values, folder)
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"this version knows no such selector ({error!r}); the file was altered, or written by "
            "a newer version (run: pip install --upgrade hf-dxprivacy)"
        ) from error


def require_public(selector: Selector) -> None:
    """Require that every part is found from another machine too.

    Raises:
        InvalidValueError: If a model is in a local folder.
    """
    for part in _walk(selector):
        if isinstance(part, NerSelector) and not part.is_public:
            raise InvalidValueError(
                f"the model {part.name!r}, which finds the slots, is not on the Hub, where others "
                "could find it; push it and its tokenizer, and make the selector from there"
            )


def _walk(selector: Selector) -> list[Selector]:
    return [selector, *(inner for part in selector.parts for inner in _walk(part))]


def _with_grams(selector: Selector) -> list[LowTransitionSelector]:
    return [part for part in _walk(selector) if isinstance(part, LowTransitionSelector)]


def _made(kind: str, parts: list[Selector], values: dict[str, Any], folder: Path) -> Selector:
    """Make a selector of a kind; `KeyError` or `TypeError` if it is none."""
    if kind == "content-words":
        words = values["stopwords"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ArtifactError("expected the stop words of a selector to be a list of strings")
    if kind == "low-transition":
        name = values.pop("folder")
        if values or not re.fullmatch(_FOLDER.format("[0-9]{1,4}"), name):
            raise ArtifactError(f"expected a folder such as {_FOLDER.format(0)!r}, got {name!r}")
        return LowTransitionSelector.from_pretrained(folder / name)
    if kind == "ner":
        digest, values["revision"] = values.pop("digest"), values.pop("commit")
        selector = NerSelector(**values)
        if selector.digest != digest:
            raise ArtifactError(
                f"the model in {values['model']!r} was changed since the privatizer was saved; it "
                "may find other slots, so make a new privatizer"
            )
        return selector
    return _MAKERS[kind](*parts, **values)


_MAKERS: dict[str, Callable[..., Selector]] = {
    "|": operator.or_,
    "&": operator.and_,
    "~": operator.invert,
    "share": ShareSelector,
    "content-words": ContentWordSelector,
    "tag-column": TagColumnSelector,
}

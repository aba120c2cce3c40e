"""Storage of selectors in the configuration of a privatizer and the files beside it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.slots import ngram_storage
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.ner import NerSelector
from hf_dxprivacy.slots.selector import Selector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.slots.words import ContentWordSelector, ShareSelector

# Everything that `save` may write.
FILES = "selector/*"

_FOLDER = re.compile(r"selector/[0-9]{1,4}")


def describe(selector: Selector) -> dict[str, Any]:
    """Return a selector and its parts as JSON-ready values; of n-grams only where they are.

    Raises:
        InvalidValueError: If a part cannot be stored.
    """
    return _described(selector, _with_grams(selector))


def save(selector: Selector, folder: Path) -> None:
    """Write the n-grams of a selector and its parts below a folder."""
    for number, part in enumerate(_with_grams(selector)):
        part.save_pretrained(folder / _place(number))


def files(described: Any) -> list[str]:
    """Return the names of the files that `load` needs."""
    if not isinstance(described, dict):
        return []
    own = (
        [f"{described['folder']}/{name}" for name in ngram_storage.FILES]
        if "folder" in described
        else []
    )
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
        kind, parts = values.pop("kind"), values.pop("parts")
        if kind == "low-transition":
            return _read_grams(folder, **values)
        return _MAKERS[kind]([load(part, folder) for part in parts], values)
    except (KeyError, TypeError, IndexError) as error:
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


def _walk(selector: Selector) -> Iterator[Selector]:
    yield selector
    for part in selector.parts:
        yield from _walk(part)


def _with_grams(selector: Selector) -> list[LowTransitionSelector]:
    return [part for part in _walk(selector) if isinstance(part, LowTransitionSelector)]


def _place(number: int) -> str:
    return f"selector/{number}"


def _described(selector: Selector, grams: list[LowTransitionSelector]) -> dict[str, Any]:
    if isinstance(selector, LowTransitionSelector):
        number = next(n for n, part in enumerate(grams) if part is selector)
        return {"kind": "low-transition", "parts": [], "folder": _place(number)}
    return selector.to_dict() | {"parts": [_described(part, grams) for part in selector.parts]}


def _read_grams(root: Path, folder: str) -> Selector:
    if not _FOLDER.fullmatch(folder):
        raise ArtifactError(f"expected a folder such as {_place(0)!r}, got {folder!r}")
    return LowTransitionSelector.from_pretrained(root / folder)


def _strings(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ArtifactError("expected the stop words of a selector to be a list of strings")
    return values


def _ner(values: dict[str, Any]) -> NerSelector:
    selector = NerSelector(
        values["model"],
        revision=values["commit"],
        labels=values["labels"],
        window=values["window"],
    )
    if selector.digest != values["digest"]:
        raise ArtifactError(
            f"the model in {values['model']!r} was changed since the privatizer was saved; it may "
            "find other slots, so make a new privatizer"
        )
    return selector


_MAKERS: dict[str, Callable[[list[Selector], dict[str, Any]], Selector]] = {
    "|": lambda parts, _: parts[0] | parts[1],
    "&": lambda parts, _: parts[0] & parts[1],
    "~": lambda parts, _: ~parts[0],
    "share": lambda parts, values: ShareSelector(*parts, **values),
    "content-words": lambda _, values: ContentWordSelector(_strings(values["stopwords"])),
    "tag-column": lambda _, values: TagColumnSelector(**values),
    "ner": lambda _, values: _ner(values),
}

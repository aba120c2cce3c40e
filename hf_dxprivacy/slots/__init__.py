"""Selectors of the words to perturb (slots); the other words (carrier phrases) are kept."""

from importlib import import_module
from typing import Any

from hf_dxprivacy.guarantee import CorpusGuarantee
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.span_selectors import NerSelector, SpanSelector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.text.selector import ContentWordSelector, Mask, Selector, ShareSelector, spans

__all__ = [
    "ContentWordSelector",
    "CorpusGuarantee",
    "LowTransitionSelector",
    "Mask",
    "NerSelector",
    "Selector",
    "ShareSelector",
    "SpanSelector",
    "TagColumnSelector",
    "spans",
]

# Of rooms above this one, which need an extra each.
_LATE = {"PresidioSelector": "presidio", "SpacySelector": "spacy"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"hf_dxprivacy.integrations.{_LATE[name]}"), name)

"""Selectors of the words to perturb (slots); the other words (carrier phrases) are kept."""

from hf_dxprivacy._lazy import lazy
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

# They are in rooms above this one, and need an extra each.
_ABOVE = "hf_dxprivacy.integrations"
_LATE = {"PresidioSelector": f"{_ABOVE}.presidio", "SpacySelector": f"{_ABOVE}.spacy"}

__getattr__ = lazy(__name__, _LATE)

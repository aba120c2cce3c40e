"""Selectors of the words to perturb (slots); the other words (carrier phrases) are kept."""

from hf_dxprivacy.guarantee import CorpusGuarantee
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.selector import ContentWordSelector, Mask, Selector, ShareSelector, spans
from hf_dxprivacy.slots.span_selectors import NerSelector, SpanSelector
from hf_dxprivacy.slots.tags import TagColumnSelector

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

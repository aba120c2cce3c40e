"""Where to perturb: slots, and the carrier phrases that are left as they are."""

from hf_dxprivacy.slots.base import Mask, Selector, spans
from hf_dxprivacy.slots.guarantee import CorpusGuarantee
from hf_dxprivacy.slots.located import SpanSelector
from hf_dxprivacy.slots.low_transition import LowTransitionSelector
from hf_dxprivacy.slots.ner import NerSelector
from hf_dxprivacy.slots.tags import TagColumnSelector
from hf_dxprivacy.slots.words import ContentWordSelector, ShareSelector

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

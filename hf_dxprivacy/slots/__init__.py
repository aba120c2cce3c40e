"""Where to perturb: slots, and the carrier phrases that are left as they are."""

from hf_dxprivacy.slots.base import Selector, spans
from hf_dxprivacy.slots.guarantee import CorpusGuarantee
from hf_dxprivacy.slots.low_transition import LowTransitionSelector

__all__ = ["CorpusGuarantee", "LowTransitionSelector", "Selector", "spans"]

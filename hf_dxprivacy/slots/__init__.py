"""Where to perturb: slots, and the carrier phrases that are left as they are."""

from hf_dxprivacy.slots.base import Selector, spans

__all__ = ["Selector", "spans"]

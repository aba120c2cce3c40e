"""Model cards of what is saved and pushed."""

from hf_dxprivacy.cards.licence import require_licence
from hf_dxprivacy.cards.measuring import measure
from hf_dxprivacy.cards.selector import write_selector_card
from hf_dxprivacy.cards.writing import README, write_privatizer_card, write_space_card

__all__ = [
    "README",
    "measure",
    "require_licence",
    "write_privatizer_card",
    "write_selector_card",
    "write_space_card",
]

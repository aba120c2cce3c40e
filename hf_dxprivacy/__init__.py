"""Metric differential privacy (dχ-privacy) for text datasets.

>>> from datasets import load_dataset
>>> from hf_dxprivacy import DxPrivatizer
>>> privatizer = DxPrivatizer.from_pretrained("wordnet-gloss", epsilon=5.0)
>>> private = load_dataset("csv", data_files="reviews.csv").map(privatizer, batched=True)
"""

from hf_dxprivacy._version import __version__
from hf_dxprivacy.budget import PrivacyBudget
from hf_dxprivacy.errors import DxPrivacyError
from hf_dxprivacy.guarantees import PrivacyGuarantee
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.tokens import TokenPrivatizer

__all__ = [
    "DxPrivacyError",
    "DxPrivatizer",
    "EmbeddingSpace",
    "PrivacyBudget",
    "PrivacyGuarantee",
    "SlotPrivatizer",
    "TokenPrivatizer",
    "__version__",
]

"""Metric differential privacy (dχ-privacy) for text datasets.

>>> from datasets import load_dataset
>>> from hf_dxprivacy import DxPrivatizer
>>> privatizer = DxPrivatizer.from_pretrained(
...     "english", mechanism="hierarchical", epsilon=1.5)
>>> private = load_dataset("csv", data_files="reviews.csv").map(privatizer, batched=True)
"""

from typing import TYPE_CHECKING

from hf_dxprivacy._lazy import lazy
from hf_dxprivacy._version import __version__

if TYPE_CHECKING:
    from hf_dxprivacy.errors import DxPrivacyError
    from hf_dxprivacy.guarantee import PrivacyGuarantee
    from hf_dxprivacy.privatizers.budget import PrivacyBudget
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
    from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
    from hf_dxprivacy.publishing.claim import publishable
    from hf_dxprivacy.publishing.traces import strip_traces
    from hf_dxprivacy.sentences import SentencePool
    from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
    from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
    from hf_dxprivacy.spaces import EmbeddingSpace

# Imported when they are first asked for, so that the help of the command line needs no NumPy.
_MODULES = {
    "DxPrivacyError": "errors",
    "DxPrivatizer": "privatizers.text_privatizer",
    "EmbeddingSpace": "spaces",
    "PrivacyBudget": "privatizers.budget",
    "PrivacyGuarantee": "guarantee",
    "SentencePool": "sentences",
    "SentencePrivatizer": "sentences.sentence_privatizer",
    "SlotPrivatizer": "slots.slot_privatizer",
    "TokenPrivatizer": "privatizers.token_privatizer",
    "publishable": "publishing.claim",
    "strip_traces": "publishing.traces",
}

__all__ = [
    "DxPrivacyError",
    "DxPrivatizer",
    "EmbeddingSpace",
    "PrivacyBudget",
    "PrivacyGuarantee",
    "SentencePool",
    "SentencePrivatizer",
    "SlotPrivatizer",
    "TokenPrivatizer",
    "__version__",
    "publishable",
    "strip_traces",
]


__getattr__ = lazy(__name__, {name: f"{__name__}.{room}" for name, room in _MODULES.items()})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

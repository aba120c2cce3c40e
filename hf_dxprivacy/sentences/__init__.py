"""Pools of public sentences: a whole text is looked up, and a whole sentence released."""

from hf_dxprivacy.hub.download import builtin_pools
from hf_dxprivacy.sentences.cleaning import clean_sentences, split_sentences
from hf_dxprivacy.sentences.encoders import (
    SentenceEncoder,
    StaticEncoder,
    TransformersEncoder,
    WordEncoder,
)
from hf_dxprivacy.sentences.labels import as_label
from hf_dxprivacy.sentences.pool import SentencePool, is_pool

__all__ = [
    "SentenceEncoder",
    "SentencePool",
    "StaticEncoder",
    "TransformersEncoder",
    "WordEncoder",
    "as_label",
    "builtin_pools",
    "clean_sentences",
    "is_pool",
    "split_sentences",
]

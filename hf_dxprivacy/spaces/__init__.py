"""Words as points: embedding spaces, their metrics and the files they are read from."""

from hf_dxprivacy.hub.download import builtin_names
from hf_dxprivacy.spaces.space import EmbeddingSpace

__all__ = ["EmbeddingSpace", "builtin_names"]

"""Training of spaces from public sources, independent of privacy.

What compiles or needs SciPy is imported when it is called, from the extra ``train``.
"""

from hf_dxprivacy.report.poincare_disk import draw_disk
from hf_dxprivacy.training.gloss import GlossConfig, train_gloss
from hf_dxprivacy.training.hyperparameters import PoincareConfig
from hf_dxprivacy.training.poincare import Epoch, train_poincare
from hf_dxprivacy.training.ranking import (
    Reconstruction,
    depth_correlation,
    link_prediction,
    reconstruction,
)
from hf_dxprivacy.training.relations import (
    Relations,
    read_conceptnet,
    read_pairs,
    read_wordnet,
    split_relations,
)
from hf_dxprivacy.training.webisadb import WebIsADB, WebIsADBSummary, read_webisadb

__all__ = [
    "Epoch",
    "GlossConfig",
    "PoincareConfig",
    "Reconstruction",
    "Relations",
    "WebIsADB",
    "WebIsADBSummary",
    "depth_correlation",
    "draw_disk",
    "link_prediction",
    "read_conceptnet",
    "read_pairs",
    "read_webisadb",
    "read_wordnet",
    "reconstruction",
    "split_relations",
    "train_gloss",
    "train_poincare",
]

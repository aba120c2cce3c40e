"""Trains spaces from public sources; knows nothing of privacy.

What compiles or needs SciPy is imported when it is called, from the extra ``train``.
"""

from hf_dxprivacy.training.evaluation import (
    Reconstruction,
    depth_correlation,
    link_prediction,
    reconstruction,
)
from hf_dxprivacy.training.gloss import GlossRecipe, train_gloss
from hf_dxprivacy.training.links import split_relations
from hf_dxprivacy.training.pairs import read_conceptnet, read_pairs
from hf_dxprivacy.training.picture import draw_disk
from hf_dxprivacy.training.poincare import Epoch, train_poincare
from hf_dxprivacy.training.recipe import PoincareRecipe
from hf_dxprivacy.training.relations import Relations, read_wordnet
from hf_dxprivacy.training.webisadb import WebIsADB, read_webisadb
from hf_dxprivacy.training.webisadb_summary import WebIsADBSummary

__all__ = [
    "Epoch",
    "GlossRecipe",
    "PoincareRecipe",
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

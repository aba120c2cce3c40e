"""Trains spaces from public sources; knows nothing of privacy.

What compiles or needs SciPy is imported when it is called, from the extra ``train``.
"""

from hf_dxprivacy.training.evaluation import Reconstruction, reconstruction
from hf_dxprivacy.training.gloss import GlossRecipe, train_gloss
from hf_dxprivacy.training.pairs import read_conceptnet, read_pairs
from hf_dxprivacy.training.poincare import Epoch, PoincareRecipe, train_poincare
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
    "read_conceptnet",
    "read_pairs",
    "read_webisadb",
    "read_wordnet",
    "reconstruction",
    "train_gloss",
    "train_poincare",
]

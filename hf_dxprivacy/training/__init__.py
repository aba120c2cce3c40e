"""Trains spaces from public sources; knows nothing of privacy.

What compiles or needs SciPy is imported when it is called, from the extra ``train``.
"""

from hf_dxprivacy.training.evaluation import Reconstruction, reconstruction
from hf_dxprivacy.training.gloss import GlossRecipe, train_gloss
from hf_dxprivacy.training.poincare import Epoch, PoincareRecipe, train_poincare
from hf_dxprivacy.training.relations import Relations, read_wordnet

__all__ = [
    "Epoch",
    "GlossRecipe",
    "PoincareRecipe",
    "Reconstruction",
    "Relations",
    "read_wordnet",
    "reconstruction",
    "train_gloss",
    "train_poincare",
]

"""What a task loses by privatized texts: shared parts of the examples that measure it."""

from hf_dxprivacy.evaluation.baselines import RANDOM, make_privatizer, random_words
from hf_dxprivacy.evaluation.features import averaged_vectors, cosines, pair_features
from hf_dxprivacy.evaluation.reading import SPLITS, read_parts, thinned
from hf_dxprivacy.evaluation.runs import Cell, Runs
from hf_dxprivacy.evaluation.scores import classification_scores, correlation_scores
from hf_dxprivacy.evaluation.selectors import SELECTORS, make_selector
from hf_dxprivacy.evaluation.tables import pivot
from hf_dxprivacy.evaluation.tasks import TEXT_COLUMNS, TextTask, read_task
from hf_dxprivacy.evaluation.versions import BASELINES, Version, versions

__all__ = [
    "BASELINES",
    "RANDOM",
    "SELECTORS",
    "SPLITS",
    "TEXT_COLUMNS",
    "Cell",
    "Runs",
    "TextTask",
    "Version",
    "averaged_vectors",
    "classification_scores",
    "correlation_scores",
    "cosines",
    "make_privatizer",
    "make_selector",
    "pair_features",
    "pivot",
    "random_words",
    "read_parts",
    "read_task",
    "thinned",
    "versions",
]

"""What privatized texts are worth and what they hide: `compare`, and parts of the examples."""

from hf_dxprivacy.evaluation.comparison import Compared, Comparison
from hf_dxprivacy.evaluation.external import External, ExternalError, mldp_text
from hf_dxprivacy.evaluation.frontier import compare
from hf_dxprivacy.evaluation.measurements import (
    Measurement,
    Runs,
    classification_scores,
    correlation_scores,
    pivot,
)
from hf_dxprivacy.evaluation.perplexity import NgramModel, readability
from hf_dxprivacy.evaluation.tasks import (
    SPLITS,
    TEXT_COLUMNS,
    TextTask,
    averaged_vectors,
    cosines,
    pair_features,
    read_parts,
    read_task,
    thinned,
)
from hf_dxprivacy.evaluation.versions import (
    BASELINES,
    RANDOM,
    SELECTORS,
    Version,
    make_privatizer,
    make_selector,
    random_words,
    versions,
)

__all__ = [
    "BASELINES",
    "RANDOM",
    "SELECTORS",
    "SPLITS",
    "TEXT_COLUMNS",
    "Compared",
    "Comparison",
    "External",
    "ExternalError",
    "Measurement",
    "NgramModel",
    "Runs",
    "TextTask",
    "Version",
    "averaged_vectors",
    "classification_scores",
    "compare",
    "correlation_scores",
    "cosines",
    "make_privatizer",
    "make_selector",
    "mldp_text",
    "pair_features",
    "pivot",
    "random_words",
    "read_parts",
    "read_task",
    "readability",
    "thinned",
    "versions",
]

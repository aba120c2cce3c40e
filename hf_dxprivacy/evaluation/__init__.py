"""What privatized texts are worth and hide: comparison, attacks, mechanisms of other papers."""

from hf_dxprivacy.evaluation.adversary import BayesAdversary
from hf_dxprivacy.evaluation.attribution import Attribution, author_attribution
from hf_dxprivacy.evaluation.bigrams import BigramModel
from hf_dxprivacy.evaluation.comparison import Compared, Comparison
from hf_dxprivacy.evaluation.equal_terms import compare_mechanisms
from hf_dxprivacy.evaluation.external import External, ExternalError, mldp_text
from hf_dxprivacy.evaluation.frontier import compare
from hf_dxprivacy.evaluation.masked_words import MaskedWordModel
from hf_dxprivacy.evaluation.measurements import (
    Measurement,
    Runs,
    classification_scores,
    correlation_scores,
    pivot,
)
from hf_dxprivacy.evaluation.norm_search import LambdaSuggestion, suggest_lambda
from hf_dxprivacy.evaluation.peer_candidates import PEERS
from hf_dxprivacy.evaluation.perplexity import NgramModel, readability
from hf_dxprivacy.evaluation.reconstruction_attack import (
    Reconstruction,
    averaging,
    reconstruct_texts,
    reconstruction,
)
from hf_dxprivacy.evaluation.shadow import membership_inference, user_audit
from hf_dxprivacy.evaluation.task_versions import (
    BASELINES,
    RANDOM,
    SELECTORS,
    Version,
    make_privatizer,
    make_selector,
    random_words,
    versions,
)
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

__all__ = [
    "BASELINES",
    "PEERS",
    "RANDOM",
    "SELECTORS",
    "SPLITS",
    "TEXT_COLUMNS",
    "Attribution",
    "BayesAdversary",
    "BigramModel",
    "Compared",
    "Comparison",
    "External",
    "ExternalError",
    "LambdaSuggestion",
    "MaskedWordModel",
    "Measurement",
    "NgramModel",
    "Reconstruction",
    "Runs",
    "TextTask",
    "Version",
    "author_attribution",
    "averaged_vectors",
    "averaging",
    "classification_scores",
    "compare",
    "compare_mechanisms",
    "correlation_scores",
    "cosines",
    "make_privatizer",
    "make_selector",
    "membership_inference",
    "mldp_text",
    "pair_features",
    "pivot",
    "random_words",
    "read_parts",
    "read_task",
    "readability",
    "reconstruct_texts",
    "reconstruction",
    "suggest_lambda",
    "thinned",
    "user_audit",
    "versions",
]

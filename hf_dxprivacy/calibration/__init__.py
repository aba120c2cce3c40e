"""Choice of ε: privacy statistics of entries, and the largest ε that meets a target."""

from hf_dxprivacy._lazy import moved
from hf_dxprivacy.calibration.epsilons import epsilon_for_local_bound, epsilon_for_radius
from hf_dxprivacy.calibration.measuring import privacy_statistics, sample_words
from hf_dxprivacy.calibration.statistics import PrivacyStatistics, Summary
from hf_dxprivacy.calibration.suggest import Suggestion, suggest_epsilon

__all__ = [
    "PrivacyStatistics",
    "Suggestion",
    "Summary",
    "epsilon_for_local_bound",
    "epsilon_for_radius",
    "privacy_statistics",
    "sample_words",
    "suggest_epsilon",
]

_MOVED = ("LambdaSuggestion", "compare_mechanisms", "suggest_lambda")
__getattr__ = moved(__name__, dict.fromkeys(_MOVED, "hf_dxprivacy.evaluation"))

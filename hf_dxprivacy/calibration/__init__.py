"""Choice of ε and λ: privacy statistics of entries, and the largest ε that meets a target."""

from hf_dxprivacy.calibration.measuring import privacy_statistics, sample_words
from hf_dxprivacy.calibration.statistics import PrivacyStatistics, Summary
from hf_dxprivacy.calibration.suggest import (
    Suggestion,
    epsilon_for_local_bound,
    epsilon_for_radius,
    suggest_epsilon,
)
from hf_dxprivacy.calibration.sweep import LambdaSuggestion, compare_mechanisms, suggest_lambda

__all__ = [
    "LambdaSuggestion",
    "PrivacyStatistics",
    "Suggestion",
    "Summary",
    "compare_mechanisms",
    "epsilon_for_local_bound",
    "epsilon_for_radius",
    "privacy_statistics",
    "sample_words",
    "suggest_epsilon",
    "suggest_lambda",
]

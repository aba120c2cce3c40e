"""Choosing ε: what a mechanism does to words, and the largest ε that does enough."""

from hf_dxprivacy.calibration.comparison import compare_mechanisms
from hf_dxprivacy.calibration.measuring import privacy_statistics
from hf_dxprivacy.calibration.radius import epsilon_for_radius
from hf_dxprivacy.calibration.statistics import PrivacyStatistics, Summary
from hf_dxprivacy.calibration.suggestion import Suggestion, suggest_epsilon
from hf_dxprivacy.calibration.words import sample_words

__all__ = [
    "PrivacyStatistics",
    "Suggestion",
    "Summary",
    "compare_mechanisms",
    "epsilon_for_radius",
    "privacy_statistics",
    "sample_words",
    "suggest_epsilon",
]

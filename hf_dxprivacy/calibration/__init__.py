"""Choosing ε: what a mechanism does to words, and the largest ε that does enough."""

from hf_dxprivacy.calibration.measuring import privacy_statistics
from hf_dxprivacy.calibration.statistics import PrivacyStatistics, Summary

__all__ = [
    "PrivacyStatistics",
    "Summary",
    "privacy_statistics",
]

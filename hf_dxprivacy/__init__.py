"""Metric differential privacy for text datasets."""

from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import DxPrivacyError

__all__ = ["DxPrivacyError", "__version__"]

"""From text to words with offsets, and back."""

from hf_dxprivacy.text.case import apply_case, case_pattern
from hf_dxprivacy.text.stopwords import stop_words
from hf_dxprivacy.text.words import Span, Splitter, lookup_forms

__all__ = ["Span", "Splitter", "apply_case", "case_pattern", "lookup_forms", "stop_words"]

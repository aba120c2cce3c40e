"""From text to words with offsets, and back."""

from hf_dxprivacy.text.case import apply_case, case_pattern
from hf_dxprivacy.text.rows import Cell, Row, RowReader, TextRow, TokenRow, fill
from hf_dxprivacy.text.stopwords import stop_words
from hf_dxprivacy.text.vocabulary import TokenVocabulary
from hf_dxprivacy.text.words import OTHER_FORMS, Span, plain_apostrophes

__all__ = [
    "OTHER_FORMS",
    "Cell",
    "Row",
    "RowReader",
    "Span",
    "TextRow",
    "TokenRow",
    "TokenVocabulary",
    "apply_case",
    "case_pattern",
    "fill",
    "plain_apostrophes",
    "stop_words",
]

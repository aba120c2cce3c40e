"""From text to words with offsets, and back."""

from typing import TYPE_CHECKING

from hf_dxprivacy._lazy import lazy
from hf_dxprivacy.text.segmentation import (
    LOOKUP_FORMS,
    Cell,
    Row,
    RowReader,
    Span,
    TextRow,
    TokenRow,
    apply_case,
    case_pattern,
    is_missing,
    plain_apostrophes,
)
from hf_dxprivacy.text.shapes import seems_name, shape_of
from hf_dxprivacy.text.stopwords import stop_words

if TYPE_CHECKING:
    from hf_dxprivacy.text.token_vocabulary import TokenVocabulary

__all__ = [
    "LOOKUP_FORMS",
    "Cell",
    "Row",
    "RowReader",
    "Span",
    "TextRow",
    "TokenRow",
    "TokenVocabulary",
    "apply_case",
    "case_pattern",
    "is_missing",
    "plain_apostrophes",
    "seems_name",
    "shape_of",
    "stop_words",
]

__getattr__ = lazy(__name__, {"TokenVocabulary": "hf_dxprivacy.text.token_vocabulary"})

"""Adapters for other tools: Presidio, spaCy, datatrove, scikit-learn."""

from typing import TYPE_CHECKING

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer

if TYPE_CHECKING:
    from hf_dxprivacy.files.job import TextsPrivatizer


def require_texts_privatizer(privatizer: object) -> "TextsPrivatizer":
    """Return a privatizer of texts; raise InvalidTypeError for anything else."""
    if not isinstance(privatizer, (DxPrivatizer, SentencePrivatizer)):
        raise InvalidTypeError(
            "expected privatizer to be a DxPrivatizer, a SlotPrivatizer or a SentencePrivatizer, "
            f"got a {type(privatizer).__name__}"
        )
    return privatizer

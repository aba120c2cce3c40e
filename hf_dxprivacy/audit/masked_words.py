"""Expectations of a masked language model for each word (needs torch and transformers)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidTypeError, require_within
from hf_dxprivacy.text import TokenVocabulary

EXTRA = "models"
# Words to either side that the model sees.
CONTEXT = 32
# Places that are worked on at once.
BATCH = 32


class MaskedWordModel:
    """Turns a masked language model into expectations of words in their context.

    Args:
        model: A `transformers` model for masked language modelling, as
            ``AutoModelForMaskedLM.from_pretrained`` returns it.
        tokenizer: Its fast tokenizer.
        weight: In [0, 1]: how much the model counts; the rest is the prior's.

    Raises:
        InvalidTypeError: If the tokenizer has no mask token, or is no fast one.
        InvalidValueError: If the weight is out of range.
    """

    def __init__(self, model: Any, tokenizer: Any, weight: float = 0.5) -> None:
        require_within(0.0, 1.0, weight=weight)
        if getattr(tokenizer, "mask_token", None) is None:
            raise InvalidTypeError(
                "expected a tokenizer with a mask token, as models for masked language modelling "
                f"have it, got a {type(tokenizer).__name__} without one"
            )
        self._torch = require("torch", EXTRA)
        self._model, self._tokenizer = model.eval(), tokenizer
        self._tokens = TokenVocabulary.of(tokenizer).whole_words()
        self._weight = weight

    def expectations(
        self, words: Sequence[str], candidates: Sequence[str], prior: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (n, m) how likely each candidate is in the place of each word, given the others.

        Candidates that are no single token of the model share what the prior gives them.

        Args:
            words: (n,) a text.
            candidates: (m,) words that may stand there.
            prior: (m,) how likely each is anywhere; adds up to 1.
        """
        scored = np.flatnonzero([word in self._tokens for word in candidates])
        expected = np.tile(prior, (len(words), 1))
        if len(scored):
            tokens = [self._tokens[candidates[i]] for i in scored.tolist()]
            model = self._probabilities(words, tokens) * prior[scored].sum()
            expected[:, scored] = (1 - self._weight) * prior[scored] + self._weight * model
        return expected

    def _probabilities(self, words: Sequence[str], tokens: list[int]) -> NDArray[np.float64]:
        """Return (n, len(tokens)) what the model gives each token; adds up to 1."""
        places = range(len(words))
        parts = [
            self._scores([self._masked(words, i) for i in places[start : start + BATCH]], tokens)
            for start in places[::BATCH]
        ]
        return np.concatenate([np.empty((0, len(tokens))), *parts])

    def _masked(self, words: Sequence[str], place: int) -> str:
        before = words[max(0, place - CONTEXT) : place]
        return " ".join([*before, self._tokenizer.mask_token, *words[place + 1 :][:CONTEXT]])

    def _scores(self, texts: list[str], tokens: list[int]) -> NDArray[np.float64]:
        encoded = self._tokenizer(texts, return_tensors="pt", padding=True)
        masked = encoded["input_ids"] == self._tokenizer.mask_token_id
        rows, at = self._torch.arange(len(texts)), masked.int().argmax(dim=1)
        with self._torch.no_grad():
            logits = self._model(**encoded.to(self._model.device)).logits.cpu()
        found: NDArray[np.float64] = logits[rows, at][:, tokens].double().softmax(dim=1).numpy()
        return found

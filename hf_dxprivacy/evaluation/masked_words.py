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
        if len(scored) == 0:
            return expected
        tokens, mask = (
            [self._tokens[candidates[i]] for i in scored.tolist()],
            self._tokenizer.mask_token,
        )
        masked = [
            " ".join([*words[max(0, at - CONTEXT) : at], mask, *words[at + 1 :][:CONTEXT]])
            for at in range(len(words))
        ]
        share = prior[scored].sum()
        for start in range(0, len(words), BATCH):
            model = self._probabilities(masked[start : start + BATCH], tokens)
            mixed = (1 - self._weight) * prior[scored] + self._weight * share * model
            expected[start : start + BATCH, scored] = mixed
        return expected

    def _probabilities(self, texts: list[str], tokens: list[int]) -> NDArray[np.float64]:
        """Return (n, len(tokens)) what the model gives each token as the mask; adds up to 1."""
        encoded = self._tokenizer(texts, return_tensors="pt", padding=True)
        masked = encoded["input_ids"] == self._tokenizer.mask_token_id
        rows, at = self._torch.arange(len(texts)), masked.int().argmax(dim=1)
        with self._torch.no_grad():
            logits = self._model(**encoded.to(self._model.device)).logits.cpu()
        found: NDArray[np.float64] = logits[rows, at][:, tokens].double().softmax(dim=1).numpy()
        return found

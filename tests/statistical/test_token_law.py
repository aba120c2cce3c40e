"""The law of the tokens that come out is the mechanism's own."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from hf_dxprivacy.mechanisms import TruncatedExponential
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import RejectedError, check_frequencies

DRAWS = 20_000


def test_tokens_are_drawn_as_the_mechanism_draws(euclidean_space: EmbeddingSpace) -> None:
    mechanism = TruncatedExponential(euclidean_space, 2.0)
    tokens = ["[UNK]", "[CLS]", "other", *euclidean_space.words]
    vocabulary = {token: row for row, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[CLS]"])
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, mechanism, seed=11)
    # The token, and what it is to the mechanism; a special one between them takes nothing away.
    inputs = {3: 0, 103: 100, 0: -1, 2: -1}
    columns = np.array([[1, token] for token in inputs] * DRAWS).reshape(1, -1)
    released = privatizer.privatize_ids(columns).reshape(DRAWS, len(inputs), 2)
    assert (released[..., 0] == 1).all()
    laws = mechanism.probabilities(list(inputs.values()))
    for column, law in enumerate(laws):
        counts = np.bincount(released[:, column, 1] - 3, minlength=len(euclidean_space))
        check_frequencies(counts, law)
        with pytest.raises(RejectedError, match=r"chi-square.*alpha="):
            check_frequencies(counts, laws[column - 2])

"""A masked language model tells the adversary what to expect in context."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny_models import CORPUS, byte_level, word_pieces

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import BayesAdversary, MaskedWordModel, reconstruct_texts
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

pytestmark = pytest.mark.slow

TEXTS = CORPUS[:2] * 10
WORDS = sorted({w.lower() for text in TEXTS for w in RowReader().read_text(text).words})
RARE = "xylophone"


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    """Return a model that has learned two sentences by heart, and its tokenizer."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_pieces(), mask_token="[MASK]", pad_token="[PAD]", unk_token="[UNK]"
    )
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), num_attention_heads=2, hidden_dropout_prob=0.0, **sizes
    )
    rows = [[w.lower() for w in RowReader().read_text(text).words] for text in CORPUS[:2]]
    masked = [
        (" ".join([*row[:i], "[MASK]", *row[i + 1 :]]), word)
        for row in rows
        for i, word in enumerate(row)
    ]
    encoded = tokenizer([text for text, _ in masked], return_tensors="pt", padding=True)
    truth = torch.tensor(tokenizer.convert_tokens_to_ids([word for _, word in masked]))
    at = (encoded["input_ids"] == tokenizer.mask_token_id).int().argmax(dim=1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.BertForMaskedLM(config)
        optimizer = torch.optim.Adam(model.parameters(), 0.005)
        for _ in range(60):
            logits = model(**encoded).logits[torch.arange(len(at)), at]
            loss = torch.nn.functional.cross_entropy(logits, truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model, tokenizer


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    words = [*WORDS, RARE]
    vectors = np.random.default_rng(1).normal(size=(len(words), 6))
    return EmbeddingSpace.from_vectors(words, vectors.astype(np.float32))


def test_context_helps_the_adversary(parts: tuple[Any, Any], space: EmbeddingSpace) -> None:
    mechanism = create_mechanism("tem", space, 2.0)
    released = [str(text) for text in DxPrivatizer(space, mechanism, seed=3).privatize(TEXTS)]
    adversary = BayesAdversary(mechanism, dict.fromkeys(WORDS, 1.0))
    blind = reconstruct_texts(adversary, TEXTS, released)
    seeing = reconstruct_texts(adversary, TEXTS, released, language_model=MaskedWordModel(*parts))
    assert 0.3 < blind[0].value < 0.9
    assert seeing[0].low > blind[0].high


def test_expectations_mix_the_model_with_the_prior(parts: tuple[Any, Any]) -> None:
    candidates = ["doctor", "fox", RARE, "the"]
    prior = np.array([0.2, 0.1, 0.3, 0.4])
    words = ["a", "patient", "treats", "the", "patients", "of", "the", "hospital"]
    only = MaskedWordModel(*parts, weight=1.0).expectations(words, candidates, prior)
    assert only.sum(axis=1) == pytest.approx(1.0)
    # A word that is no token of the model keeps what the prior gives it.
    assert only[:, 2] == pytest.approx(0.3)
    assert only[1].argmax() == 0
    none = MaskedWordModel(*parts, weight=0.0).expectations(words, candidates, prior)
    np.testing.assert_allclose(none, np.tile(prior, (len(words), 1)))
    half = MaskedWordModel(*parts).expectations(words, candidates, prior)
    np.testing.assert_allclose(half, (only + none) / 2)


def test_nothing_is_expected_of_nothing(parts: tuple[Any, Any]) -> None:
    model = MaskedWordModel(*parts)
    assert model.expectations([], ["fox"], np.ones(1)).shape == (0, 1)
    assert model.expectations(["fox"], [RARE], np.ones(1)).tolist() == [[1.0]]
    long = ["fox"] * 600
    assert model.expectations(long, ["fox"], np.ones(1)).shape == (600, 1)


def test_models_without_a_mask_are_refused(parts: tuple[Any, Any]) -> None:
    causal = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level())
    with pytest.raises(InvalidTypeError, match="a tokenizer with a mask token"):
        MaskedWordModel(parts[0], causal)
    with pytest.raises(InvalidValueError, match="weight"):
        MaskedWordModel(*parts, weight=2.0)

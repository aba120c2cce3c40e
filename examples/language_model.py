"""What a small causal language model learns from privatized texts.

    python examples/language_model.py --data mr.jsonl.gz --epsilon 6 8 12

A model is trained on the texts as they are, on random words, and on what a mechanism releases at
each ε, and each time tested on plain texts (set-up "train"): its perplexity says how much of the
language is left. In set-up "test" a model of plain texts reads released ones: the perplexity says
how strange they look to it. Without --model a small GPT-2 with random weights is trained; its
tokens are learned from the words of the space, which are public. Perplexities are per token, and
comparable with the same tokens only.

Printed is a table with 95 % Student t intervals over the repeats, each with releases and a seed of
its own. Those of two or three repeats are wide, and may pass the ends of the scale.
--runs keeps what is done: the same command goes on from there.
"""

import argparse
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import transformers
from datasets import Dataset
from sweeps import (
    add_training,
    by_setup,
    each_version,
    make_parser,
    training_arguments,
    with_folder,
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import Version, read_parts, thinned

SETUPS = ("train", "test")
TEST_SHARE = 0.2
END = "<|endoftext|>"
METRIC = "perplexity"


def main() -> None:
    """Train and test in every set-up, and print the perplexities."""
    with_folder(parse_arguments(), sweep)


def sweep(options: argparse.Namespace) -> None:
    """Do so, with a folder for the trainer."""
    parts = read_parts(options.data, config=options.config, splits=options.splits)
    parts = [part.select_columns([options.text_column]) for part in parts]
    texts = [text or "" for part in parts for text in part[options.text_column]]
    parts = [thinned(part, options.rows) for part in parts]
    if len(parts) == 1:
        halves = parts[0].train_test_split(TEST_SHARE, seed=0)
        parts = [halves["train"], halves["test"]]
    language = Language(*parts, EmbeddingSpace.from_pretrained(options.space), options)
    chosen = each_version(options, texts, options.text_column)
    name = Path(options.data).name.partition(".")[0]
    by_setup(options, name, chosen, "language model", language.scores, digits=1)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    add_training(parser, SETUPS)
    add = parser.add_argument
    add("--text_column", default="text")
    add("--model", help="any causal model of transformers: folder, or id on the Hub; see above")
    add("--learning_rate", type=float, default=1e-3)
    add("--block", type=int, default=64, help="tokens that the model reads at once")
    add("--vocabulary", type=int, default=2000, help="tokens of a model with random weights")
    add("--layers", type=int, default=2, help="of a model with random weights")
    add("--width", type=int, default=128, help="of a model with random weights")
    return parser.parse_args()


class Language:
    """The language models of the versions of some texts.

    Args:
        train: Texts to train with.
        test: Texts to test with.
        space: Whose words the tokens are learned from.
        options: The command line.
    """

    def __init__(
        self, train: Dataset, test: Dataset, space: EmbeddingSpace, options: argparse.Namespace
    ) -> None:
        self._train_rows, self._test_rows, self._options = train, test, options
        if options.model:
            self._tokenizer = AutoTokenizer.from_pretrained(options.model)
        else:
            self._tokenizer = public_tokenizer(space, options.vocabulary)
        # Those of plain texts and of one version are used again; see the order in `main`.
        self._trained = lru_cache(maxsize=2 * options.repeats)(self._train)

    def scores(self, trained: Version, tested: Version, repeat: int) -> dict[str, float]:
        """Return the perplexity per token that one version's model has on another version."""
        found = self._trained(trained, repeat).evaluate(self._blocks(self._test_rows, tested))
        return {METRIC: math.exp(found["eval_loss"])}

    def _train(self, version: Version, repeat: int) -> transformers.Trainer:
        transformers.set_seed(repeat)
        batch = self._options.batch_size
        trainer = transformers.Trainer(
            self._new_model(),
            training_arguments(self._options, per_device_eval_batch_size=batch, seed=repeat),
            train_dataset=self._blocks(self._train_rows, version),
        )
        trainer.train()
        return trainer

    def _new_model(self) -> Any:
        options = self._options
        if options.model:
            return AutoModelForCausalLM.from_pretrained(options.model)
        sizes = {"n_layer": options.layers, "n_embd": options.width, "n_head": 4}
        special = {"bos_token_id": self._tokenizer.eos_token_id}
        special["eos_token_id"] = self._tokenizer.eos_token_id
        config = AutoConfig.for_model(
            "gpt2", n_positions=options.block, vocab_size=len(self._tokenizer), **sizes, **special
        )
        return AutoModelForCausalLM.from_config(config)

    def _blocks(self, rows: Dataset, version: Version) -> Dataset:
        """Return a version of texts as blocks of tokens, each text with an end; the rest is cut."""
        if version.privatizer:
            # Without this a second map over the same rows would return the first release again.
            rows = rows.map(version.privatizer, batched=True, load_from_cache_file=False)
        texts = [text or "" for text in rows[self._options.text_column]]
        end = self._tokenizer.eos_token_id
        tokens = [
            token
            for ids in self._tokenizer(texts, add_special_tokens=False)["input_ids"]
            for token in (*ids, end)
        ]
        size = self._options.block
        blocks = [tokens[at : at + size] for at in range(0, len(tokens) - size + 1, size)]
        return Dataset.from_dict({"input_ids": blocks, "labels": blocks})


def public_tokenizer(space: EmbeddingSpace, size: int) -> Any:
    """Return a byte-level tokenizer that is learned from the words of a space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(space.words, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)


if __name__ == "__main__":
    main()

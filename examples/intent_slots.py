"""Perturb the slots of spoken commands, and see whether their intents can still be told.

    python examples/intent_slots.py --data snips.jsonl

Each row is a command: a list of tokens, beside it a list of BIO tags, and an intent. The tokens
with a tag are perturbed, in the training part and in the test part, and a classifier of intents
(TF-IDF and logistic regression) is trained on what is released. Printed are its accuracy, the share
of slot words that came out unchanged, and some commands before and after, for each ε.
"""

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import datasets
from datasets import Dataset
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from hf_dxprivacy import DxPrivatizer, SlotPrivatizer
from hf_dxprivacy.slots import TagColumnSelector


def main() -> None:
    """Classify plain and released commands, and print how well that went."""
    options = parse_arguments()
    datasets.disable_progress_bars()
    train, test = (
        read_rows(options, split, rows)
        for split, rows in (
            (options.train_split, options.train_rows or options.rows),
            (options.test_split, options.test_rows or options.rows),
        )
    )
    print(f"{len(train)} commands to train with, {len(test)} to test with\n")
    print("| ε | perturbed | accuracy | slot words unchanged |")
    print("| ---: | --- | ---: | ---: |")
    print(f"| none | nothing | {accuracy(train, test):.1%} | 100.0% |")
    examples = {"plain": texts(test)[: options.shown]}
    for epsilon in options.epsilon:
        for name, privatizer in privatizers(options, epsilon).items():
            released = [part.map(privatizer, batched=True) for part in (train, test)]
            share = unchanged(test, released[1])
            print(f"| {epsilon:g} | {name} | {accuracy(*released):.1%} | {share:.1%} |")
            examples[f"ε = {epsilon:g}, {name}"] = texts(released[1])[: options.shown]
    for name, lines in examples.items():
        print(f"\n{name}:", *lines, sep="\n  ")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--data", required=True, help="a .jsonl file (.gz too), or a dataset on the Hub")
    add("--tokens_column", default="tokens", help="lists of tokens")
    add("--tags_column", default="slot_tags", help="lists of BIO tags")
    add("--intent_column", default="intent")
    add("--train_split", default="train", help="of the Hub, or by the column 'split' of a file")
    add("--test_split", default="test")
    add("--rows", type=int, help="of each part; all by default")
    add("--train_rows", type=int, help="as many as --rows by default")
    add("--test_rows", type=int, help="as many as --rows by default")
    add("--space", default="wordnet-gloss", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", default="calibrated")
    add("--epsilon", type=float, nargs="+", default=[2.0, 5.0, 8.0, 12.0])
    add("--shown", type=int, default=4, help="how many commands to print")
    return parser.parse_args()


def read_rows(options: argparse.Namespace, split: str, rows: int | None) -> Dataset:
    """Read tokens, tags and intents of a split."""
    if Path(options.data).is_file():
        data = datasets.load_dataset("json", data_files=options.data, split="train")
        if "split" in data.column_names:
            data = data.filter(lambda name: name == split, input_columns="split")
    else:
        data = datasets.load_dataset(options.data, split=split)
    data = data.select(range(min(rows or len(data), len(data))))
    columns = (options.tokens_column, options.tags_column, options.intent_column)
    names = ("tokens", "tags", "intent")
    return Dataset.from_dict(
        {name: data[column][:] for name, column in zip(names, columns, strict=True)}
    )


def privatizers(options: argparse.Namespace, epsilon: float) -> dict[str, DxPrivatizer]:
    """Return what perturbs slots, and for comparison what perturbs every word."""
    law = (options.space, options.mechanism, epsilon)
    slots = TagColumnSelector("tags")
    return {
        "slots": SlotPrivatizer(*law, selector=slots, text_column="tokens"),
        "every word": DxPrivatizer(*law, text_column="tokens"),
    }


def accuracy(train: Dataset, test: Dataset) -> float:
    """Train a classifier of intents with some commands, and test it with others."""
    classifier = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0, max_iter=1000))
    classifier.fit(texts(train), train["intent"][:])
    return float(classifier.score(texts(test), test["intent"][:]))


def texts(data: Dataset) -> list[str]:
    """Return the commands as texts."""
    return [" ".join(tokens) for tokens in data["tokens"]]


def unchanged(before: Dataset, after: Dataset) -> float:
    """Return the share of slot words that came out as they were."""
    parts: Sequence[list[list[str]]] = (before["tags"][:], before["tokens"][:], after["tokens"][:])
    words = zip(*map(chain.from_iterable, parts), strict=True)
    same = [old.lower() == new.lower() for tag, old, new in words if tag != "O"]
    return sum(same) / max(len(same), 1)


if __name__ == "__main__":
    main()

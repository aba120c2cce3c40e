"""Make a pool of public sentences, release a training set as sentences of it, and train on that.

    python examples/sentence_pool.py --public imdb.jsonl.gz --data mr.jsonl.gz \
        --model sentence-transformers/all-MiniLM-L6-v2 --local_dp 8 12

The public texts are split into sentences, which must be yours to publish: a release is made of
them. Each private training text becomes one sentence of the pool, with one bound for the whole
text, and a model of `transformers` is trained on what is released. It is tested on plain texts,
beside one that was trained on plain texts. Printed are the guarantee, accuracies, and examples.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import numpy as np
import transformers
from datasets import Dataset
from sweeps import training_arguments
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_dxprivacy import DxPrivacyError, SentencePool, SentencePrivatizer, publishable
from hf_dxprivacy.calibration import epsilon_for_local_bound
from hf_dxprivacy.evaluation import TextTask, read_parts, read_task
from hf_dxprivacy.sentences import (
    SentenceEncoder,
    TransformersEncoder,
    WordEncoder,
    split_sentences,
)


def main() -> None:
    """Make or load the pool, release, train, and print how well that went."""
    options = parse_arguments()
    datasets.disable_progress_bars()
    pool = make_pool(options)
    task = read_task(options.data, target_column=options.target_column, rows=options.rows)
    train, test = (task.rows.select(part) for part in task.parts(0))
    print(f"{pool}; {len(train)} texts to train with, {len(test)} to test with\n")
    found = [("none", "∞", accuracy(options, task, train, test))]
    for bound in options.local_dp:
        epsilon = epsilon_for_local_bound(pool, "hierarchical", bound)
        privatizer = SentencePrivatizer(pool, epsilon=epsilon, seed=options.seed)
        # A second map over the same rows would otherwise return the first release again.
        mapped = train.map(privatizer, batched=True, load_from_cache_file=False)
        released = publishable(mapped, privatizer)
        print(privatizer.guarantee, "\n")
        for row in range(min(options.shown, len(train))):
            print(f"  {train[row]['text']}\n  → {released[row]['text']}\n")
        local = f"{privatizer.guarantee.ldp_epsilon:.3g}"
        found.append((f"{epsilon:.3g}", local, accuracy(options, task, released, test)))
    print("| ε | local DP of a text | accuracy on plain texts |\n| --- | --- | ---: |")
    for name, local, value in found:
        print(f"| {name} | {local} | {value:.1%} |")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--public", required=True, help="public texts: a .jsonl or .csv file, or a stored pool")
    add("--public_column", default="text", help="the texts in that file")
    add("--public_labels", metavar="COLUMN", help="learn from these what is near (16 directions)")
    add("--size", type=int, default=20_000, help="sentences of the pool, at most (%(default)s)")
    add("--encoder", help="folder or id of a model; by default word vectors of --space")
    add("--space", default="english", help="see EmbeddingSpace.from_pretrained")
    add("--save_pool", type=Path, help="keep the pool in this folder")
    add("--data", required=True, help="private texts with labels: a file, or a dataset on the Hub")
    add("--target_column", help="'label' by default")
    add("--rows", type=int, help="of each part of the data; all by default")
    add("--local_dp", type=float, nargs="+", default=[8.0, 12.0], help="bounds of a whole text")
    add("--model", required=True, help="any model of transformers: folder, or id on the Hub")
    add("--epochs", type=float, default=2.0)
    add("--batch_size", type=int, default=16)
    add("--learning_rate", type=float, default=1e-4)
    add("--max_length", type=int, default=64, help="tokens of a text")
    add("--seed", type=int, help="repeats a run; a seed that is known protects nothing")
    add("--shown", type=int, default=3, help="how many releases to print")
    return parser.parse_args()


def make_pool(options: argparse.Namespace) -> SentencePool:
    """Return a pool of public sentences."""
    if not Path(options.public).is_file():
        return SentencePool.from_pretrained(options.public)
    rows = read_parts(options.public)[0]
    encoder: SentenceEncoder = (
        TransformersEncoder(options.encoder) if options.encoder else WordEncoder(options.space)
    )
    labels: dict[str, Any] = {}
    if options.public_labels:
        chosen = rows.select_columns([options.public_column, options.public_labels])
        labels = {
            "labelled": (chosen[options.public_column][:], chosen[options.public_labels][:]),
            "dimensions": 16,
        }
    texts = rows[options.public_column]
    sentences = (sentence for text in texts for sentence in split_sentences(text))
    pool = SentencePool.from_sentences(
        islice(sentences, options.size), encoder, progress=False, **labels
    )
    if options.save_pool:
        pool.save_pretrained(options.save_pool)
    return pool


def accuracy(options: argparse.Namespace, task: TextTask, train: Dataset, test: Dataset) -> float:
    """Train a model on some texts, and return its accuracy on others."""
    transformers.set_seed(options.seed or 0)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForSequenceClassification.from_pretrained(
        options.model, num_labels=len(task.labels), ignore_mismatched_sizes=True
    )

    def encoded(batch: dict[str, Any]) -> dict[str, Any]:
        inputs = tokenizer(batch["text"], truncation=True, max_length=options.max_length)
        return {**inputs, "labels": batch["target"]}

    with TemporaryDirectory() as options.output:
        trainer = transformers.Trainer(
            model,
            training_arguments(options, seed=options.seed or 0),
            train_dataset=train.map(encoded, batched=True, remove_columns=train.column_names),
            processing_class=tokenizer,
        )
        trainer.train()
        rows = test.map(encoded, batched=True, remove_columns=test.column_names)
        found = trainer.predict(rows)
    return float((np.argmax(found.predictions, axis=1) == found.label_ids).mean())


if __name__ == "__main__":
    try:
        main()
    except DxPrivacyError as error:
        sys.exit(f"sentence_pool: {error}")

"""Fine-tune a model of transformers on privatized texts, or test it with them.

    python examples/finetune_classifier.py --data trec6.jsonl.gz --epsilon 6 8 12 \
        --model sentence-transformers/all-MiniLM-L6-v2

Any dataset with a text column, or two for pairs, and a label or a score; any model for sequence
classification. Three set-ups, after section 5.2 of Feyisetan et al. (WSDM 2020):

  train  the model is trained on privatized texts, and used on plain ones
  test   the model is trained on plain texts, and used on privatized ones
  both   it is trained and used on privatized texts

Printed is a table with 95 % Student t intervals over the repeats, each with releases and a seed of
its own. Those of two or three repeats are wide, and may pass the ends of the scale.
--runs keeps what is done: the same command goes on from there.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import numpy as np
import transformers
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import (
    BASELINES,
    SELECTORS,
    SPLITS,
    TEXT_COLUMNS,
    Measurement,
    Runs,
    TextTask,
    Version,
    classification_scores,
    correlation_scores,
    make_selector,
    pivot,
    read_task,
    versions,
)
from hf_dxprivacy.results import ORIGINAL, Results

SETUPS = ("train", "test", "both")
PLAIN = Version(ORIGINAL)
# Options that a figure does not depend on, or that it is told apart by anyway.
WHERE = ("data", "setup", "mechanism", "epsilon", "baseline", "repeats")
WHAT = ("output", "push_to_hub", "runs", "save")


def main() -> None:
    """Train and test in every set-up, and print how well that went."""
    options = parse_arguments()
    datasets.disable_progress_bars()
    with TemporaryDirectory() as temporary:
        options.output = options.output or Path(temporary)
        sweep(options)


def sweep(options: argparse.Namespace) -> None:
    """Do so, with a folder for the trainer."""
    task = read_task(
        options.data,
        text_columns=options.text_columns,
        target_column=options.target_column,
        rows=options.rows,
        config=options.config,
        splits=options.splits,
    )
    space = EmbeddingSpace.from_pretrained(options.space)
    selector = make_selector(options.selector, task.texts, options.selector_epsilon)
    models, runs, results = Models(task, options), Runs(options.runs), Results()
    for version in versions(
        space,
        options.mechanism,
        options.epsilon,
        baselines=options.baseline,
        selector=selector,
        text_column=task.text_columns,
    ):
        for setup in options.setup:
            found = measure(options, runs, models, version, setup)
            results += found
            print(found, file=sys.stderr, flush=True)
    for setup in options.setup:
        print(f"\n{title(setup)}:\n\n{pivot(results.where(task=title(setup)))}")
    if options.save:
        results.save(options.save)
    models.publish()


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", required=True, help="a file (.jsonl, .csv, …), or a dataset on the Hub")
    add("--config", help="of a dataset on the Hub that has several")
    add("--splits", nargs="+", default=SPLITS, help="train with the first, test with the last")
    add("--text_columns", nargs="+", default=TEXT_COLUMNS, help="those that the data has are read")
    add("--target_column", help="'label' or 'score' by default")
    add("--rows", type=int, help="of each part of the data; all by default")
    add("--model", required=True, help="any model of transformers: folder, or id on the Hub")
    add("--setup", nargs="+", choices=SETUPS, default=["train", "test"], help="see above")
    add("--space", default="wordnet-gloss", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", nargs="*", default=["calibrated"])
    add("--epsilon", type=float, nargs="+", default=[6.0, 8.0, 12.0])
    add("--baseline", nargs="*", choices=BASELINES, default=BASELINES)
    add("--selector", choices=SELECTORS, default=SELECTORS[0], help="which words are privatized")
    add("--selector_epsilon", type=float, default=10.0, help="ε_g of 'low-transition', per text")
    add("--repeats", type=int, default=1, help="the seeds are 0, 1, …")
    add("--epochs", type=float, default=3.0)
    add("--batch_size", type=int, default=16)
    add("--learning_rate", type=float, default=1e-4)
    add("--max_length", type=int, default=128, help="tokens of a text, or of a pair")
    add("--output", type=Path, help="keep the model that was trained last in this folder")
    add("--push_to_hub", metavar="REPO", help="push the last trained model to this repository")
    add("--runs", type=Path, help="JSON lines file that keeps what is done")
    add("--save", type=Path, help="write all figures there, as JSON lines")
    return parser.parse_args()


def title(setup: str) -> str:
    """Name a set-up, for the results."""
    return f"fine-tuning, {setup} privatized"


def measure(
    options: argparse.Namespace, runs: Runs, models: "Models", version: Version, setup: str
) -> Results:
    """Return the figures of one version in one set-up, from the file where they are done."""
    settings = {k: v for k, v in vars(options).items() if k not in (*WHERE, *WHAT)}
    cell = Measurement(title(setup), models.task.name, version.name, version.epsilon, settings)
    trained, tested = (
        version if version.privatizer and setup in (part, "both") else PLAIN
        for part in ("train", "test")
    )
    return runs.measure(
        cell, options.repeats, lambda repeat: models.scores(trained, tested, repeat)
    )


class Models:
    """The models that are trained on the versions of a dataset.

    Args:
        task: The dataset.
        options: The command line.
    """

    def __init__(self, task: TextTask, options: argparse.Namespace) -> None:
        self.task, self._options = task, options
        self._tokenizer = AutoTokenizer.from_pretrained(options.model)
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._last: transformers.Trainer | None = None
        # Those of plain texts and of one version are used again; see the order in `main`.
        self._trained = lru_cache(maxsize=2 * options.repeats)(self._train)

    def scores(self, trained: Version, tested: Version, repeat: int) -> dict[str, float]:
        """Return how well the model of one version does on another one."""
        rows = self.task.parts(repeat)[1]
        trainer = self._trained(trained, repeat)
        found = trainer.predict(self._inputs(rows, tested)).predictions
        truth = self.task.targets[rows]
        if self.task.labels:
            return classification_scores(truth, found.argmax(axis=1))
        groups = self.task.groups
        return correlation_scores(truth, found[:, 0], groups and [groups[row] for row in rows])

    def publish(self) -> None:
        """Save the model that was trained last, and push it if asked to."""
        if self._last is None:
            return
        self._last.save_model()
        if self._options.push_to_hub:
            print(f"\npushed: {self._last.push_to_hub()}")

    def _train(self, version: Version, repeat: int) -> transformers.Trainer:
        transformers.set_seed(repeat)
        self._last = transformers.Trainer(
            self._new_model(),
            self._arguments(repeat),
            train_dataset=self._inputs(self.task.parts(repeat)[0], version),
            processing_class=self._tokenizer,
        )
        self._last.train()
        return self._last

    def _new_model(self) -> Any:
        labels = self.task.labels
        head = {
            "num_labels": len(labels) or 1,
            "pad_token_id": self._tokenizer.pad_token_id,
            "problem_type": "single_label_classification" if labels else "regression",
            "id2label": dict(enumerate(labels or ["score"])),
            "label2id": {name: index for index, name in enumerate(labels or ["score"])},
        }
        return AutoModelForSequenceClassification.from_pretrained(
            self._options.model, ignore_mismatched_sizes=True, **head
        )

    def _arguments(self, seed: int) -> transformers.TrainingArguments:
        return transformers.TrainingArguments(
            output_dir=str(self._options.output),
            num_train_epochs=self._options.epochs,
            per_device_train_batch_size=self._options.batch_size,
            per_device_eval_batch_size=4 * self._options.batch_size,
            learning_rate=self._options.learning_rate,
            seed=seed,
            hub_model_id=self._options.push_to_hub,
            save_strategy="no",
            report_to="none",
            dataloader_pin_memory=False,
            disable_tqdm=True,
        )

    def _inputs(self, rows: NDArray[np.int64], version: Version) -> datasets.Dataset:
        """Return the inputs of the model for some rows of a version, with labels."""
        part = self.task.rows.select(rows)
        if version.privatizer:
            # Without this a second map over the same rows would return the first release again.
            part = part.map(version.privatizer, batched=True, load_from_cache_file=False)
        # `map` hashes what it is given: no method, with which the trained models would be hashed.
        encode = partial(encoded, self._tokenizer, self.task.text_columns, self._options.max_length)
        return part.map(encode, batched=True, remove_columns=part.column_names)


def encoded(
    tokenizer: Any, columns: Sequence[str], length: int, batch: dict[str, Any]
) -> dict[str, Any]:
    """Return the inputs of a model for a batch, with labels."""
    texts = [batch[name] for name in columns]
    inputs = tokenizer(*texts, truncation=True, max_length=length)
    return {**inputs, "labels": batch["target"]}


if __name__ == "__main__":
    main()

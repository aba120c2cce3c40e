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
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import datasets
import numpy as np
import transformers
from numpy.typing import NDArray
from sweeps import (
    add_training,
    by_setup,
    each_version,
    make_parser,
    training_arguments,
    with_folder,
)
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_dxprivacy.evaluation import (
    TEXT_COLUMNS,
    TextTask,
    Version,
    classification_scores,
    correlation_scores,
    read_task,
)

SETUPS = ("train", "test", "both")


def main() -> None:
    """Train and test in every set-up, and print how well that went."""
    with_folder(parse_arguments(), sweep)


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
    models = Models(task, options)
    chosen = each_version(options, task.texts, task.text_columns)
    by_setup(options, task.name, chosen, "fine-tuning", models.scores)
    models.publish()


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    add_training(parser, SETUPS)
    add = parser.add_argument
    add("--text_columns", nargs="+", default=TEXT_COLUMNS, help="those that the data has are read")
    add("--target_column", help="'label' or 'score' by default")
    add("--model", required=True, help="any model of transformers: folder, or id on the Hub")
    add("--learning_rate", type=float, default=1e-4)
    add("--max_length", type=int, default=128, help="tokens of a text, or of a pair")
    add("--push_to_hub", metavar="REPO", help="push the last trained model to this repository")
    return parser.parse_args()


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
            training_arguments(
                self._options,
                per_device_eval_batch_size=4 * self._options.batch_size,
                seed=repeat,
                hub_model_id=self._options.push_to_hub,
            ),
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

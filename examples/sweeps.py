"""What examples that compare mechanisms share: options, the loop, and settings of trainers."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import (
    BASELINES,
    SELECTORS,
    SPLITS,
    Measurement,
    Runs,
    Version,
    make_selector,
    pivot,
    versions,
)
from hf_dxprivacy.results import ORIGINAL, Results

PLAIN = Version(ORIGINAL)
# Options that a figure does not depend on, or that it is told apart by anyway.
APART = ("data", "setup", "mechanism", "epsilon", "baseline", "repeats")
APART += ("output", "push_to_hub", "runs", "save")


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every comparison has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--config", help="of a dataset on the Hub that has several")
    add("--splits", nargs="+", default=SPLITS, help="train with the first, test with the last")
    add("--rows", type=int, help="of each part of the data; all by default")
    add("--space", default="wordnet-gloss", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", nargs="*", default=["calibrated"])
    add("--epsilon", type=float, nargs="+", default=[6.0, 8.0, 12.0])
    add("--baseline", nargs="*", choices=BASELINES, default=BASELINES)
    add("--selector", choices=SELECTORS, default=SELECTORS[0], help="which words are privatized")
    add("--selector_epsilon", type=float, default=10.0, help="ε_g of 'low-transition', per text")
    add("--repeats", type=int, default=1, help="the seeds are 0, 1, …")
    add("--runs", type=Path, help="JSON lines file that keeps what is done")
    add("--save", type=Path, help="write all figures there, as JSON lines")
    return parser


def add_training(parser: argparse.ArgumentParser, setups: Sequence[str]) -> None:
    """Add the options of models that are trained."""
    add = parser.add_argument
    add("--data", required=True, help="a file (.jsonl, .csv, …), or a dataset on the Hub")
    add("--setup", nargs="+", choices=setups, default=["train", "test"], help="see above")
    add("--epochs", type=float, default=3.0)
    add("--batch_size", type=int, default=16)
    add("--output", type=Path, help="keep what the trainer writes in this folder")


def with_folder(options: argparse.Namespace, sweep: Callable[[argparse.Namespace], None]) -> None:
    """Run with a folder for the trainer, and without the bars of `datasets`."""
    datasets.disable_progress_bars()
    with TemporaryDirectory() as temporary:
        options.output = options.output or Path(temporary)
        sweep(options)


def training_arguments(options: argparse.Namespace, **settings: Any) -> Any:
    """Return the settings of a trainer that is quiet and keeps no state."""
    from transformers import TrainingArguments

    return TrainingArguments(
        output_dir=str(options.output),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        **settings,
    )


def each_version(
    options: argparse.Namespace, texts: Sequence[str], columns: Any, **more: Any
) -> Iterator[Version]:
    """Yield the originals, the baselines, and each mechanism at each ε."""
    selector = make_selector(options.selector, texts, options.selector_epsilon)
    space = EmbeddingSpace.from_pretrained(options.space)
    given = {"baselines": options.baseline, "selector": selector, "text_column": columns}
    return versions(space, options.mechanism, options.epsilon, **given, **more)


def by_setup(
    options: argparse.Namespace,
    dataset: str,
    chosen: Iterator[Version],
    what: str,
    scores: Callable[[Version, Version, int], dict[str, float]],
    **shown: Any,
) -> None:
    """Measure every version in every set-up, and print a table for each set-up.

    Args:
        options: The command line.
        dataset: Its name, for the results.
        chosen: The versions.
        what: What is trained.
        scores: Returns the figures of a model of one version on another, by the repeat.
        **shown: How `pivot` shows them.
    """
    settings = {k: v for k, v in vars(options).items() if k not in APART}
    titles = {setup: f"{what}, {setup} privatized" for setup in options.setup}
    runs, results = Runs(options.runs), Results()
    for version in chosen:
        for setup, title in titles.items():
            trained, tested = (
                version if version.privatizer and setup in (part, "both") else PLAIN
                for part in ("train", "test")
            )
            cell = Measurement(title, dataset, version.name, version.epsilon, settings)
            found = runs.measure(cell, options.repeats, partial(scores, trained, tested))
            results += found
            print(found, file=sys.stderr, flush=True)
    for title in titles.values():
        print(f"\n{title}:\n\n{pivot(results.where(task=title), **shown)}")
    if options.save:
        results.save(options.save)

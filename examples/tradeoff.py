"""What an ε costs a task, and what it hides.

    python examples/tradeoff.py --data mr.jsonl.gz --mechanism tem calibrated --epsilon 4 8 16

For each dataset, mechanism and ε the texts are privatized, and a logistic regression on averaged
word vectors is trained and tested; for pairs of texts on |u − v| and u·v of their two vectors u and
v. Pairs with a score (semantic similarity) need no training: the score is compared with the cosine.
With --privacy the same mechanisms are looked at from the other side: N_w, the probability that a
word stays, and how often the best adversary guesses a word, both for the most frequent words of the
texts and weighted by how often they occur.

Printed is a table with 95 % intervals over the repeats, each with a release, and where the data has
no test part also a test part, of its own. --runs keeps what is done: the same command goes on from
there.
"""

import argparse
import sys
from collections import Counter
from functools import cached_property

import datasets
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sweeps import each_version, make_parser

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.evaluation import (
    TEXT_COLUMNS,
    Measurement,
    Runs,
    TextTask,
    Version,
    averaged_vectors,
    classification_scores,
    correlation_scores,
    cosines,
    pair_features,
    pivot,
    read_task,
    reconstruction,
)
from hf_dxprivacy.report import draw_results, draw_tradeoff
from hf_dxprivacy.results import Results
from hf_dxprivacy.text import RowReader

KEPT, GUESSED = "N_w", "top-1"
# Options that a figure does not depend on, or that it is told apart by anyway.
WHERE = ("data", "mechanism", "epsilon", "lam", "baseline", "privatize", "repeats")
WHAT = ("metrics", "privacy", "attack_words", "draws", "runs", "save", "plot")


def main() -> None:
    """Measure all cells, print them side by side, and draw them."""
    options = parse_arguments()
    datasets.disable_progress_bars()
    features = EmbeddingSpace.from_pretrained(options.features)
    runs, results = Runs(options.runs), Results()
    for data in options.data:
        task = read_task(
            data,
            text_columns=options.text_columns,
            target_column=options.target_column,
            rows=options.rows,
            config=options.config,
            splits=options.splits,
        )
        sweep = Sweep(task, features, options.privatize)
        for version in each_version(options, task.texts, task.text_columns, lams=options.lam):
            found = measure(options, runs, sweep, version)
            results += found
            print(found, file=sys.stderr, flush=True)
    shown = [r for r in results if r.metric in (*options.metrics, KEPT, GUESSED)]
    print(pivot(Results(shown)))
    if options.save:
        results.save(options.save)
    if options.plot:
        draw(results, options)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.set_defaults(
        mechanism=["laplace", "tem", "calibrated"], epsilon=[4.0, 6.0, 8.0, 12.0, 16.0], repeats=5
    )
    add = parser.add_argument
    add("--data", nargs="+", required=True, help="files (.jsonl, .csv, …), or datasets on the Hub")
    add("--text_columns", nargs="+", default=TEXT_COLUMNS, help="those that the data has are read")
    add("--target_column", help="'label' or 'score' by default")
    add(
        "--privatize",
        choices=("train", "test", "both"),
        default="train",
        help="what is privatized; the rest stays plain",
    )
    add("--lam", type=float, nargs="+", default=[1.0], help="λ of mechanism 'mahalanobis'")
    add("--features", default="wordnet-gloss", help="Euclidean space of the averaged vectors")
    add("--privacy", action="store_true", help="measure what the mechanisms hide, too")
    add("--attack_words", type=int, default=300, help="how many frequent words, for --privacy")
    add("--draws", type=int, default=100, help="for --privacy of mechanisms without exact laws")
    add("--metrics", nargs="+", default=["accuracy", "Pearson"], help="shown in the table")
    add("--plot", help="draw pictures into files that begin so")
    return parser.parse_args()


def measure(options: argparse.Namespace, runs: Runs, sweep: "Sweep", version: Version) -> Results:
    """Return the figures of one version, from the file where they are done."""
    settings = {k: v for k, v in vars(options).items() if k not in (*WHERE, *WHAT)}
    settings |= version.options
    where = (sweep.task.name, version.name, version.epsilon)
    found = runs.measure(
        Measurement(sweep.kind, *where, settings),
        options.repeats,
        lambda repeat: sweep.scores(version.privatizer, repeat),
    )
    if options.privacy and version.privatizer is not None:
        privatizer, prior = version.privatizer, sweep.prior(version.privatizer, options)
        settings |= {"attack_words": options.attack_words, "draws": options.draws}
        found += runs.measure(
            Measurement("words", *where, settings),
            1,
            lambda _: hidden(privatizer, prior, options.draws),
        )
    return found


class Sweep:
    """One dataset, with what all versions of it share.

    Args:
        task: The dataset.
        features: Where the vectors of words come from.
        privatize: "train", "test" or "both".
    """

    def __init__(self, task: TextTask, features: EmbeddingSpace, privatize: str) -> None:
        self.task, self._features, self._privatize = task, features, privatize

    @property
    def kind(self) -> str:
        """What is done, for the results."""
        if not self.task.labels:
            return "similarity, both texts privatized"
        return f"classification, {self._privatize} privatized"

    @cached_property
    def _plain(self) -> NDArray[np.float64]:
        return self._vectors(self.task.rows)

    def scores(self, privatizer: DxPrivatizer | None, repeat: int) -> dict[str, float]:
        """Release, train and test once."""
        task = self.task
        if not task.labels:
            found = self._released(np.arange(len(task.rows)), privatizer)
            return correlation_scores(task.targets, cosines(*np.hsplit(found, 2)), task.groups)
        train, test = task.parts(repeat)
        x_train, x_test = (
            self._relation(self._released(rows, privatizer if chosen else None))
            for rows, chosen in (
                (train, self._privatize != "test"),
                (test, self._privatize != "train"),
            )
        )
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        model.fit(x_train, task.targets[train])
        return classification_scores(task.targets[test], model.predict(x_test))

    def prior(self, privatizer: DxPrivatizer, options: argparse.Namespace) -> dict[str, float]:
        """Return the most frequent words of the texts that the space has, and how often each is."""
        reader, known = RowReader(), privatizer.space
        counts = Counter(
            word.lower() for text in self.task.texts for word in reader.read_text(text).words
        )
        frequent = [(word, count) for word, count in counts.most_common() if word in known]
        return {word: float(count) for word, count in frequent[: options.attack_words]}

    def _released(
        self, rows: NDArray[np.int64], privatizer: DxPrivatizer | None
    ) -> NDArray[np.float64]:
        if privatizer is None:
            return self._plain[rows]
        part = self.task.rows.select(rows)
        # Without this a second map over the same rows would return the first release again.
        return self._vectors(part.map(privatizer, batched=True, load_from_cache_file=False))

    def _vectors(self, data: datasets.Dataset) -> NDArray[np.float64]:
        """Return the averaged vectors of each text column, side by side."""
        columns = self.task.text_columns
        return np.hstack([averaged_vectors(data[name][:], self._features) for name in columns])

    def _relation(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self.task.text_columns) == 1:
            return vectors
        return pair_features(*np.hsplit(vectors, 2))


def hidden(privatizer: DxPrivatizer, prior: dict[str, float], draws: int) -> dict[str, float]:
    """Return how likely a word stays, and how likely the best adversary guesses it."""
    mechanism, words = privatizer.mechanism, list(prior)
    kept = privacy_statistics(mechanism, words, runs=draws, progress=False).kept
    attack = reconstruction(mechanism, prior, tops=(1,), bands=(), draws=draws)
    return {
        KEPT: float(np.average(kept, weights=list(prior.values()))),
        GUESSED: attack.results[0].value,
    }


def draw(results: Results, options: argparse.Namespace) -> None:
    """Draw each metric against ε, and against what the mechanisms hide."""
    for metric in options.metrics:
        useful = results.where(metric=metric)
        if not useful:
            continue
        draw_results(results, metric).save(f"{options.plot}-{metric}.png")
        for name in dict.fromkeys(r.dataset for r in useful) if options.privacy else ():
            for leak in (KEPT, GUESSED):
                here = results.where(dataset=name)
                picture = draw_tradeoff(here.where(metric=metric), here.where(metric=leak))
                picture.save(f"{options.plot}-{name}-{metric}-{leak}.png")


if __name__ == "__main__":
    main()

"""Figures of one release: what it keeps, what a classifier learns from it, who is recognized."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import lazy_property, require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation.attribution import author_attribution
from hf_dxprivacy.evaluation.candidates import running_words
from hf_dxprivacy.evaluation.evaluation_data import EvaluationData, rows_of
from hf_dxprivacy.evaluation.shadow import membership_inference
from hf_dxprivacy.evaluation.tasks import averaged_vectors
from hf_dxprivacy.results import EXTRA, Interval, mean_interval, share_interval
from hf_dxprivacy.sentences import SentenceEncoder
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import TextRow
from hf_dxprivacy.verify.inputs import blocks

# Parts of the texts, each tested by a model that the others trained.
PARTS = 5
# A word that is among so many nearest ones counts as near.
NEAR = 100
# A release with another number of words in more texts than this was not made word by word.
ALIGNED = 0.5
# Of a model that is fine-tuned.
EPOCHS, RATE, BATCH, TOKENS = 3, 1e-4, 16, 128

Values = NDArray[np.float64]
# A figure of one release: a number, or one for each of its texts.
Found = dict[str, "float | Values"]
# Releases texts with noise of their own for a number.
Fresh = Callable[[Sequence[str], int], list[str]]


@dataclass(frozen=True)
class SampleSizes:
    """How much is looked at, at most. Kept comparisons are told apart by its `repr`."""

    rows: int = 5000  # of the sample
    words: int = 200_000  # of the sample, about
    users: int = 50  # of the author attack
    subsets: int = 50  # of the features, in the author attack
    guessed: int = 1000  # most frequent words that the Bayes adversary tells apart
    inputs: int = 100  # words whose laws are compared to verify a claim
    draws: int = 200_000  # by which claims are verified where no law is known
    members: int = 2000  # texts of the membership attack; 0 for none
    seconds: float = 60.0  # that draws from a program may take, about


QUICK = SampleSizes(
    rows=1000,
    words=40_000,
    users=20,
    subsets=25,
    guessed=500,
    inputs=40,
    draws=40_000,
    members=0,
    seconds=10.0,
)


class Learner(NamedTuple):
    """Turns texts into rows of features, and makes an untrained classifier of such rows."""

    features: Callable[[Sequence[str]], NDArray[Any]]
    make: Callable[[], Any]
    # How many parts of the texts are tested.
    parts: int = PARTS


class FineTuned:
    """A model of `transformers`, fine-tuned by its `Trainer`; each `fit` starts anew."""

    def __init__(self, model_id: str, classes: int, seed: int) -> None:
        self._model_id, self._classes, self._seed = model_id, classes, seed
        self._tokenizer = require("transformers", "models").AutoTokenizer.from_pretrained(model_id)

    def fit(self, texts: NDArray[Any], classes: NDArray[np.int64]) -> "FineTuned":
        """Fine-tune the model."""
        transformers = require("transformers", "models")
        transformers.set_seed(self._seed)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            self._model_id, num_labels=self._classes, ignore_mismatched_sizes=True
        )
        with TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                output_dir=folder,
                num_train_epochs=EPOCHS,
                per_device_train_batch_size=BATCH,
                per_device_eval_batch_size=4 * BATCH,
                learning_rate=RATE,
                seed=self._seed,
                save_strategy="no",
                report_to="none",
                dataloader_pin_memory=False,
                disable_tqdm=True,
            )
            rows = self._inputs(texts, classes)
            self._trainer = transformers.Trainer(
                model, arguments, train_dataset=rows, processing_class=self._tokenizer
            )
            self._trainer.train()
        return self

    def predict(self, texts: NDArray[Any]) -> NDArray[np.int64]:
        """Return the likeliest class of each text."""
        found = self._trainer.predict(self._inputs(texts, np.zeros(len(texts), dtype=np.int64)))
        return np.asarray(found.predictions.argmax(axis=1))

    def _inputs(self, texts: NDArray[Any], classes: NDArray[np.int64]) -> Any:
        from datasets import Dataset

        encoded = self._tokenizer(texts.tolist(), truncation=True, max_length=TOKENS)
        return Dataset.from_dict({**encoded, "labels": classes.tolist()})


def create_learner(model: str | None, space: EmbeddingSpace, classes: int, seed: int) -> Learner:
    """Return "vectors", "tfidf", or a model to fine-tune; by default what suits the space."""
    name = model or ("vectors" if space.metric == "euclidean" else "tfidf")
    texts = partial(np.array, dtype=object)
    if name not in ("vectors", "tfidf"):
        # A model that takes minutes is tested on the first part alone.
        return Learner(texts, lambda: FineTuned(name, classes, seed), parts=1)
    pipeline = require("sklearn.pipeline", EXTRA).make_pipeline
    linear = partial(require("sklearn.linear_model", EXTRA).LogisticRegression, max_iter=1000)
    if name == "vectors":
        scale = require("sklearn.preprocessing", EXTRA).StandardScaler
        features = partial(averaged_vectors, space=space)
        return Learner(features, lambda: pipeline(scale(), linear(C=0.01)))
    counts = require("sklearn.feature_extraction.text", EXTRA).TfidfVectorizer
    pairs = partial(counts, ngram_range=(1, 2), sublinear_tf=True)
    return Learner(texts, lambda: pipeline(pairs(), linear(C=10.0)))


@dataclass(eq=False)
class Evaluator:
    """What all releases of a comparison are measured by; without classes there is no learner.

    `space` is public, for near words and averaged vectors. `encoder` is for similarity, or None.
    """

    data: EvaluationData
    space: EmbeddingSpace
    sizes: SampleSizes
    learner: Learner | None
    encoder: SentenceEncoder | None
    readability: Any
    seed: int

    @lazy_property
    def _words(self) -> list[TextRow]:
        return rows_of(self._of_sample(self.data.texts))

    @lazy_property
    def _ids(self) -> NDArray[np.int64]:
        """Rows of the space of all words, as privatizers look them up."""
        return look_up_rows(self._words, self.space)

    @lazy_property
    def median_words(self) -> float:
        """Median number of words of a text of the sample."""
        return float(np.median([len(words) for words in self._words]))

    @lazy_property
    def frequencies(self) -> dict[str, float]:
        """How often the most frequent words that the space has occur in the sample."""
        evaluated = self._ids[self._ids >= 0]
        # Numbers and names are drawn anew: to guess a shape is not to guess the word.
        counts = Counter(evaluated[~self.space.is_shape[evaluated]].tolist())
        return {self.space.words[k]: float(n) for k, n in counts.most_common(self.sizes.guessed)}

    @lazy_property
    def unknown_share(self) -> float:
        """Share of running words that the space lacks, as the report of `privatize` has it."""
        return float(np.mean(self._ids < 0)) if len(self._ids) else 0.0

    @property
    def guessed(self) -> str:
        """What b1 and b10 are shares of."""
        share = sum(self.frequencies.values()) / max(len(self._ids), 1)
        most = f"the {len(self.frequencies):,} most frequent words that the space has"
        about = f"b1 and b10 are of {most}, {share:.1%} of running words; numbers are not guessed"
        return f"{about}, and {self.unknown_share:.1%} of running words are not in the space"

    def inputs(self, unit: str) -> list[str]:
        """Return words of the space with their nearest, or texts of the sample, to draw for."""
        if unit != "word":
            chosen = self.rng("inputs").permutation(self.data.sample)[: self.sizes.inputs]
            return list(dict.fromkeys(self.data.texts[k] for k in chosen))
        rows = dict.fromkeys(running_words(self.space, self.sizes.inputs // 4).tolist())
        near = (self.space.neighbours(row, 1)[0][0] for row in rows)
        return list(dict.fromkeys([*(self.space.words[row] for row in rows), *near]))

    def rng(self, *about: str | int) -> np.random.Generator:
        """Return the generator of a split or an attacker: the same for every release."""
        return np.random.default_rng([self.seed, *"/".join(map(str, about)).encode()])

    def scores(self, released: list[str], unit: str, fresh: Fresh | None = None) -> Found:
        """Return all figures of one release of the texts.

        Words are compared if `unit` is "word". `fresh` releases texts anew for a part; it is None
        where that would take too long.
        """
        found = self._kept(released) if unit == "word" else {}
        if self.learner is not None:
            found |= self._accuracy(self.learner, released, fresh)
        if self.encoder is not None:
            found["similarity"] = np.sum(self._encoded * self._encode(released), axis=1)
        with suppress(InvalidValueError):  # no words to read
            perplexity = self.readability.perplexity(self._of_sample(released))
            found["readability"] = perplexity / self._perplexity
        if len(self.data.asked):
            found |= self._attributed(released)
        return found

    def membership(self, released: list[str]) -> Interval:
        """Return the AUC of the membership attack, with its interval over three splits."""
        rows = self.data.labelled[: self.sizes.members]
        before, after = ([texts[k] for k in rows] for texts in (self.data.texts, released))
        labels = self.data.classes[rows].tolist()
        found = membership_inference(before, after, labels, repeats=3, rng=self.rng("members"))
        best = found.where(metric="AUC")[0]
        return Interval(best.value, best.low, best.high)

    def _of_sample(self, texts: Sequence[str]) -> list[str]:
        return [texts[k] for k in self.data.sample.tolist()]

    def _kept(self, released: list[str]) -> Found:
        """Compare words place by place, in texts that have as many as before."""
        pairs = list(zip(self._words, rows_of(self._of_sample(released)), strict=True))
        lengths = np.array([len(before) for before, _ in pairs])
        same = lengths == [len(after) for _, after in pairs]
        some = [pair for pair, fits in zip(pairs, same, strict=True) if fits]
        rows = [[pair[side] for pair in some] for side in (0, 1)]
        before, after = ([word.lower() for row in each for word in row] for each in rows)
        if same.mean() < ALIGNED or not before:
            return {}
        first, second = (look_up_rows(each, self.space) for each in rows)
        # A number that was drawn anew is another one; a word without its accents is not.
        evaluated = (first >= 0) & ~self.space.is_shape[first]
        stays = (first == second) & evaluated
        stays |= [a == b for a, b in zip(before, after, strict=True)]
        known = ~stays & evaluated & (second >= 0)
        near = np.zeros(len(stays), dtype=np.bool_)
        near[known] = self._near(first[known], second[known])
        owners = np.repeat(np.flatnonzero(same), lengths[same])
        counts = np.bincount(owners, stays | near, len(pairs))
        kept = np.where(same, counts / np.maximum(lengths, 1), np.nan)
        found: Found = {"stays": float(stays.mean())}
        if known.any():
            found["near"] = float(near[known].mean())
        # A text that cannot be compared counts as the mean of those that can.
        found["kept"] = np.where(same, kept, np.nanmean(kept))
        return found

    @lazy_property
    def _reach(self) -> Values:
        """Distance of the 100th nearest word of each word; NaN until it is asked for."""
        return np.full(len(self.space), np.nan)

    def _near(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for (m,) pairs of rows whether the second is among the 100 nearest of the first."""
        wanted = np.unique(before[np.isnan(self._reach[before])])
        rank = min(NEAR, len(self.space) - 1)
        for part in blocks(wanted, len(self.space)):
            # A word is the nearest of itself.
            self._reach[part] = np.partition(self.space.distances(part), rank, axis=1)[:, rank]
        distances = self.space.pair_distances(before, after)
        return np.asarray(distances <= self._reach[before] * (1.0 + 1e-6))

    @lazy_property
    def _folds(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Places among the labelled texts to train with and to test with."""
        assert self.learner is not None
        classes = self.data.classes[self.data.labelled]
        split = require("sklearn.model_selection", EXTRA).StratifiedKFold(
            max(2, min(PARTS, int(np.bincount(classes).max()))),
            shuffle=True,
            random_state=int(self.rng("folds").integers(1 << 31)),
        )
        with warnings.catch_warnings():
            # A class with fewer texts than parts; fewer parts would make all intervals wide.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return list(split.split(np.zeros(len(classes)), classes))[: self.learner.parts]

    @lazy_property
    def _plain(self) -> tuple[Any, list[Any]]:
        """Features of the texts as they are, and the classifiers that they train."""
        assert self.learner is not None
        rows, make = self.data.labelled, self.learner.make
        features = self.learner.features([self.data.texts[k] for k in rows])
        classes = self.data.classes[rows]
        return features, [make().fit(features[train], classes[train]) for train, _ in self._folds]

    def parts(self, figure: str) -> Values:
        """Return for each text of a figure the part whose errors it shares."""
        if figure != "trained":
            return np.arange(len(self.data.sample), dtype=np.float64)
        found = np.full(len(self.data.labelled), np.nan)
        for number, (_, test) in enumerate(self._folds):
            found[test] = number if len(self._folds) > 1 else test
        return np.asarray(found[~np.isnan(found)])

    def _accuracy(self, learner: Learner, released: list[str], fresh: Fresh | None) -> Found:
        """Return for each tested text whether a classifier is right.

        One is trained on a release and reads originals, one the other way round, and one is trained
        on a release and reads another. Each part has a release of its own to train with, so that
        the parts share no noise, and what they differ by shows what noise does.
        """
        rows, (plain, readers) = self.data.labelled, self._plain
        same = released == self.data.texts
        features = plain if same else learner.features([released[k] for k in rows])
        classes = self.data.classes[rows]
        hits = {name: np.full(len(rows), np.nan) for name in ("trained", "read", "both")}
        for number, ((train, test), reader) in enumerate(zip(self._folds, readers, strict=True)):
            model = reader
            if not same:
                seen = features[train]
                if fresh is not None:
                    texts = [self.data.texts[k] for k in rows[train]]
                    seen = learner.features(fresh(texts, number))
                model = learner.make().fit(seen, classes[train])
            truth = classes[test]
            hits["trained"][test] = model.predict(plain[test]) == truth
            hits["read"][test] = reader.predict(features[test]) == truth
            hits["both"][test] = model.predict(features[test]) == truth
        return {name: values[~np.isnan(values)] for name, values in hits.items()}

    def _attributed(self, released: list[str]) -> Found:
        """Tell for each text that is asked about whether its author is found.

        By an attacker who has other texts as they were written, and by one who privatizes them.
        """
        data, found = self.data, Found()
        attackers = {"author": ("static", data.texts)}
        if released != data.texts:
            attackers["author_adaptive"] = ("adaptive", released)
        truth = [data.owners[k] for k in data.asked]
        for figure, (about, known) in attackers.items():
            nearest = author_attribution(
                [known[k] for k in data.known],
                [data.owners[k] for k in data.known],
                [released[k] for k in data.asked],
                truth,
                subsets=self.sizes.subsets,
                rng=self.rng("authors", about),
            ).nearest
            found[figure] = np.array([a == b for a, b in zip(nearest, truth, strict=True)], float)
        found.setdefault("author_adaptive", found["author"])
        return found

    def _encode(self, texts: Sequence[str]) -> Values:
        assert self.encoder is not None
        vectors: Values = self.encoder.encode_public(self._of_sample(texts))
        return vectors

    @lazy_property
    def _encoded(self) -> Values:
        return self._encode(self.data.texts)

    @lazy_property
    def _perplexity(self) -> float:
        return float(self.readability.perplexity(self._of_sample(self.data.texts)))


def combined(runs: Sequence[Found]) -> tuple[dict[str, Interval], dict[str, Values]]:
    """Return figures of several releases, with 95 % intervals, and those of single texts.

    Where there is a figure for each text, the interval is over the texts, each with its mean over
    the releases, by Clopper and Pearson if all are 0 or 1; elsewhere it is over the releases, and
    none for one release.
    """
    figures, samples = dict[str, Interval](), dict[str, Values]()
    for name, first in runs[0].items():
        values: list[Any] = [run[name] for run in runs if name in run]
        if isinstance(first, float):
            figures[name] = mean_interval(values)
            continue
        samples[name] = mean = np.mean(values, axis=0)
        figures[name] = mean_interval(mean)
        if np.isin(mean, (0.0, 1.0)).all():
            figures[name] = share_interval(int(mean.sum()), len(mean))
    return figures, samples

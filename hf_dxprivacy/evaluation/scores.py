"""Figures of one release: what it keeps, what a classifier learns from it, who is recognized."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.audit import author_attribution, membership_inference
from hf_dxprivacy.audit.inputs import blocks
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation.candidates import running_words
from hf_dxprivacy.evaluation.learners import Learner
from hf_dxprivacy.evaluation.material import Material, words_of
from hf_dxprivacy.results import EXTRA, Interval, mean_interval, share_interval
from hf_dxprivacy.sentences import SentenceEncoder
from hf_dxprivacy.spaces import EmbeddingSpace

# A word that is among so many nearest ones counts as near.
NEAR = 100
# A release with another number of words in more texts than this was not made word by word.
ALIGNED = 0.5

Values = NDArray[np.float64]
# A figure of one release: a number, or one for each of its texts.
Found = dict[str, "float | Values"]
# Releases texts with noise of their own for a number.
Fresh = Callable[[Sequence[str], int], list[str]]


@dataclass(frozen=True)
class Effort:
    """How much is looked at.

    Attributes:
        rows: Of the sample, at most.
        words: Of the sample, about at most.
        users: Of the author attack, at most.
        subsets: Of the features, in the author attack.
        guessed: Most frequent words that the Bayes adversary tells apart.
        inputs: Words whose laws are compared to verify a claim.
        draws: By which claims are verified where no law is known.
        members: Texts of the membership attack, at most; 0 for none.
        seconds: That draws from a program may take, about.
    """

    rows: int = 5000
    words: int = 200_000
    users: int = 50
    subsets: int = 50
    guessed: int = 1000
    inputs: int = 100
    draws: int = 200_000
    members: int = 2000
    seconds: float = 60.0


QUICK = Effort(
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


class Nearness:
    """Distances within which the 100 nearest words of a word are, computed once for each."""

    def __init__(self, space: EmbeddingSpace) -> None:
        self.space = space
        self._reach = np.full(len(space), np.nan)

    def near(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for (m,) pairs of rows whether the second is among the 100 nearest of the first."""
        wanted = np.unique(before[np.isnan(self._reach[before])])
        rank = min(NEAR, len(self.space) - 1)
        for part in blocks(wanted, len(self.space)):
            # A word is the nearest of itself.
            self._reach[part] = np.partition(self.space.distances(part), rank, axis=1)[:, rank]
        distances = self.space.pair_distances(before, after)
        return np.asarray(distances <= self._reach[before] * (1.0 + 1e-6))


class Bench:
    """What all releases of a comparison are measured by.

    Args:
        material: The texts.
        space: A public space, for near words and averaged vectors.
        effort: How much is looked at.
        learner: Classifier; None if there are no classes.
        encoder: For similarity; None to leave it out.
        readability: Has ``perplexity(texts)``; None to leave it out.
        seed: Of splits and attackers.
    """

    def __init__(
        self,
        material: Material,
        space: EmbeddingSpace,
        effort: Effort,
        learner: Learner | None,
        encoder: SentenceEncoder | None,
        readability: Any,
        seed: int,
    ) -> None:
        self.material, self.effort, self._seed = material, effort, seed
        self._learner, self._encoder, self._readability = learner, encoder, readability
        self._nearness = Nearness(space)
        self._words = words_of(material.texts)

    @cached_property
    def median_words(self) -> float:
        """Median number of words of a text of the sample."""
        return float(np.median([len(self._words[k]) for k in self.material.sample.tolist()]))

    @cached_property
    def frequencies(self) -> dict[str, float]:
        """How often each word that the space has occurs in the sample, the most frequent first."""
        counts = Counter(w for k in self.material.sample.tolist() for w in self._words[k])
        space = self._nearness.space
        known = [(word, n) for word, n in counts.most_common() if word in space]
        return {word: float(n) for word, n in known[: self.effort.guessed]}

    @cached_property
    def unknown_share(self) -> float:
        """Share of running words that the space lacks."""
        words = [w for k in self.material.sample.tolist() for w in self._words[k]]
        return float(np.mean(self._nearness.space.ids(words) < 0)) if words else 0.0

    def inputs(self, unit: str) -> list[str]:
        """Return words of the space with their nearest, or texts of the sample, to draw for."""
        if unit != "word":
            texts = self.material.texts
            chosen = self.rng("inputs").permutation(self.material.sample)[: self.effort.inputs]
            return list(dict.fromkeys(texts[k] for k in chosen))
        space = self._nearness.space
        words = dict.fromkeys(running_words(space, self.effort.inputs // 4).tolist())
        near = (space.neighbours(word, 1)[0][0] for word in words)
        return list(dict.fromkeys([*(space.words[word] for word in words), *near]))

    def rng(self, *about: str | int) -> np.random.Generator:
        """Return the generator of a split or an attacker: the same for every release."""
        return np.random.default_rng([self._seed, *"/".join(map(str, about)).encode()])

    def scores(self, released: list[str], unit: str, fresh: Fresh | None = None) -> Found:
        """Return all figures of one release of the texts.

        Args:
            released: As many texts.
            unit: "word" if it was made word by word.
            fresh: Releases texts anew for a part; None where that would take too long.
        """
        found = self._kept(released) if unit == "word" else {}
        if self._learner is not None:
            found |= self._accuracy(self._learner, released, fresh)
        if self._encoder is not None:
            found["similarity"] = np.sum(self._encoded * self._encode(released), axis=1)
        if self._readability is not None:
            sample = self._of_sample(released)
            with suppress(InvalidValueError):  # no words to read
                found["readability"] = self._readability.perplexity(sample) / self._perplexity
        if len(self.material.asked):
            found |= self._attributed(released)
        return found

    def membership(self, released: list[str]) -> Interval:
        """Return the AUC of the membership attack, with its interval over three splits."""
        rows = self.material.labelled[: self.effort.members]
        before, after = ([texts[k] for k in rows] for texts in (self.material.texts, released))
        labels = self.material.classes[rows].tolist()
        found = membership_inference(before, after, labels, repeats=3, rng=self.rng("members"))
        best = found.where(metric="AUC")[0]
        return Interval(best.value, best.low, best.high)

    def _of_sample(self, texts: Sequence[str]) -> list[str]:
        return [texts[k] for k in self.material.sample.tolist()]

    def _kept(self, released: list[str]) -> Found:
        """Compare words place by place, in texts that have as many as before."""
        pairs = [
            (self._words[k], after)
            for k, after in zip(
                self.material.sample.tolist(), words_of(self._of_sample(released)), strict=True
            )
        ]
        same_length = np.array([len(before) == len(after) for before, after in pairs])
        if same_length.mean() < ALIGNED:
            return {}
        some = [pair for pair, whole in zip(pairs, same_length, strict=True) if whole]
        before = [word for pair in some for word in pair[0]]
        after = [word for pair in some for word in pair[1]]
        if not before:
            return {}
        stays = np.array([a == b for a, b in zip(before, after, strict=True)])
        ids = self._nearness.space.ids(before), self._nearness.space.ids(after)
        known = ~stays & (ids[0] >= 0) & (ids[1] >= 0)
        near = np.zeros(len(stays), dtype=np.bool_)
        near[known] = self._nearness.near(ids[0][known], ids[1][known])
        owners = np.repeat(np.arange(len(some)), [len(pair[0]) for pair in some])
        lengths = np.maximum(np.bincount(owners, minlength=len(some)), 1)
        whole = np.full(len(pairs), np.nan)
        whole[same_length] = np.bincount(owners, stays | near, minlength=len(some)) / lengths
        found: Found = {"stays": float(stays.mean())}
        if known.any():
            found["near"] = float(near[known].mean())
        # A text that cannot be compared counts as the mean of those that can.
        found["kept"] = np.where(np.isnan(whole), np.nanmean(whole), whole)
        return found

    @cached_property
    def _folds(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Places among the labelled texts to train with and to test with."""
        assert self._learner is not None
        classes = self.material.classes[self.material.labelled]
        parts = min(5, int(np.bincount(classes).min()))
        split = require("sklearn.model_selection", EXTRA).StratifiedKFold(
            max(2, parts), shuffle=True, random_state=int(self.rng("folds").integers(1 << 31))
        )
        return list(split.split(np.zeros(len(classes)), classes))[: self._learner.parts]

    @cached_property
    def _plain(self) -> tuple[Any, list[Any]]:
        """Features of the texts as they are, and the classifiers that they train."""
        assert self._learner is not None
        rows = self.material.labelled
        features = self._learner.features([self.material.texts[k] for k in rows])
        classes = self.material.classes[rows]
        return features, [
            self._learner.make().fit(features[train], classes[train]) for train, _ in self._folds
        ]

    def parts(self, figure: str) -> Values:
        """Return for each text of a figure the part whose errors it shares."""
        if figure != "trained":
            return np.arange(len(self.material.sample), dtype=np.float64)
        found = np.full(len(self.material.labelled), np.nan)
        for number, (_, test) in enumerate(self._folds):
            found[test] = number if len(self._folds) > 1 else test
        kept: Values = found[~np.isnan(found)]
        return kept

    def _accuracy(self, learner: Learner, released: list[str], fresh: Fresh | None) -> Found:
        """Return for each tested text whether a classifier is right.

        One is trained on a release and reads originals, one the other way round, and one is trained
        on a release and reads another. Each part has a release of its own to train with, so that
        the parts share no noise, and what they differ by shows what noise does.
        """
        rows = self.material.labelled
        plain, readers = self._plain
        same = released == self.material.texts
        features = plain if same else learner.features([released[k] for k in rows])
        classes = self.material.classes[rows]
        hits = {name: np.full(len(rows), np.nan) for name in ("trained", "read", "both")}
        for number, ((train, test), reader) in enumerate(zip(self._folds, readers, strict=True)):
            model = reader
            if not same:
                seen = features[train]
                if fresh is not None:
                    texts = [self.material.texts[k] for k in rows[train]]
                    seen = learner.features(fresh(texts, number))
                model = learner.make().fit(seen, classes[train])
            truth = classes[test]
            hits["trained"][test] = model.predict(plain[test]) == truth
            hits["read"][test] = reader.predict(features[test]) == truth
            hits["both"][test] = model.predict(features[test]) == truth
        return {name: values[~np.isnan(values)] for name, values in hits.items()}

    def _attributed(self, released: list[str]) -> Found:
        """Return for each text that is asked about whether its author is found.

        By an attacker who has other texts as they were written, and by one who privatizes them.
        """
        material = self.material

        def hits(known: Sequence[str], about: str) -> Values:
            found = author_attribution(
                [known[k] for k in material.known],
                [material.owners[k] for k in material.known],
                [released[k] for k in material.asked],
                truth,
                subsets=self.effort.subsets,
                rng=self.rng("authors", about),
            )
            return np.array(
                [a == b for a, b in zip(found.nearest, truth, strict=True)], dtype=float
            )

        truth = [material.owners[k] for k in material.asked]
        static = hits(material.texts, "static")
        if released == material.texts:
            return {"author": static, "author_adaptive": static}
        return {"author": static, "author_adaptive": hits(released, "adaptive")}

    @cached_property
    def _encoded(self) -> Values:
        return self._encode(self.material.texts)

    def _encode(self, texts: Sequence[str]) -> Values:
        assert self._encoder is not None
        vectors: Values = self._encoder.encode_public(self._of_sample(texts))
        return vectors

    @cached_property
    def _perplexity(self) -> float:
        return float(self._readability.perplexity(self._of_sample(self.material.texts)))


def combined(runs: Sequence[Found]) -> tuple[dict[str, Interval], dict[str, Values]]:
    """Return figures of several releases, with 95 % intervals, and those of single texts.

    Where there is a figure for each text, the interval is over the texts, each with its mean over
    the releases; elsewhere it is over the releases, and none for one release.
    """
    figures, samples = dict[str, Interval](), dict[str, Values]()
    for name, first in runs[0].items():
        values: list[Any] = [run[name] for run in runs if name in run]
        if isinstance(first, float):
            figures[name] = mean_interval(values)
            continue
        samples[name] = np.mean(values, axis=0)
        figures[name] = interval_of(samples[name])
    return figures, samples


def interval_of(values: Values) -> Interval:
    """Return the mean over texts with its interval, by Clopper and Pearson if all are 0 or 1."""
    if np.isin(values, (0.0, 1.0)).all():
        return share_interval(int(values.sum()), len(values))
    return mean_interval(values)

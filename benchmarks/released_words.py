"""Measures of what releases keep and show, for the benchmarks of trees and tables.

Labelled texts are released as lists of words, so that a release has as many words as its original:
numbers that are released beside each other may read as one. The vectors are GloVe 840B in 300
dimensions, whatever space the mechanism has.
"""

import string
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import author_attribution
from hf_dxprivacy.text import RowReader

NEAR = 100
# Of the attacker and of the splits, which have nothing to hide. Releases are fresh.
SEED = 20260101


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of each text."""
    reader = RowReader()
    return [list(reader.read_text(text).words) for text in texts]


def lower(words: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return words in lower case."""
    return [[word.lower() for word in row] for row in words]


class Vectors:
    """The vectors that texts are read with, and the nearest words among them."""

    def __init__(self, space: EmbeddingSpace) -> None:
        self.space = space
        lengths = np.linalg.norm(space.vectors, axis=1, keepdims=True)
        self._units = space.vectors / lengths
        self._near: dict[int, frozenset[int]] = {}

    def near_share(self, originals: NDArray[np.int64], released: NDArray[np.int64]) -> float:
        """Return the share of changed words that are among the 100 nearest by cosine.

        Of those that have a vector before and after: contractions and unknown words have none.
        """
        changed = (originals != released) & (originals >= 0) & (released >= 0)
        wanted = np.unique(originals[changed])
        missing = np.array([word for word in wanted.tolist() if word not in self._near], dtype=int)
        for start in range(0, len(missing), 512):
            block = missing[start : start + 512]
            cosines = self._units[block] @ self._units.T
            cosines[np.arange(len(block)), block] = -np.inf
            nearest = np.argpartition(-cosines, NEAR, axis=1)[:, :NEAR]
            self._near.update(zip(block.tolist(), map(frozenset, nearest.tolist()), strict=True))
        pairs = zip(originals[changed].tolist(), released[changed].tolist(), strict=True)
        return float(np.mean([b in self._near[a] for a, b in pairs]))

    def sums(
        self, words: Sequence[Sequence[str]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum over each text's words that have a vector, (rows, n), and their number."""
        lengths = [len(row) for row in words]
        ids = self.space.ids(word for row in words for word in row)
        rows = np.repeat(np.arange(len(words)), lengths)[ids >= 0]
        known = ids[ids >= 0]
        shape = (len(words), len(self.space))
        counts = scipy.sparse.csr_matrix((np.ones(len(known)), (rows, known)), shape)
        return counts @ self.space.vectors.astype(np.float64), counts.sum(axis=1).A1

    def averaged(self, words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the mean vector of each text's words that have one, (rows, n)."""
        sums, counts = self.sums(words)
        return sums / np.maximum(counts[:, None], 1)


class Task:
    """Texts with labels, split into a part to train with and one to test with."""

    def __init__(self, source: Path | Sequence[dict[str, Any]], vectors: Vectors) -> None:
        rows = common.jsonl(source) if isinstance(source, Path) else source
        self.texts = [row["text"] for row in rows]
        self.labels = np.array([row["label"] for row in rows])
        self.words = words_of(self.texts)
        self.lowered = lower(self.words)
        self.vectors = vectors
        parts = np.array([row["split"] for row in rows])
        everything = np.arange(len(rows))
        if "test" not in parts:
            self.train, self.test = train_test_split(
                everything, test_size=0.2, random_state=SEED, stratify=self.labels
            )
        else:
            self.train, self.test = everything[parts == "train"], everything[parts == "test"]

    @cached_property
    def _plain(self) -> NDArray[np.float64]:
        return self.vectors.averaged(self.lowered)

    @cached_property
    def _reader(self) -> LogisticRegression:
        return self._fitted(self._plain)

    def _fitted(self, features: NDArray[np.float64]) -> LogisticRegression:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        return model.fit(features[self.train], self.labels[self.train])

    @property
    def plain(self) -> float:
        """Accuracy without any release."""
        return float(self._reader.score(self._plain[self.test], self.labels[self.test]))

    def scores(self, released: Sequence[Sequence[str]]) -> dict[str, float]:
        """Return the accuracy of a model trained on the release, and of one that reads it."""
        return self.scores_of(self.vectors.averaged(lower(released)))

    def scores_of(self, features: NDArray[np.float64]) -> dict[str, float]:
        """Return the same for the mean vectors of released texts, (rows, n)."""
        labels = self.labels[self.test]
        return {
            "trained on": float(self._fitted(features).score(self._plain[self.test], labels)),
            "read": float(self._reader.score(features[self.test], labels)),
        }

    def kept(self, released: Sequence[Sequence[str]]) -> dict[str, float]:
        """Return the share of running words that stay, and how near the others are."""
        before = [word for row in self.lowered for word in row]
        after = [word for row in lower(released) for word in row]
        ids = self.vectors.space.ids
        stays = np.mean([a == b for a, b in zip(before, after, strict=True)])
        return {"stays": float(stays), "near": self.vectors.near_share(ids(before), ids(after))}


class Authors:
    """Texts with authors: some are known to an attacker, and others he is asked about."""

    def __init__(self, path: Path, asked: Sequence[str], every: int = 1) -> None:
        rows = common.jsonl(path)
        known = [row for row in rows if row["split"] == "train"]
        shown = [row for row in rows if row["split"] in asked][::every]
        self.known = [row["text"] for row in known]
        self.texts = [row["text"] for row in shown]
        self._owners = [row["author"] for row in known], [row["author"] for row in shown]

    def found(self, released: Sequence[str], known: Sequence[str] | None = None) -> int:
        """Return how many texts are attributed rightly.

        Args:
            released: What became of `texts`.
            known: What became of `known`, for an attacker who privatizes the texts that he has.
        """
        owners, truth = self._owners
        attacker = np.random.default_rng(SEED)
        mine = self.known if known is None else known
        result = author_attribution(mine, owners, released, truth, rng=attacker)
        return sum(a == b for a, b in zip(result.nearest, truth, strict=True))

    def by_form(self, released: Sequence[str], known: Sequence[str]) -> int:
        """Return how many texts are attributed rightly by their length and marks alone."""
        owners, truth = self._owners
        forest = RandomForestClassifier(300, min_samples_leaf=2, random_state=SEED)
        guesses = forest.fit([form(text) for text in known], owners).predict(
            [form(text) for text in released]
        )
        return int(np.sum(guesses == np.array(truth)))


def form(text: str) -> list[float]:
    """Return what shows without reading a word: lengths and numbers of marks of each kind."""
    marks = [text.count(mark) for mark in string.punctuation]
    kinds = [sum(map(kind, text)) for kind in (str.isdigit, str.isupper, str.isspace)]
    return [float(len(text)), float(len(text.split())), *map(float, marks + kinds)]

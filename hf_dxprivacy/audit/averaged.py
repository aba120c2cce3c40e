"""A classifier of texts by their averaged word vectors, as fastText's (needs torch)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.text import RowReader

EXTRA = "models"
DIM = 50
EPOCHS = 40
BATCH = 32
RATE = 0.01


class AveragedClassifier:
    """Word vectors, learned with the labels, averaged over a text, and a linear layer.

    Args:
        texts: (m,) texts to train with.
        labels: (m,) int64 labels from 0.
        classes: How many labels there are.
        seed: Of the initial weights and the order of the texts.
    """

    def __init__(
        self, texts: Sequence[str], labels: NDArray[np.int64], classes: int, seed: int
    ) -> None:
        self._torch = torch = require("torch", EXTRA)
        self._reader = RowReader()
        words = [self._words(text) for text in texts]
        counts = Counter(word for row in words for word in row)
        # 0 stands for a text in which no word is known.
        self._ids = {word: i for i, word in enumerate(counts, start=1)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._vectors = torch.nn.EmbeddingBag(len(self._ids) + 1, DIM, mode="mean")
            self._linear = torch.nn.Linear(DIM, classes)
            self._train([self._known(row) for row in words], torch.from_numpy(labels))

    def log_probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return (m, c) logarithms of what the classifier gives each label."""
        with self._torch.no_grad():
            scores = self._scores([self._known(self._words(text)) for text in texts])
            found: NDArray[np.float64] = scores.double().log_softmax(dim=1).numpy()
        return found

    def _train(self, rows: list[list[int]], labels: Any) -> None:
        torch = self._torch
        weights = [*self._vectors.parameters(), *self._linear.parameters()]
        optimizer = torch.optim.Adam(weights, RATE)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(rows)).split(BATCH):
                scores = self._scores([rows[i] for i in batch.tolist()])
                loss = torch.nn.functional.cross_entropy(scores, labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def _scores(self, rows: list[list[int]]) -> Any:
        flat = self._torch.tensor([i for row in rows for i in row])
        starts = np.cumsum([0, *(len(row) for row in rows)])[:-1]
        return self._linear(self._vectors(flat, self._torch.from_numpy(starts)))

    def _words(self, text: str) -> list[str]:
        return [word.lower() for word in self._reader.read_text(text).words]

    def _known(self, words: Sequence[str]) -> list[int]:
        return [self._ids[word] for word in words if word in self._ids] or [0]

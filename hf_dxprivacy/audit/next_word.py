"""A language model that predicts the next word (an LSTM, needs torch)."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require

EXTRA = "models"
DIM = 64
LENGTH = 32
BATCH = 16
EPOCHS = 15
RATE = 0.005
# Stands for all words that are not in the vocabulary, and for the start of a text.
UNKNOWN = 0


class NextWordModel:
    """Learns to predict each word from those before it.

    Args:
        rows: Texts to train with, as words.
        size: How many words to know, the most frequent ones of the texts.
        seed: Of the initial weights and the order of the texts.
    """

    def __init__(self, rows: Sequence[Sequence[str]], size: int, seed: int) -> None:
        self._torch = torch = require("torch", EXTRA)
        counts = Counter(chain.from_iterable(rows)).most_common(size - 1)
        self._ids = {word: i for i, (word, _) in enumerate(counts, start=UNKNOWN + 1)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._vectors = torch.nn.Embedding(len(self._ids) + 1, DIM)
            self._lstm = torch.nn.LSTM(DIM, DIM, batch_first=True)
            self._linear = torch.nn.Linear(DIM, len(self._ids) + 1)
            self._train(self._windows(rows))

    def ranks(self, rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Return for each word that the model knows how many others it thinks likelier."""
        windows = self._windows(rows)
        with self._torch.no_grad():
            scores, truth = self._scores(windows), windows[:, 1:]
            likelier = scores > scores.gather(2, truth.unsqueeze(2))
            found: NDArray[np.int64] = likelier.sum(dim=2)[truth != UNKNOWN].numpy()
        return found

    def _train(self, windows: Any) -> None:
        torch = self._torch
        layers = (self._vectors, self._lstm, self._linear)
        optimizer = torch.optim.Adam(chain.from_iterable(x.parameters() for x in layers), RATE)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(windows)).split(BATCH):
                scores, truth = self._scores(windows[batch]), windows[batch, 1:]
                known = truth != UNKNOWN
                loss = torch.nn.functional.cross_entropy(scores[known], truth[known])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def _scores(self, windows: Any) -> Any:
        return self._linear(self._lstm(self._vectors(windows[:, :-1]))[0])

    def _windows(self, rows: Sequence[Sequence[str]]) -> Any:
        """Cut texts into (k, LENGTH + 1) ids, each of which starts with the word before."""
        ids = [UNKNOWN]
        for row in rows:
            ids += [self._ids.get(word, UNKNOWN) for word in row]
        count = max(1, -(-(len(ids) - 1) // LENGTH))
        flat = np.full(count * LENGTH + 1, UNKNOWN)
        flat[: len(ids)] = ids
        starts = np.arange(count)[:, None] * LENGTH
        return self._torch.from_numpy(flat[starts + np.arange(LENGTH + 1)])

"""What an adversary knows of a mechanism: how likely each output is, given each input."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._optional import require
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.results import EXTRA

# Probabilities, and draws, that are held at once.
BLOCK_ENTRIES = 1 << 22
BLOCK_DRAWS = 1 << 17
# Up to so many probabilities are worked out once and kept, which saves most of the distances.
TABLE_ENTRIES = 1 << 26
# What is tried for the shared draws of an input.
SHARED_DRAWS = 4.0 ** np.arange(-2, 11)

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]


class Law(Protocol):
    """Pr[M(w) = y] for m inputs w."""

    def likelihoods(self, outputs: Ids) -> Reals:
        """Return (len(outputs), m) probabilities, or estimates of them."""


class ExactLaw:
    """The law of an exponential mechanism.

    Args:
        mechanism: The mechanism.
        inputs: (m,) ids.
    """

    def __init__(self, mechanism: ExponentialMechanism, inputs: Ids) -> None:
        self._mechanism, self._inputs = mechanism, inputs
        self._table, size = None, len(mechanism.space)
        if len(inputs) * size <= TABLE_ENTRIES:
            self._table = mechanism.probabilities(inputs)
        else:
            parts = parts_of(inputs, size)
            self._sums = np.concatenate([self._weights(part).sum(axis=1) for part in parts])

    def likelihoods(self, outputs: Ids) -> Reals:
        """Return (len(outputs), m) probabilities.

        A weight is symmetric in input and output; what the weights add up to is the input's alone.
        """
        if self._table is not None:
            return self._table[:, outputs].T
        likelihoods: Reals = self._weights(outputs)[:, self._inputs] / self._sums
        return likelihoods

    def _weights(self, ids: Ids) -> Reals:
        distances = np.minimum(self._mechanism.space.distances(ids), self._mechanism.radius)
        weights: Reals = np.exp(-self._mechanism.rate * distances)
        return weights


class DrawnLaw:
    """The law of any mechanism, as draws show it.

    What was never drawn from an input is not impossible: beside its own draws each input has some
    that are spread as the draws from all inputs are. How many tells one half of the draws from the
    other: those with which it was the likeliest.

    Args:
        mechanism: The mechanism.
        inputs: (m,) ids.
        prior: (m,) how likely each is; adds up to 1.
        draws: Draws from each, at least 2.
        rng: Source of the draws.
    """

    def __init__(
        self, mechanism: Mechanism, inputs: Ids, prior: Reals, draws: int, rng: np.random.Generator
    ) -> None:
        learned = _counted(mechanism, inputs, draws // 2, rng)
        tried = _counted(mechanism, inputs, draws - draws // 2, rng)
        self._shared = _shared_draws(learned, tried, prior)
        self._counts, self._draws = (learned + tried).tocsc(), draws
        self._marginal = _marginal(self._counts, prior)

    def likelihoods(self, outputs: Ids) -> Reals:
        """Return (len(outputs), m) estimates."""
        own: Reals = self._counts[:, outputs].toarray().T
        shared = self._shared * self._marginal[outputs][:, None]
        return (own + shared) / (self._draws + self._shared)


def _counted(mechanism: Mechanism, inputs: Ids, draws: int, rng: np.random.Generator) -> Any:
    """Return a sparse (m, V) table of how often each output was drawn from each input."""
    table = require("scipy.sparse", EXTRA).csr_matrix
    shape = (len(inputs), len(mechanism.space))
    counts = table(shape)
    for at, drawn in drawn_from(mechanism, inputs, draws, rng):
        counts += table((np.ones(len(at)), (at, drawn)), shape)
    return counts


def _marginal(counts: Any, prior: Reals) -> Reals:
    """Return how the draws from all inputs are spread; no output is impossible."""
    spread: Reals = np.asarray(prior @ counts).ravel() + 1.0 / counts.shape[1]
    spread /= spread.sum()
    return spread


def _shared_draws(learned: Any, tried: Any, prior: Reals) -> float:
    """Choose how many shared draws make the likeliest what was tried."""
    marginal, seen = _marginal(learned, prior), tried.tocoo()
    own = np.asarray(learned[seen.row, seen.col]).ravel()
    shared = marginal[seen.col]
    draws = learned.sum() / len(prior)
    weights = prior[seen.row] * seen.data
    scores = [weights @ np.log((own + s * shared) / (draws + s)) for s in SHARED_DRAWS]
    return float(SHARED_DRAWS[np.argmax(scores)])


def parts_of(ids: Ids, entries: int) -> Iterator[Ids]:
    """Cut ids into parts of which each has `entries` figures and all together fit the memory."""
    step = max(1, BLOCK_ENTRIES // entries)
    for start in range(0, len(ids), step):
        yield ids[start : start + step]


def largest(values: Reals, count: int) -> Ids:
    """Return for each row the columns of the largest values, the largest first."""
    found = np.argpartition(-values, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(values, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def drawn_from(
    mechanism: Mechanism, inputs: Ids, draws: int, rng: np.random.Generator
) -> Iterator[tuple[Ids, Ids]]:
    """Draw outputs of every input; return positions of the inputs, and outputs, part by part."""
    at = np.repeat(np.arange(len(inputs)), draws)
    for start in range(0, len(at), BLOCK_DRAWS):
        part = at[start : start + BLOCK_DRAWS]
        yield part, mechanism.sample(inputs[part], rng)

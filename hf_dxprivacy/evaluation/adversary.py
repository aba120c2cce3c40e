"""Bayes-optimal adversary: posterior of the input, given mechanism, ε and word frequencies."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.mechanisms import ExactMechanism, ExponentialLaw, Mechanism
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import EXTRA
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import shape_of
from hf_dxprivacy.verify.inputs import blocks
from hf_dxprivacy.verify.posterior import largest

# Draws that are held at once.
BLOCK_DRAWS = 1 << 17
# Up to so many probabilities are computed once and kept, which saves most of the distances.
TABLE_ENTRIES = 1 << 26
# Words that are guessed for each input that stands for several.
HIDDEN = 10
# What is tried for the shared draws of an input.
SHARED_DRAWS = 4.0 ** np.arange(-2, 11)

Ids = NDArray[np.int64]
Reals = NDArray[np.float64]


class ExactDistribution:
    """Pr[M(w) = y] for (m,) inputs w, where the law of the mechanism is known."""

    def __init__(self, mechanism: ExactMechanism, inputs: Ids) -> None:
        self._mechanism, self._inputs = mechanism, inputs
        self._table, size = None, len(mechanism.space)
        if len(inputs) * size <= TABLE_ENTRIES:
            self._table = mechanism.probabilities(inputs)
        elif isinstance(mechanism, ExponentialLaw):
            self._sums = mechanism.weighted_sums(np.ones(size), inputs)

    def likelihoods(self, outputs: Ids) -> Reals:
        """Return (len(outputs), m) probabilities.

        A weight is symmetric in input and output; what the weights add up to is the input's alone.
        """
        if self._table is not None:
            return self._table[:, outputs].T
        if isinstance(self._mechanism, ExponentialLaw):
            likelihoods: Reals = self._mechanism.weights(outputs)[:, self._inputs] / self._sums
            return likelihoods
        parts = blocks(self._inputs, len(self._mechanism.space))
        found = [self._mechanism.probabilities(part)[:, outputs] for part in parts]
        return np.concatenate(found).T


class EstimatedDistribution:
    """Pr[M(w) = y] for (m,) inputs w of any mechanism, as two or more draws from each show it.

    What was never drawn from an input is not impossible: beside its own draws each input has some
    that are spread as the draws from all inputs are, by their (m,) prior. How many is chosen so
    that the second half of the draws is the likeliest given the first.
    """

    def __init__(
        self, mechanism: Mechanism, inputs: Ids, prior: Reals, draws: int, rng: np.random.Generator
    ) -> None:
        half = draws // 2
        learned = counted(mechanism, inputs, half, rng)
        seen = counted(mechanism, inputs, draws - half, rng).tocoo()
        own = np.asarray(learned[seen.row, seen.col]).ravel()
        shared = _marginal(learned, prior)[seen.col]
        weights = prior[seen.row] * seen.data
        scores = [weights @ np.log((own + s * shared) / (half + s)) for s in SHARED_DRAWS]
        self._shared = float(SHARED_DRAWS[np.argmax(scores)])
        self._counts, self._draws = (learned + seen).tocsc(), draws
        self._marginal = _marginal(self._counts, prior)

    def likelihoods(self, outputs: Ids) -> Reals:
        """Return (len(outputs), m) estimates."""
        own: Reals = self._counts[:, outputs].toarray().T
        shared = self._shared * self._marginal[outputs][:, None]
        return (own + shared) / (self._draws + self._shared)


def _whole_pool(privatizer: SentencePrivatizer) -> SentencePool:
    """Return the pool of a privatizer that releases one of its entries for each text."""
    remedies = {
        "unit='sentence'": (privatizer.unit != "text", "split the texts, and take unit='text'"),
        "refill=True": (privatizer.refill, "leave it out: what it draws tells nothing"),
        "label_column=": (
            privatizer.label_column is not None,
            "attack the texts of one label, over pool.with_label(...)",
        ),
    }
    for setting, (given, remedy) in remedies.items():
        if given:
            raise InvalidValueError(
                f"expected one entry of the pool for each text, got {setting}; {remedy}"
            )
    return privatizer.pool


def _prior_of_entries(pool: SentencePool, prior: Mapping[str, float]) -> dict[str, float]:
    """Return how often each entry occurs, from public texts."""
    found: dict[str, float] = {}
    for row, frequency in zip(pool.look_up(list(prior)).tolist(), prior.values(), strict=True):
        if row >= 0:
            found[pool.sentences[row]] = found.get(pool.sentences[row], 0.0) + frequency
    return found


def _hidden(
    space: EmbeddingSpace, prior: Mapping[str, float], ids: Ids
) -> dict[tuple[int, str], float]:
    """Return the most frequent words of inputs that stand for several; see `BayesAdversary`."""
    found: dict[int, Counter[str]] = {}
    for (word, frequency), row in zip(prior.items(), ids.tolist(), strict=True):
        if row < 0 < frequency:
            # In the middle of a sentence, where a capital tells.
            shape = shape_of(word, " ", first=False)
            row = int(space.ids([shape])[0]) if shape in space.shapes else -1
            found.setdefault(row, Counter())[word.lower()] += frequency  # type: ignore[assignment]
    most = ((row, words.most_common(HIDDEN)) for row, words in found.items())
    return {(row, word): float(count) for row, words in most for word, count in words}


def counted(mechanism: Mechanism, inputs: Ids, draws: int, rng: np.random.Generator) -> Any:
    """Return a sparse (m, V) table of how often each output was drawn from each input."""
    table = require("scipy.sparse", EXTRA).csr_matrix
    shape = (len(inputs), len(mechanism.space))
    at, counts = np.repeat(np.arange(len(inputs)), draws), table(shape)
    for start in range(0, len(at), BLOCK_DRAWS):
        part = at[start : start + BLOCK_DRAWS]
        drawn = mechanism.sample(inputs[part], rng)
        counts += table((np.ones(len(part)), (part, drawn)), shape)
    return counts


def _marginal(counts: Any, prior: Reals) -> Reals:
    """Return how the draws from all inputs are spread; no output is impossible."""
    spread: Reals = np.asarray(prior @ counts).ravel() + 1.0 / counts.shape[1]
    spread /= spread.sum()
    return spread


class BayesAdversary:
    """Bayes-optimal guesses of the word that an output came from.

    For mechanisms with a known law the posterior is exact: no adversary with this prior, and
    no other knowledge, succeeds more often. For the others it is estimated from draws, so that a
    better adversary is possible.

    Attributes:
        mechanism: What the adversary knows to be used.
        pool: The pool of sentences it draws from, or None for words.
        candidates: (m,) int64 ids of the words that may be guessed, the most frequent first.
        prior: (m,) float64 how likely each is; adds up to 1.
        distribution: What the adversary knows of the law of the mechanism.
        exact: Whether that is all there is to know.
        hidden: Words of inputs that stand for several (a shape, or −1 for all words that the space
            lacks), in lower case with their input, and how likely each is; the `HIDDEN` most
            frequent of each.

    Args:
        mechanism: What the adversary knows to be used; or a `SentencePrivatizer`, whose words are
            the entries of its pool.
        prior: Word → how often it occurs, in any unit. Words that the space lacks, its shapes, and
            those whose frequency is 0 are no candidates; `guess_names` guesses the most frequent
            of the former that are one input. For sentences public text → how often,
            from which an entry has what its texts have together.
        draws: Draws from each candidate where the law has to be estimated.
        rng: Source of the draws; this process's own by default.

    Raises:
        InvalidValueError: If no word of the prior is in the space, a frequency is negative, or a
            `SentencePrivatizer` does not release one entry of one pool for each text.
        MissingExtraError: If SciPy, which draws need, is not installed.
    """

    distribution: ExactDistribution | EstimatedDistribution

    def __init__(
        self,
        mechanism: Mechanism | SentencePrivatizer,
        prior: Mapping[str, float],
        *,
        draws: int = 500,
        rng: np.random.Generator | None = None,
    ) -> None:
        require_at_least(2, draws=draws)
        frequencies = np.fromiter(prior.values(), dtype=np.float64, count=len(prior))
        if not np.isfinite(frequencies).all() or (frequencies < 0).any():
            raise InvalidValueError("expected frequencies in prior to be finite and not below 0")
        self.pool = None
        if isinstance(mechanism, SentencePrivatizer):
            self.pool, mechanism = _whole_pool(mechanism), mechanism.mechanism
            prior = _prior_of_entries(self.pool, prior)
            frequencies = np.fromiter(prior.values(), dtype=np.float64, count=len(prior))
        ids = mechanism.space.ids(list(prior))
        # To guess a shape is not to guess the word, which is drawn anew.
        possible = np.flatnonzero((ids >= 0) & (frequencies > 0) & ~mechanism.space.is_shape[ids])
        if len(possible) == 0:
            raise InvalidValueError(
                f"expected words of the space in prior, got {len(prior)} words of which it has "
                "none; are they in the letter case of the space?"
            )
        order = possible[np.argsort(-frequencies[possible], kind="stable")]
        self.mechanism = mechanism
        total = frequencies[order].sum()
        hidden = _hidden(mechanism.space, prior, ids) if self.pool is None else {}
        self.hidden = {each: count / total for each, count in hidden.items()}
        self.candidates, self.prior = ids[order], frequencies[order] / total
        self.exact = isinstance(mechanism, ExactMechanism)
        rng = rng or process_generator()

        def law(inputs: Ids, prior: Reals) -> ExactDistribution | EstimatedDistribution:
            if isinstance(mechanism, ExactMechanism):
                return ExactDistribution(mechanism, inputs)
            return EstimatedDistribution(mechanism, inputs, prior, draws, rng)

        self.distribution = law(self.candidates, self.prior)
        rows, self._of_hidden = np.unique([row for row, _ in self.hidden], return_inverse=True)
        shares = np.bincount(self._of_hidden, [*self.hidden.values()])
        self._law_of_hidden = law(rows, shares / shares.sum()) if len(rows) else None

    def posterior(self, outputs: Ids, prior: Reals | None = None) -> Reals:
        """Return (n, m) probabilities of the candidates, given each output.

        Args:
            outputs: (n,) ids that were released.
            prior: (n, m) what the adversary expects in each place; the same everywhere by default.
        """
        expected = self.prior if prior is None else prior
        joint = self.distribution.likelihoods(outputs) * expected
        sums = joint.sum(axis=1, keepdims=True)
        # An output that no draw has shown leaves the adversary with the prior.
        posterior: Reals = np.divide(
            joint, sums, out=np.broadcast_to(expected, joint.shape).copy(), where=sums > 0
        )
        return posterior

    def guess(self, outputs: Ids, count: int = 1, prior: Reals | None = None) -> Ids:
        """Return (n, count) positions among the candidates, the most probable first.

        Args:
            outputs: (n,) ids that were released.
            count: Guesses for each output; fewer if there are fewer candidates.
            prior: As for `posterior`.
        """
        count = min(count, len(self.candidates))
        guesses = np.empty((len(outputs), count), dtype=np.int64)
        for at in blocks(np.arange(len(outputs)), len(self.mechanism.space)):
            expected = None if prior is None else prior[at]
            guesses[at] = largest(self.posterior(outputs[at], expected), count)
        return guesses

    def guess_names(self, outputs: Ids, count: int = 1) -> Ids:
        """Return (n, count) positions among the candidates, and after these among the `hidden`.

        Args:
            outputs: (n,) ids that were released; −1 says nothing.
            count: Guesses for each output; fewer if there are fewer candidates.
        """
        prior = np.concatenate([self.prior, [*self.hidden.values()]])
        count = min(count, len(self.candidates) + len(self.hidden))
        guesses = np.empty((len(outputs), count), dtype=np.int64)
        for at in blocks(np.arange(len(outputs)), len(self.mechanism.space)):
            seen = outputs[at]
            joint = self.distribution.likelihoods(seen)
            if self._law_of_hidden is not None:
                of_hidden = self._law_of_hidden.likelihoods(seen)[:, self._of_hidden]
                joint = np.concatenate([joint, of_hidden], axis=1)
            guesses[at] = largest(np.where(seen[:, None] < 0, 1.0, joint) * prior, count)
        return guesses

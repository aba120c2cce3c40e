"""Expectations of a word from its neighbours: a bigram model, by the forward–backward algorithm."""

from collections.abc import Iterable

import numpy as np

from hf_dxprivacy._runtime import require
from hf_dxprivacy.evaluation.adversary import BayesAdversary, Reals
from hf_dxprivacy.results import EXTRA
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader


class BigramModel:
    """What an adversary expects in each place of a text, given what was released in all others.

    A hidden Markov chain: the originals follow each other as in public text, each was privatized
    for itself. P(b|a) = λ(a)·c(a, b)/c(a) + (1 − λ(a))·π(b) with λ(a) = c(a)/(c(a) + t(a)), where
    t(a) different words follow a (Witten and Bell 1991). Baum et al. (1970) give the probability of
    each original exactly; words that are no candidates are passed over.

    Args:
        texts: Public texts, of the kind that was released.
        adversary: Whose candidates and prior are taken.

    Raises:
        MissingExtraError: If SciPy is not installed.
    """

    def __init__(self, texts: Iterable[str], adversary: BayesAdversary) -> None:
        space, size = adversary.mechanism.space, len(adversary.prior)
        positions = np.full(len(space) + 1, -1)
        positions[adversary.candidates] = np.arange(size)
        reader, first, second = RowReader(), [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for text in texts:
            found = positions[look_up_rows([reader.read_text(text)], space)]
            found = found[found >= 0]
            first.append(found[:-1])
            second.append(found[1:])
        pairs = np.concatenate(first), np.concatenate(second)
        matrix = require("scipy.sparse", EXTRA).csr_matrix
        counts = matrix((np.ones(len(pairs[0])), pairs), (size, size))
        counts.sum_duplicates()
        totals = np.asarray(counts.sum(axis=1)).ravel()
        # c(a, b)/(c(a) + t(a)), and what is left for π.
        below = np.maximum(totals + np.diff(counts.indptr), 1.0)
        self._follow = matrix(counts.multiply(1.0 / below[:, None]))
        self._before = self._follow.T.tocsr()
        self._left, self._prior = 1.0 - totals / below, adversary.prior

    def expectations(self, likelihoods: Reals) -> Reals:
        """Return (n, m) how likely each candidate is in each place, given all other outputs.

        Args:
            likelihoods: (n, m) P(y|x) of the outputs of a text, for each candidate x.
        """
        expected = np.empty_like(likelihoods)
        forward = self._prior
        for at, seen in enumerate(likelihoods):
            expected[at] = forward
            believed = _normal(forward * seen, forward)
            forward = self._before @ believed + (believed @ self._left) * self._prior
        backward = np.ones(likelihoods.shape[1])
        for at in range(len(likelihoods) - 1, -1, -1):
            expected[at] = _normal(expected[at] * backward, expected[at])
            seen = _normal(likelihoods[at] * backward, backward)
            backward = self._follow @ seen + self._left * (self._prior @ seen)
        return expected


def _normal(values: Reals, otherwise: Reals) -> Reals:
    """Return values that add up to 1; `otherwise` where all of them are 0."""
    total = values.sum()
    normal: Reals = values / total if total > 0.0 else otherwise / otherwise.sum()
    return normal

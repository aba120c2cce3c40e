"""The Bayes-optimal adversary: knows the mechanism, ε, and how frequent each word is."""

from collections.abc import Mapping

import numpy as np

from hf_dxprivacy import _validate
from hf_dxprivacy.audit.laws import DrawnLaw, ExactLaw, Ids, Law, Reals, largest, parts_of
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.spaces import EmbeddingSpace


class BayesAdversary:
    """Guesses the word that an output came from.

    For exponential mechanisms the posterior is exact: nobody who has this prior and no other
    knowledge succeeds more often. For the others it is estimated from draws, so that a better
    adversary is possible.

    Attributes:
        mechanism: What the adversary knows to be used.
        candidates: (m,) int64 ids of the words that may be guessed, the most frequent first.
        prior: (m,) float64 how likely each is; adds up to 1.
        law: What the adversary knows of the mechanism.
        exact: Whether that is all there is to know.

    Args:
        mechanism: What the adversary knows to be used.
        prior: Word → how often it occurs, in any unit. Words that the space lacks or whose
            frequency is 0 are no candidates.
        draws: Draws from each candidate where the law has to be estimated.
        rng: Source of the draws; this process's own by default.

    Raises:
        InvalidValueError: If no word of the prior is in the space, or a frequency is negative.
        MissingExtraError: If SciPy, which draws need, is not installed.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        prior: Mapping[str, float],
        *,
        draws: int = 500,
        rng: np.random.Generator | None = None,
    ) -> None:
        _validate.at_least(2, draws=draws)
        self.mechanism = mechanism
        self.candidates, self.prior = _candidates(mechanism.space, prior)
        self.exact = isinstance(mechanism, ExponentialMechanism)
        self.law: Law = (
            ExactLaw(mechanism, self.candidates)
            if isinstance(mechanism, ExponentialMechanism)
            else DrawnLaw(mechanism, self.candidates, self.prior, draws, rng or process_generator())
        )

    def posterior(self, outputs: Ids, prior: Reals | None = None) -> Reals:
        """Return (n, m) probabilities of the candidates, given each output.

        Args:
            outputs: (n,) ids that were released.
            prior: (n, m) what the adversary expects in each place; the same everywhere by default.
        """
        expected = self.prior if prior is None else prior
        joint = self.law.likelihoods(outputs) * expected
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
        done = 0
        for part in parts_of(outputs, len(self.mechanism.space)):
            at = slice(done, done + len(part))
            guesses[at] = largest(self.posterior(part, None if prior is None else prior[at]), count)
            done += len(part)
        return guesses


def _candidates(space: EmbeddingSpace, prior: Mapping[str, float]) -> tuple[Ids, Reals]:
    frequencies = np.fromiter(prior.values(), dtype=np.float64, count=len(prior))
    if not np.isfinite(frequencies).all() or (frequencies < 0).any():
        raise InvalidValueError("expected frequencies in prior to be finite and not below 0")
    ids = space.ids(list(prior))
    possible = (ids >= 0) & (frequencies > 0)
    if not possible.any():
        raise InvalidValueError(
            f"expected words of the space in prior, got {len(prior)} words of which it has none; "
            "are they in the letter case of the space?"
        )
    ids, frequencies = ids[possible], frequencies[possible]
    order = np.argsort(-frequencies, kind="stable")
    return ids[order], frequencies[order] / frequencies.sum()

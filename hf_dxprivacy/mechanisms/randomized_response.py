"""k-ary randomized response: a word stays, or becomes any other word with the same probability."""

import math

import numpy as np

from hf_dxprivacy.mechanisms.base import Calibration, ExponentialLaw, Ids, Reals
from hf_dxprivacy.randomness import RowStreams, uniforms
from hf_dxprivacy.spaces import EmbeddingSpace

# Version of the mapping from noise to words; see `hierarchical.SAMPLER`.
SAMPLER = 1


class RandomizedResponse(ExponentialLaw):
    """k-ary randomized response (Warner 1965; Kairouz, Bonawitz, Ramage 2016), of k = V words.

    A word stays with probability e^ε/(e^ε+V−1), and becomes each other word with 1/(e^ε+V−1). The
    metric is 0/1: ε is pure local differential privacy, and vectors have no influence. It is what
    every other mechanism is to be compared with at an equal local ε.

    The unknown word, which is no output, becomes every word with probability 1/V. Pure local DP
    holds with it too: e^ε/(e^ε+V−1) ≤ e^ε·1/V, since V ≤ e^ε+V−1, and 1/V ≤ e^ε/(e^ε+V−1), since
    e^ε+V−1 ≤ V·e^ε. Two words attain ε, so it is exact.

    Args:
        space: Where the words are.
        epsilon: ε > 0.
    """

    name = "krr"
    own_metric = True
    chunk = 1 << 14

    def __init__(self, space: EmbeddingSpace, epsilon: float) -> None:
        super().__init__(space, epsilon)
        # The law is exp(−ε·[x ≠ y])/Z with one Z for all words, and two words attain ε.
        self._calibration = Calibration(self.epsilon, self.epsilon)

    @property
    def noise_parameters(self) -> dict[str, float | str | None]:
        """The parameters and the version of the sampler."""
        return {**super().noise_parameters, "sampler": SAMPLER}

    @property
    def metric(self) -> str:
        """Name of the metric of the guarantee."""
        return "0/1 distance (any two different inputs)"

    @property
    def diameter(self) -> float:
        """1 between any two different inputs."""
        return 1.0

    def pair_distances(self, ids_a: Ids, ids_b: Ids) -> Reals:
        """Return (m,) 0 where the inputs are the same, and 1 elsewhere."""
        return np.not_equal(ids_a, ids_b).astype(np.float64)

    def neighbour_distances(self) -> dict[int, float]:
        """Distance to the 1st, 10th, 100th neighbour: 1, if there is another word."""
        return dict.fromkeys((1, 10, 100), float(len(self.space) > 1))

    @property
    def _others(self) -> float:
        """(V−1)·e^(−ε), the mass of all other words where that of the word itself is 1."""
        return (len(self.space) - 1) * math.exp(-self.epsilon)

    def output_distances(self, ids: Ids) -> Reals:
        """Return (m, V) distances from inputs to all words: 0 to itself, 1 to the others."""
        return np.not_equal(np.asarray(ids)[:, None], np.arange(len(self.space))).astype(np.float64)

    def weighted_sums(self, values: Reals, ids: Ids) -> Reals:
        """See base class; in O(V)."""
        sums: Reals = values[ids] + (values.sum() - values[ids]) * math.exp(-self.epsilon)
        return sums

    def _draw(self, ids: Ids, streams: RowStreams, positions: Ids) -> Ids:
        uniform = streams.draw(uniforms, positions) * (1.0 + self._others)
        moved = np.flatnonzero((uniform < self._others) | (ids < 0))
        drawn = ids.copy()
        if len(moved):
            inputs = ids[moved]
            choices = len(self.space) - (inputs >= 0)
            others = (streams.draw(uniforms, positions[moved]) * choices).astype(np.int64)
            # The word itself is passed over.
            drawn[moved] = others + ((inputs >= 0) & (others >= inputs))
        return drawn

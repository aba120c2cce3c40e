"""How a mechanism spreads a few words over the vocabulary: by its law, or by drawing from it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism

# Probabilities that make up 1−η exactly may miss it by their rounding; so may equal ones.
ROUNDING = 1e-12
SAME = 1.0 - 1e-9


@dataclass(frozen=True)
class Terms:
    """What is worked out for each word.

    Attributes:
        runs: R, draws for each word.
        eta: η, the probability that S_w may leave out.
        confidence: Of bounds that come from draws.
        count_inputs: Whether the outputs of each word are kept, to count K_w.
    """

    runs: int
    eta: float
    confidence: float
    count_inputs: bool

    @property
    def loose_eta(self) -> float:
        """A share of the draws, at least η, that the true S_w outputs do not leave out.

        Of R draws at most η·R are expected outside the likeliest S_w outputs, and with the stated
        confidence no more than this times R are. So the least number of outputs that hold the
        other draws is at most S_w, with that confidence.
        """
        outside = np.arange(self.runs + 1)
        log_factorials = np.cumsum(np.log(np.maximum(outside, 1)))
        log_choices = log_factorials[-1] - log_factorials - log_factorials[::-1]
        log_law = log_choices + outside * math.log(self.eta)
        log_law += (self.runs - outside) * math.log1p(-self.eta)
        most = int(np.searchsorted(np.cumsum(np.exp(log_law)), self.confidence))
        return min(most, self.runs) / self.runs


@dataclass(frozen=True)
class Block:
    """Statistics of m words; see `PrivacyStatistics`.

    Attributes:
        kept: (m,) float64 N_w.
        support: (m,) int64 S_w by probability.
        support_low: (m,) int64, a lower bound of it.
        distinct: (m,) float64 S_w by distinct draws.
        likeliest: (m,) float64, the probability of the likeliest output.
        outputs: (m, V/8) uint8, the outputs that S_w counts as packed bits; (m, 0) if not asked
            for.
    """

    kept: NDArray[np.float64]
    support: NDArray[np.int64]
    support_low: NDArray[np.int64]
    distinct: NDArray[np.float64]
    likeliest: NDArray[np.float64]
    outputs: NDArray[np.uint8]


# A word's figures in the order of `Block`, its outputs as packed bits.
_Row = tuple[float, int, int, float, float, NDArray[np.uint8]]


def by_law(mechanism: ExponentialMechanism, ids: NDArray[np.int64], terms: Terms) -> Block:
    """Work out the statistics of words from the exact law of their outputs."""
    laws = mechanism.probabilities(ids)
    return _stacked(_row_of_law(law, int(w), terms) for w, law in zip(ids, laws, strict=True))


def by_draws(
    mechanism: Mechanism, ids: NDArray[np.int64], terms: Terms, rng: np.random.Generator
) -> Block:
    """Estimate the statistics of words from draws."""
    drawn = mechanism.sample_repeatedly(ids, terms.runs, rng)
    loose_eta, size = terms.loose_eta, len(mechanism.space)
    return _stacked(
        _row_of_draws(outputs, int(w), terms, loose_eta, size)
        for w, outputs in zip(ids, drawn, strict=True)
    )


def joined(blocks: Sequence[Block]) -> Block:
    """Return the statistics of the words of all blocks, at least one."""
    return Block(
        *(np.concatenate([getattr(b, field.name) for b in blocks]) for field in fields(Block))
    )


def _row_of_law(law: NDArray[np.float64], word: int, terms: Terms) -> _Row:
    with np.errstate(divide="ignore"):
        # 1−(1−p)^runs, to full precision for small p; ln 0 is right for p = 1.
        seen = -np.expm1(terms.runs * np.log1p(-law))
    support, least = _holding(law, terms.eta)
    outputs = _packed(law >= SAME * least, terms)
    return float(law[word]), support, support, float(seen.sum()), float(law.max()), outputs


def _row_of_draws(
    drawn: NDArray[np.int64], word: int, terms: Terms, loose_eta: float, size: int
) -> _Row:
    values, counts = np.unique(drawn, return_counts=True)
    shares = counts / terms.runs
    support, least = _holding(shares, terms.eta)
    held = np.zeros(size if terms.count_inputs else 0, dtype=np.bool_)
    if terms.count_inputs:
        held[values[shares >= SAME * least]] = True
    kept = np.count_nonzero(drawn == word) / terms.runs
    low = _holding(shares, loose_eta)[0]
    return kept, support, low, float(len(values)), float(shares.max()), _packed(held, terms)


def _holding(law: NDArray[np.float64], eta: float) -> tuple[int, float]:
    """Return the least number of entries that add up to 1−η or more, and the least of them."""
    # All that are below η/V add up to less than η: without them there is enough.
    large = law[law >= eta / len(law)]
    large[::-1].sort()
    fewer = np.searchsorted(np.cumsum(large), 1.0 - eta - ROUNDING)
    number = min(int(fewer) + 1, len(large))
    return number, float(large[number - 1])


def _packed(held: NDArray[np.bool_], terms: Terms) -> NDArray[np.uint8]:
    return np.packbits(held if terms.count_inputs else held[:0])


def _stacked(rows: Iterable[_Row]) -> Block:
    columns = list(zip(*rows, strict=True)) or [()] * 6
    kept, support, low, distinct, likeliest, outputs = columns
    return Block(
        np.array(kept, dtype=np.float64),
        np.array(support, dtype=np.int64),
        np.array(low, dtype=np.int64),
        np.array(distinct, dtype=np.float64),
        np.array(likeliest, dtype=np.float64),
        np.array(outputs, dtype=np.uint8).reshape(len(kept), -1 if len(kept) else 0),
    )

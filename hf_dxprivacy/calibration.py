"""Statistics from which an ε is chosen: how often a word stays, and how many words it may become.

After Feyisetan et al., WSDM 2020, and Xu et al., PrivateNLP 2020. The exponential mechanisms know
their law, so theirs are exact; the others are drawn from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.randomness import process_generator

# Probabilities, or draws, that are held at once.
BLOCK_ENTRIES = 1 << 22

# Probabilities that make up 1−η exactly may miss it by their rounding.
ROUNDING = 1e-12

# N_w, S_w and the number of distinct outputs of one word.
Row = tuple[float, int, float]


@dataclass(frozen=True, eq=False)
class PrivacyStatistics:
    """How a mechanism spreads each of m words over the vocabulary.

    Attributes:
        words: The m input words.
        kept: (m,) float64 N_w = Pr[M(w) = w], or the share of the draws in which w stays.
        support: (m,) int64 S_w, the least number of outputs that together hold a probability, or a
            share of the draws, of at least 1−η. From draws it is at most their number, and too
            small where it comes near that.
        distinct: (m,) float64, S_w as the papers count it: the number of distinct outputs in `runs`
            draws. Its expectation where the law is known.
        exact: Whether the law was known; otherwise the figures come from draws.
        runs: Draws for each word.
        eta: η.
    """

    words: tuple[str, ...]
    kept: NDArray[np.float64]
    support: NDArray[np.int64]
    distinct: NDArray[np.float64]
    exact: bool
    runs: int
    eta: float


def privacy_statistics(
    mechanism: Mechanism,
    words: Sequence[str] | None = None,
    runs: int = 1000,
    eta: float = 0.05,
    rng: np.random.Generator | None = None,
) -> PrivacyStatistics:
    """Work out N_w and S_w, exactly for the exponential mechanisms and from draws for the others.

    Args:
        mechanism: What to look at.
        words: Words of its space. By default all of them, which takes time quadratic in their
            number.
        runs: Draws for each word, at least 1.
        eta: η in (0, 1), the probability that S_w may leave out.
        rng: Source of the draws; this process's own by default.

    Raises:
        InvalidValueError: If a word is not in the space, or a number is out of range.
        InvalidTypeError: If the words are a single string, or `runs` is no whole number.
    """
    _validate.at_least(1, runs=runs)
    _validate.between(0.0, 1.0, eta=eta)
    chosen = mechanism.space.words if words is None else words
    ids = mechanism.space.ids(chosen)
    if unknown := np.count_nonzero(ids < 0):
        raise InvalidValueError(
            f"expected words of the space, got {unknown} of {len(ids)} that it lacks; leave them "
            "out (`in` tells which)"
        )
    exact = isinstance(mechanism, ExponentialMechanism)
    rows = (
        _by_law(mechanism, ids, runs, eta)
        if isinstance(mechanism, ExponentialMechanism)
        else _by_draws(mechanism, ids, runs, eta, rng or process_generator())
    )
    kept, support, distinct = np.array(list(rows), dtype=np.float64).reshape(-1, 3).T
    return PrivacyStatistics(
        tuple(chosen), kept, support.astype(np.int64), distinct, exact, runs, eta
    )


def _by_law(
    mechanism: ExponentialMechanism, ids: NDArray[np.int64], runs: int, eta: float
) -> Iterator[Row]:
    for block in _blocks(ids, len(mechanism.space)):
        for word, law in zip(block, mechanism.probabilities(block), strict=True):
            with np.errstate(divide="ignore"):
                # 1−(1−p)^runs, to full precision for small p; ln 0 is right for p = 1.
                seen = -np.expm1(runs * np.log1p(-law))
            yield float(law[word]), _holding(law, eta), float(seen.sum())


def _by_draws(
    mechanism: Mechanism,
    ids: NDArray[np.int64],
    runs: int,
    eta: float,
    rng: np.random.Generator,
) -> Iterator[Row]:
    for block in _blocks(ids, runs):
        drawn = mechanism.sample(np.repeat(block, runs), rng).reshape(-1, runs)
        for word, outputs in zip(block, drawn, strict=True):
            counts = np.unique(outputs, return_counts=True)[1]
            kept = np.count_nonzero(outputs == word) / runs
            yield kept, _holding(counts / runs, eta), float(len(counts))


def _blocks(ids: NDArray[np.int64], entries: int) -> Iterator[NDArray[np.int64]]:
    step = max(1, BLOCK_ENTRIES // entries)
    for start in range(0, len(ids), step):
        yield ids[start : start + step]


def _holding(law: NDArray[np.float64], eta: float) -> int:
    """Return the least number of entries that add up to 1−η or more."""
    # All that are below η/V add up to less than η: without them there is enough.
    large = law[law >= eta / len(law)]
    large[::-1].sort()
    fewer = np.searchsorted(np.cumsum(large), 1.0 - eta - ROUNDING)
    return min(int(fewer) + 1, len(large))

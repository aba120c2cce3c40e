"""Differentially private release of the n-grams of a corpus.

After Chen, Acs, Castelluccia, *Differentially private sequential data publication via
variable-length n-grams* (CCS 2012), below [C], with the candidates of Kim, Gopi, Kulkarni,
Yekhanin, *Differentially private n-gram extraction* (NeurIPS 2021).

What holds: ε_g-differential privacy for one record added to or removed from the corpus. A record is
cut to l_max symbols, so grams start at no more than l_max positions of it (its end is no start).
Each start adds 1 to at most one count of each length. A count of a gram gets Laplace noise of scale
l_max/ε_v, where ε_v is a share of ε_g, and the shares of a gram and of all its beginnings sum to at
most 1. So the log-ratio of everything that is drawn changes by at most

    Σ_counts |change|·ε_v/l_max ≤ Σ_starts Σ_lengths ε_v/l_max ≤ l_max·ε_g/l_max = ε_g.

Which counts are asked for at a length, and with which ε_v, follows from what was released at
shorter lengths alone, so the sum is that of adaptive composition; thresholds are post-processing.

Where this differs from [C]:

- A word of the alphabet whose own count is not released becomes the mark `UNKNOWN` from there on,
  as a word outside of the alphabet is from the start. The position has then spent the share of the
  first length on its own word, and all grams that begin with a mark count that share as spent; the
  marks themselves are not counted. So one position still spends at most ε_g.
- The start of a record is a mark too, and one of the l_max symbols.
- Candidates for the next symbol after a gram are only what follows the gram without its first
  symbol (and all released words after a single one): any other gram occurs at most as often as one
  that was not released. The candidates are public given the shorter grams. Fewer of them make a
  lower threshold.
- The threshold lets `SPURIOUS` grams that do not occur through for each node, and not one; it
  holds at the last length too.

The proof is about real numbers, and the noise is of double precision. Its low bits can tell the
count they were added to (Mironov, *On significance of the least significant bits for differential
privacy*, CCS 2012), so they are not released: counts are rounded to whole numbers. A count is one
itself, so what is released is the count plus the rounded noise, with probabilities as exact as the
generator's 53 bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hf_dxprivacy.errors import require_at_least, require_positive
from hf_dxprivacy.slots.ngram_tree import CUT, END, FIRST_WORD, UNKNOWN, Floats, Grams, Ids, Symbols

# Expected number of released grams that do not occur, for each node whose continuations are sought.
SPURIOUS = 0.1

# Below this share nothing is left but rounding.
_LEAST_SHARE = 1e-9

# Positions looked at together; what a chunk needs besides the corpus stays below 200 MB.
_CHUNK = 1 << 22

_DEAD = -1


@dataclass(frozen=True)
class ReleaseConfig:
    """Parameters of a release of n-grams.

    Attributes:
        epsilon: ε_g, for one record; None for exact counts.
        n_max: Length of the longest grams.
        l_max: Symbols kept of a record.
        min_count: Grams with a smaller (noisy) count are not released.
    """

    epsilon: float | None
    n_max: int
    l_max: int
    min_count: int

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            require_positive(
                "use None for the exact counts of a public corpus", epsilon=self.epsilon
            )
        require_at_least(1, n_max=self.n_max, min_count=self.min_count)
        require_at_least(2, "the start of a record is a symbol too", l_max=self.l_max)

    def plain(self) -> "ReleaseConfig":
        """Return a copy with numbers of Python for those of NumPy, which JSON lacks."""
        epsilon = None if self.epsilon is None else float(self.epsilon)
        return ReleaseConfig(epsilon, int(self.n_max), int(self.l_max), int(self.min_count))

    def scale(self, share: Floats | float) -> Floats:
        """Return the scale of the noise of counts that get these shares of ε_g."""
        budget = np.inf if self.epsilon is None else self.epsilon
        return np.asarray(self.l_max / (budget * np.asarray(share)))

    def threshold(self, scale: Floats | float, candidates: Ids | int) -> Floats:
        """Return the thresholds of counts for scales of noise and numbers of candidates."""
        expected = np.log(np.asarray(candidates) / (2 * SPURIOUS))
        return np.maximum(scale * expected, float(self.min_count))


def release(
    symbols: Symbols, alphabet: Sequence[str], config: ReleaseConfig, rng: np.random.Generator
) -> Grams:
    """Release the n-grams of a corpus, with counts that are noisy by ε_g and whole numbers.

    Args:
        symbols: (N,) codes as `read_symbols` returns them for the alphabet and ``config.l_max``.
        alphabet: Public words.
        config: ε_g and the rest.
        rng: Where the noise comes from.
    """
    share = 1.0 / config.n_max
    scale = config.scale(share)
    threshold = config.threshold(scale, len(alphabet))
    occurring = np.zeros(FIRST_WORD + len(alphabet), dtype=np.int64)
    for start in range(0, len(symbols), _CHUNK):
        occurring += np.bincount(symbols[start : start + _CHUNK], minlength=len(occurring))
    counts = rng.laplace(occurring[FIRST_WORD:], scale)
    kept = np.flatnonzero(counts >= threshold)
    words = [alphabet[word] for word in kept.tolist()]
    grams = Grams.of_words(words, np.rint(counts[kept]), share)
    # Words get other numbers; those that are not released become `UNKNOWN`.
    codes = np.full(len(occurring), UNKNOWN, dtype=np.int32)
    codes[:FIRST_WORD] = np.arange(FIRST_WORD)
    codes[FIRST_WORD + kept] = FIRST_WORD + np.arange(len(kept))
    paths = Paths(codes[symbols])
    thresholds = np.full(grams.width, threshold)
    for length in range(1, config.n_max):
        frontier = _frontier(grams, length, config, thresholds)
        keys, counts = _released(frontier, grams, *paths.continuations(grams.width), rng)
        owner = np.searchsorted(frontier.nodes, keys // grams.width)
        grams = grams.extended(keys, counts, frontier.share[owner])
        thresholds = np.concatenate([thresholds, frontier.threshold[owner]])
        paths.advance(grams)
    return grams


@dataclass(frozen=True, eq=False)
class _Frontier:
    """The m nodes whose continuations are counted, ascending."""

    nodes: Ids
    # The node whose symbol is the first candidate, and how many candidates there are, > 0.
    first: Ids
    size: Ids
    # The share of ε_g of each count, the scale of its noise, and what it has to reach.
    share: Floats
    scale: Floats
    threshold: Floats


def _frontier(grams: Grams, length: int, config: ReleaseConfig, thresholds: Floats) -> _Frontier:
    level = grams.levels[length - 1] if length <= len(grams.levels) else slice(0, 0)
    nodes = np.arange(level.start, level.stop)
    first, stop = grams.followers(grams.suffix[nodes])
    symbols = grams.symbol[nodes]
    left = 1.0 - grams.spent[nodes]
    grown = (symbols != END) & (symbols != CUT) & (stop > first) & (left > _LEAST_SHARE)
    nodes, first, stop, left = nodes[grown], first[grown], stop[grown], left[grown]
    # Over how many lengths the rest of the budget is spread, h in [C]: counts fall by the factor
    # P_max at each length at least, if they do so as after the gram without its first symbol, and
    # what falls below the threshold needs no budget.
    steps = np.full(len(nodes), float(config.n_max - length))
    if config.epsilon is not None and len(nodes):
        bounds = np.stack([first, stop], axis=1).ravel()
        largest = np.maximum.reduceat(np.append(grams.probability, 0.0), bounds)[::2]
        # A mark has no count, and a largest probability of 0 or 1 tells nothing: all lengths then.
        known = (grams.count[nodes] > 0) & (largest > 0) & (largest < 1)
        fall = np.log(thresholds[nodes][known]) - np.log(grams.count[nodes][known])
        steps[known] = np.clip(np.ceil(fall / np.log(largest[known])), 1.0, steps[known])
    share = left / steps
    scale, size = config.scale(share), stop - first
    return _Frontier(nodes, first, size, share, scale, config.threshold(scale, size))


def _released(
    frontier: _Frontier, grams: Grams, keys: Ids, counts: Floats, rng: np.random.Generator
) -> tuple[Ids, Floats]:
    """Return the keys of the next level that reach their threshold, ascending, and their counts."""
    # Only what continues the frontier by a candidate.
    parent, symbol = keys // grams.width, keys % grams.width
    possible = grams.child(grams.suffix[parent], symbol) >= 0
    possible &= np.isin(parent, frontier.nodes) & (symbol != CUT)
    keys, counts = keys[possible], counts[possible]
    owner = np.searchsorted(frontier.nodes, keys // grams.width)
    noisy = rng.laplace(counts, frontier.scale[owner])
    enough = noisy >= frontier.threshold[owner]
    empty, drawn = _empty(frontier, grams, keys, rng)
    released = np.concatenate([keys[enough], empty])
    order = np.argsort(released)
    return released[order], np.rint(np.concatenate([noisy[enough], drawn]))[order]


def _empty(
    frontier: _Frontier, grams: Grams, observed: Ids, rng: np.random.Generator
) -> tuple[Ids, Floats]:
    """Draw which candidates besides the observed keys (ascending) reach their threshold.

    They are not listed: how many do is binomial, which ones is uniform, and the excess over the
    threshold is exponential, the law of Laplace noise given that it reaches a threshold >= 0.
    Returns the keys, in no order, and their noisy counts.
    """
    occur = np.bincount(
        np.searchsorted(frontier.nodes, observed // grams.width), minlength=len(frontier.nodes)
    )
    with np.errstate(divide="ignore"):
        # Without noise, the scale 0, nothing reaches it.
        chance = 0.5 * np.exp(-frontier.threshold / frontier.scale)
    owner = np.repeat(np.arange(len(chance)), rng.binomial(frontier.size - occur, chance))
    found, owners, taken = [np.empty(0, np.int64)], [np.empty(0, np.int64)], observed
    while len(owner):
        candidate = frontier.first[owner] + rng.integers(0, frontier.size[owner])
        keys = frontier.nodes[owner] * grams.width + grams.symbol[candidate]
        distinct, index = np.unique(keys, return_index=True)
        # What occurs, or came before, is drawn again; so is the later one of two equal ones.
        fresh = index[~np.isin(distinct, taken)]
        found.append(keys[fresh])
        owners.append(owner[fresh])
        taken = np.concatenate([taken, keys[fresh]])
        owner = np.delete(owner, fresh)
    of = np.concatenate(owners)
    return np.concatenate(found), frontier.threshold[of] + rng.exponential(frontier.scale[of])


class Paths:
    """For each position of a corpus (N codes), the node that the gram from there stands at.

    Eight bytes for each symbol: the codes, and the nodes. A path ends at a mark that ends a record,
    so that no gram crosses two records, and where its gram was not released.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._nodes = np.where((symbols == END) | (symbols == CUT), _DEAD, symbols)
        self._length = 1

    def continuations(self, width: int) -> tuple[Ids, Floats]:
        """Return the distinct keys that the paths go on to, ascending, and how many do."""
        parts = [np.unique(k, return_counts=True) for _, k in self._chunks(width)]
        if not parts:
            return np.empty(0, np.int64), np.empty(0)
        keys, part_of = np.unique(np.concatenate([k for k, _ in parts]), return_inverse=True)
        # Sums of whole numbers are exact in float64.
        return keys, np.bincount(part_of, np.concatenate([n for _, n in parts])).astype(float)

    def advance(self, grams: Grams) -> None:
        """Go on by one symbol where that leads to a released gram."""
        for positions, keys in self._chunks(grams.width):
            nodes = grams.child(keys // grams.width, keys % grams.width)
            self._nodes[positions] = np.where(keys % grams.width == END, _DEAD, nodes)
        self._length += 1

    def _chunks(self, width: int) -> Iterator[tuple[Ids, Ids]]:
        for start in range(0, len(self._nodes), _CHUNK):
            positions = start + np.flatnonzero(self._nodes[start : start + _CHUNK] != _DEAD)
            following = self._symbols[positions + self._length]
            yield positions, self._nodes[positions].astype(np.int64) * width + following

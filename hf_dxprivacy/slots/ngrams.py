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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hf_dxprivacy import _validate
from hf_dxprivacy.slots.grams import Floats, Grams, Ids
from hf_dxprivacy.slots.paths import Paths, recoded, word_counts
from hf_dxprivacy.slots.symbols import CUT, END, Symbols

# Expected number of released grams that do not occur, for each node whose continuations are sought.
SPURIOUS = 0.1

# Below this share nothing is left but rounding.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class Terms:
    """What decides the law of a release.

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
            _validate.positive(
                "use None for the exact counts of a public corpus", epsilon=self.epsilon
            )
        _validate.at_least(1, n_max=self.n_max, min_count=self.min_count)
        _validate.at_least(2, "the start of a record is a symbol too", l_max=self.l_max)

    def plain(self) -> "Terms":
        """Return the same with Python's own numbers, which JSON has, for those of NumPy."""
        epsilon = None if self.epsilon is None else float(self.epsilon)
        return Terms(epsilon, int(self.n_max), int(self.l_max), int(self.min_count))

    @property
    def budget(self) -> float:
        """ε_g; ∞ for exact counts."""
        return np.inf if self.epsilon is None else float(self.epsilon)

    def scale(self, share: Floats | float) -> Floats:
        """Return the scale of the noise of counts that get these shares of ε_g."""
        return np.asarray(self.l_max / (self.budget * np.asarray(share)))

    def threshold(self, scale: Floats | float, candidates: Ids | int) -> Floats:
        """Return what counts have to reach, given the scale and the number of candidates."""
        return np.maximum(
            scale * np.log(np.asarray(candidates) / (2 * SPURIOUS)), float(self.min_count)
        )


def release(
    symbols: Symbols, alphabet: Sequence[str], terms: Terms, rng: np.random.Generator
) -> Grams:
    """Release the n-grams of a corpus, with counts that are noisy by ε_g.

    Args:
        symbols: (N,) codes as `read_symbols` returns them for the alphabet and ``terms.l_max``.
        alphabet: Public words.
        terms: ε_g and the rest.
        rng: Where the noise comes from.

    Returns:
        The grams, with whole numbers for counts. All else that is computed from the corpus is
        forgotten.
    """
    share = 1.0 / terms.n_max
    scale = terms.scale(share)
    threshold = terms.threshold(scale, len(alphabet))
    counts = rng.laplace(word_counts(symbols, len(alphabet)), scale)
    kept = np.flatnonzero(counts >= threshold)
    words = [alphabet[word] for word in kept.tolist()]
    grams = Grams.of_words(words, np.rint(counts[kept]), share)
    paths = Paths(recoded(symbols, len(alphabet), kept))
    thresholds = np.full(grams.width, threshold)
    for length in range(1, terms.n_max):
        frontier = _frontier(grams, length, terms, thresholds)
        keys, counts = paths.continuations(grams.width)
        keys, counts = _released(frontier, grams, keys, counts, rng)
        owner = np.searchsorted(frontier.nodes, keys // grams.width)
        grams = grams.extended(keys, counts, frontier.share[owner])
        thresholds = np.concatenate([thresholds, frontier.threshold[owner]])
        paths.advance(grams)
    return grams


@dataclass(frozen=True, eq=False)
class _Frontier:
    """The nodes whose continuations are counted, ascending.

    Attributes:
        nodes: (m,) nodes.
        first: (m,) node whose symbol is the first candidate; the others follow it.
        size: (m,) number of candidates, > 0.
        share: (m,) share of ε_g that each of the counts gets.
        scale: (m,) scale of their noise.
        threshold: (m,) what they have to reach.
    """

    nodes: Ids
    first: Ids
    size: Ids
    share: Floats
    scale: Floats
    threshold: Floats


def _frontier(grams: Grams, length: int, terms: Terms, thresholds: Floats) -> _Frontier:
    level = grams.levels[length - 1] if length <= len(grams.levels) else slice(0, 0)
    nodes = np.arange(level.start, level.stop)
    first, stop = grams.followers(grams.suffix[nodes])
    symbols = grams.symbol[nodes]
    left = 1.0 - grams.spent[nodes]
    grown = (symbols != END) & (symbols != CUT) & (stop > first) & (left > _LEAST_SHARE)
    nodes, first, size = nodes[grown], first[grown], (stop - first)[grown]
    share = left[grown] / _steps(grams, nodes, length, terms, thresholds)
    scale = terms.scale(share)
    return _Frontier(nodes, first, size, share, scale, terms.threshold(scale, size))


def _steps(grams: Grams, nodes: Ids, length: int, terms: Terms, thresholds: Floats) -> Floats:
    """Return over how many lengths the rest of the budget is spread, h in [C].

    Counts fall by the factor P_max at each length at least, if they do so as after the gram
    without its first symbol; what falls below the threshold needs no budget.
    """
    most = float(terms.n_max - length)
    if terms.epsilon is None or len(nodes) == 0:
        return np.full(len(nodes), most)
    first, stop = grams.followers(grams.suffix[nodes])
    largest = np.maximum.reduceat(
        np.append(grams.probability, 0.0), np.stack([first, stop], axis=1).ravel()
    )[::2]
    # A mark has no count, and a largest probability of 0 or 1 tells nothing: all lengths then.
    known = (grams.count[nodes] > 0) & (largest > 0) & (largest < 1)
    fall = np.log(thresholds[nodes], where=known, out=np.zeros(len(nodes)))
    fall -= np.log(grams.count[nodes], where=known, out=np.zeros(len(nodes)))
    rate = np.log(largest, where=known, out=np.full(len(nodes), -1.0))
    return np.where(known, np.clip(np.ceil(fall / rate), 1.0, most), most)


def _released(
    frontier: _Frontier, grams: Grams, keys: Ids, counts: Floats, rng: np.random.Generator
) -> tuple[Ids, Floats]:
    """Return the keys of the next level that reach their threshold, ascending, and their counts."""
    keys, counts = _candidates(frontier, grams, keys, counts)
    owner = np.searchsorted(frontier.nodes, keys // grams.width)
    noisy = rng.laplace(counts, frontier.scale[owner])
    enough = noisy >= frontier.threshold[owner]
    empty, drawn = _empty(frontier, grams, keys, rng)
    released = np.concatenate([keys[enough], empty])
    order = np.argsort(released)
    return released[order], np.rint(np.concatenate([noisy[enough], drawn]))[order]


def _candidates(frontier: _Frontier, grams: Grams, keys: Ids, counts: Floats) -> tuple[Ids, Floats]:
    """Leave only what continues the frontier by a candidate."""
    parent, symbol = keys // grams.width, keys % grams.width
    possible = grams.child(grams.suffix[parent], symbol) >= 0
    possible &= np.isin(parent, frontier.nodes) & (symbol != CUT)
    return keys[possible], counts[possible]


def _empty(
    frontier: _Frontier, grams: Grams, observed: Ids, rng: np.random.Generator
) -> tuple[Ids, Floats]:
    """Draw which candidates that do not occur reach their threshold, without listing them.

    How many do is binomial, which ones is uniform, and the excess over the threshold is
    exponential: the law of Laplace noise given that it reaches a threshold >= 0.

    Args:
        frontier: The nodes.
        grams: The tree.
        observed: Keys of the candidates that occur, ascending.
        rng: Where the randomness comes from.

    Returns:
        The keys, in no order, and their noisy counts.
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

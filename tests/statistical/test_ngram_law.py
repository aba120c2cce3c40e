"""Released n-grams: the noise of each length, what does not occur, and one record more or less."""

import math
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots import ngram_release
from hf_dxprivacy.slots.ngram_release import ReleaseConfig, release
from hf_dxprivacy.slots.ngram_tree import FIRST_WORD, UNKNOWN, Grams, Symbols, read_symbols
from laws import (
    ALPHA,
    RejectedError,
    check_frequencies,
    check_independent,
    check_law_and_scale,
    clopper_pearson,
)

PHRASES, COPIES = 3000, 160


@pytest.fixture(scope="module")
def noisy() -> tuple[Grams, ReleaseConfig]:
    """Three thousand phrases of words of their own, so often that no count is near θ."""
    phrases = [[f"{place}{i}" for place in ("x", "y", "z")] for i in range(PHRASES)]
    alphabet = tuple(word for phrase in phrases for word in phrase)
    config = ReleaseConfig(2.4, 3, 4, 1)
    symbols = read_symbols(phrases, alphabet, config.l_max)
    return release(np.tile(symbols, COPIES), alphabet, config, keyed_generator(0)), config


@pytest.mark.parametrize("length", [1, 2, 3])
def test_noise_of_each_length_is_laplace(noisy: tuple[Grams, ReleaseConfig], length: int) -> None:
    grams, config = noisy
    level = grams.levels[length - 1]
    nodes = np.arange(max(level.start, FIRST_WORD), level.stop)
    nodes = nodes[grams.count[nodes] > COPIES / 2]
    assert len(nodes) >= PHRASES
    scale = config.l_max / (config.epsilon * grams.share[nodes])
    # Spread evenly over what was rounded to the same number: the Laplace law again, but for the
    # bend within a step, 1/(64·scale²) of probability or 0.0025 here.
    steps = np.random.default_rng(length).uniform(-0.5, 0.5, len(nodes))
    noise = (grams.count[nodes] - COPIES + steps) / scale
    check_law_and_scale(noise, stats.laplace.cdf)
    check_independent(noise[0::2][: len(noise) // 2], noise[1::2])


def test_what_does_not_occur_has_the_law_of_listing_it() -> None:
    """Six candidates, two of them observed: each other one is there with the same probability."""
    trials, words = 20_000, 4
    grams = Grams.of_words("abcd", np.full(words, 9.0), 0.5)
    size = grams.width - UNKNOWN
    nodes = np.arange(trials, dtype=np.int64)
    scale, threshold = np.full(trials, 3.0), np.full(trials, 2.0)
    frontier = ngram_release._Frontier(
        nodes, np.full(trials, UNKNOWN), np.full(trials, size), scale, scale, threshold
    )
    observed = np.sort(np.concatenate([nodes * grams.width + symbol for symbol in (3, 5)]))
    keys, counts = ngram_release._empty(frontier, grams, observed, keyed_generator(1))
    chance = 0.5 * math.exp(-2.0 / 3.0)
    check_frequencies(_outcomes(keys, grams.width, trials), _listed(chance, (2, 4, 6, 7)))
    for factor in (0.8, 1.25):
        with pytest.raises(RejectedError, match=r"chi-square.*alpha="):
            check_frequencies(
                _outcomes(keys, grams.width, trials), _listed(chance * factor, (2, 4, 6, 7))
            )
    check_law_and_scale((counts - 2.0) / 3.0, stats.expon.cdf)


def _outcomes(keys: NDArray[np.int64], width: int, trials: int) -> NDArray[np.int64]:
    """Count for each set of symbols, as a bit mask, how often just that set came."""
    sets = np.zeros(trials, dtype=np.int64)
    np.add.at(sets, keys // width, 1 << (keys % width))
    return np.bincount(sets, minlength=1 << width)


def _listed(chance: float, symbols: tuple[int, ...]) -> NDArray[np.float64]:
    """The law of going through the symbols one by one."""
    law = np.zeros(1 << 8)
    law[0] = 1.0
    for symbol in symbols:
        law = law * (1 - chance) + chance * np.roll(law, 1 << symbol)
    return law


class HalvedNoise(np.random.Generator):
    """A generator that breaks the promise."""

    def laplace(self, loc: object = 0.0, scale: object = 1.0, size: object = None) -> object:
        """Draw with half of the scale."""
        return super().laplace(loc, np.asarray(scale) / 2, size)  # type: ignore[arg-type]


ALPHABET = tuple("abcd")
# n_max, the lengths of the other records (all of them nothing but "a"), and runs. With the record
# that comes or goes the counts are near their thresholds, without it far below.
AUDITS = [(1, (11,), 2000), (2, (19, 19), 2500)]


def released_sets(
    symbols: Symbols, config: ReleaseConfig, rng: np.random.Generator, runs: int
) -> Counter[frozenset[tuple[str, ...]]]:
    sets: Counter[frozenset[tuple[str, ...]]] = Counter()
    for _ in range(runs):
        grams = release(symbols, ALPHABET, config, rng)
        nodes = range(FIRST_WORD, len(grams.parent))
        sets[frozenset(tuple(grams.spelled(node)) for node in nodes)] += 1
    return sets


def lower_bound(n_max: int, others: tuple[int, ...], runs: int, halved: bool) -> float:
    """Bound the largest log-ratio over events "this gram was released" and "just this set was".

    All bounds hold together with probability 1 - `ALPHA`.
    """
    config = ReleaseConfig(2.0, n_max, 20, 1)
    lengths = (*others, config.l_max - 1)
    counts = []
    for number, texts in enumerate((lengths[:-1], lengths)):
        rng = keyed_generator(4, n_max, number)
        if halved:
            rng = HalvedNoise(rng.bit_generator)
        counts.append(
            released_sets(
                read_symbols([["a"] * n for n in texts], ALPHABET, config.l_max), config, rng, runs
            )
        )
    tables = [_events(sets) for sets in counts]
    events = sorted(tables[0].keys() | tables[1].keys(), key=repr)
    bounds = []
    for first, second in (tables, tables[::-1]):
        for event in events:
            low = clopper_pearson(first[event], runs, ALPHA / (4 * len(events)))[0]
            high = clopper_pearson(second[event], runs, ALPHA / (4 * len(events)))[1]
            bounds.append(math.log(low / high) if low > 0 else -math.inf)
    return max(bounds)


def _events(sets: Counter[frozenset[tuple[str, ...]]]) -> Counter[object]:
    events: Counter[object] = Counter(sets)
    for grams, count in sets.items():
        for gram in grams:
            events[gram] += count
    return events


@pytest.mark.parametrize(("n_max", "others", "runs"), AUDITS)
def test_one_record_changes_what_is_released_by_at_most_epsilon(
    n_max: int, others: tuple[int, ...], runs: int
) -> None:
    bound = lower_bound(n_max, others, runs, halved=False)
    assert 0.5 < bound <= 2.0


@pytest.mark.parametrize(("n_max", "others", "runs"), AUDITS)
def test_the_audit_finds_halved_noise(n_max: int, others: tuple[int, ...], runs: int) -> None:
    assert lower_bound(n_max, others, runs, halved=True) > 2.0

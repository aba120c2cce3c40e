"""What one position of a record spends of ε_g: on random corpora, at most all of it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots.ngram_release import ReleaseConfig, release
from hf_dxprivacy.slots.ngram_tree import FIRST_WORD, ROOT, Grams, read_symbols

ALPHABET = tuple("abcde")

records = st.lists(st.lists(st.sampled_from([*ALPHABET, "x"]), max_size=8), max_size=40)
config = st.builds(
    ReleaseConfig,
    epsilon=st.floats(1e-3, 1e4),
    n_max=st.integers(1, 6),
    l_max=st.integers(2, 10),
    min_count=st.integers(1, 3),
)


def _path(grams: Grams, node: int) -> list[int]:
    path = []
    while node != ROOT:
        path.append(node)
        node = int(grams.parent[node])
    return path[::-1]


@settings(deadline=None, max_examples=60)
@given(records, config, st.integers(1, 300), st.integers(0, 2**32))
def test_the_budget_of_every_path_is_at_most_epsilon(
    texts: list[list[str]], config: ReleaseConfig, copies: int, key: int
) -> None:
    symbols = read_symbols(texts * copies, ALPHABET, config.l_max)
    grams = release(symbols, ALPHABET, config, keyed_generator(key))
    assert (grams.share > 0).all()
    for node in range(len(grams.parent)):
        path = _path(grams, node)
        assert grams.share[path].sum() <= 1 + 1e-12
        assert len(path) <= config.n_max
        # A word that becomes unknown has spent the share of the first length already.
        assert grams.share[path[0]] == 1 / config.n_max
    assert (np.diff(grams.keys) > 0).all()
    assert (grams.count[FIRST_WORD:] >= config.min_count).all()

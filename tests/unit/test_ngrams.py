"""Released n-grams against counting them one by one, and where noise can not be seen."""

from collections import Counter

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots import ngram_release
from hf_dxprivacy.slots.ngram_release import ReleaseConfig, release
from hf_dxprivacy.slots.ngram_tree import FIRST_WORD, MARKS, Grams, fold, read_symbols

START, CUT, UNKNOWN, END = MARKS
ALPHABET = tuple("abcdefgh")
Counts = dict[tuple[str, ...], float]


def corpus(rows: int = 400, seed: int = 0) -> list[list[str]]:
    """Records of a few words, some of them rare, some outside of the alphabet."""
    rng = np.random.default_rng(seed)
    words = [*ALPHABET, "x", "y"]
    weights = np.array([20, 18, 12, 8, 6, 4, 2, 0.2, 3, 2])
    lengths = rng.integers(0, 7, rows)
    return [rng.choice(words, n, p=weights / weights.sum()).tolist() for n in lengths]


def released(grams: Grams) -> Counts:
    nodes = range(FIRST_WORD, len(grams.parent))
    return {tuple(grams.spelled(node)): float(grams.count[node]) for node in nodes}


def counted(records: list[list[str]], n_max: int, l_max: int, min_count: int) -> Counts:
    """Count as the definition says, record by record."""
    words = Counter(word for record in records for word in record[: l_max - 1])
    kept = {word for word in ALPHABET if words[word] >= min_count}
    grams: Counter[tuple[str, ...]] = Counter()
    for record in records:
        if not record:
            continue
        known = [word if word in kept else UNKNOWN for word in record[: l_max - 1]]
        symbols = [START, *known, *([END] if len(record) < l_max else [])]
        for start in range(len(known) + 1):
            grams.update(
                tuple(symbols[start : start + n])
                for n in range(1, n_max + 1)
                if start + n <= len(symbols)
            )
    enough: Counts = {(word,): words[word] for word in kept}
    followed = {(name,) for name in (*kept, UNKNOWN, END)}
    starts = followed | {(START,)}
    for n in range(2, n_max + 1):
        enough |= {
            gram: count
            for gram, count in grams.items()
            if len(gram) == n
            and count >= min_count
            and gram[:-1] in (enough.keys() | starts)
            and gram[1:] in (enough.keys() | followed)
        }
    return enough


def symbols_of(records: list[list[str]], l_max: int) -> np.ndarray:
    return read_symbols(records, ALPHABET, l_max)


@pytest.mark.parametrize("n_max", [1, 2, 3, 5])
@pytest.mark.parametrize(("l_max", "min_count"), [(2, 1), (5, 1), (5, 12), (20, 4)])
def test_exact_counts_are_those_of_the_definition(n_max: int, l_max: int, min_count: int) -> None:
    records = corpus()
    config = ReleaseConfig(None, n_max, l_max, min_count)
    grams = release(symbols_of(records, l_max), ALPHABET, config, keyed_generator(0))
    assert released(grams) == counted(records, n_max, l_max, min_count)
    assert len(grams) == len(released(grams)) > 0


@pytest.mark.parametrize("n_max", [1, 2, 4])
def test_counts_are_true_when_epsilon_is_huge(n_max: int) -> None:
    """Every path keeps budget at this ε_g, so that nothing but noise could differ."""
    records = corpus()
    config = ReleaseConfig(1e12, n_max, 6, 5)
    noisy = released(release(symbols_of(records, 6), ALPHABET, config, keyed_generator(0)))
    exact = counted(records, n_max, 6, 5)
    shared = noisy.keys() & exact.keys()
    assert all(noisy[gram] == exact[gram] for gram in shared)
    # A count of exactly 5 falls on either side of the threshold.
    assert {gram for gram in noisy.keys() ^ exact.keys() if exact.get(gram) != 5} == set()
    assert len(shared) > 6


def test_no_low_bits_of_the_noise_are_released() -> None:
    records = corpus(4000)
    noisy = released(
        release(symbols_of(records, 6), ALPHABET, ReleaseConfig(3.0, 3, 6, 5), keyed_generator(0))
    )
    assert all(count == round(count) > 0 for count in noisy.values())
    exact = counted(records, 3, 6, 5)
    assert sum(noisy[gram] != exact.get(gram) for gram in noisy) > 0.8 * len(noisy)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols, config = symbols_of(corpus(), 6), ReleaseConfig(5.0, 3, 6, 1)
    whole = released(release(symbols, ALPHABET, config, keyed_generator(1)))
    monkeypatch.setattr(ngram_release, "_CHUNK", 7)
    assert released(release(symbols, ALPHABET, config, keyed_generator(1))) == whole


def test_the_corpus_is_not_changed() -> None:
    symbols = symbols_of(corpus(), 6)
    before = symbols.copy()
    release(symbols, ALPHABET, ReleaseConfig(1.0, 3, 6, 1), keyed_generator(1))
    assert (symbols == before).all()


def test_nothing_in_an_empty_corpus_occurs() -> None:
    symbols = symbols_of([[], []], 6)
    assert len(symbols) == 0
    assert len(release(symbols, ALPHABET, ReleaseConfig(None, 3, 6, 1), keyed_generator(1))) == 0


def test_a_record_starts_at_most_l_max_grams() -> None:
    """The number that the noise is scaled with: marks at the end start none."""
    for length in (1, 4, 5, 6, 50):
        symbols = read_symbols([["a"] * length], ALPHABET, 5)
        keys, counts = ngram_release.Paths(symbols).continuations(FIRST_WORD + len(ALPHABET))
        assert counts.sum() == min(length + 1, 5)
        assert len(keys) > 0


def test_grams_do_not_cross_records() -> None:
    symbols = read_symbols([["a"], ["b"], ["c", "d", "e"]], ALPHABET, 3)
    grams = released(release(symbols, ALPHABET, ReleaseConfig(None, 3, 3, 1), keyed_generator(1)))
    assert set(grams) == {
        ("a",), ("b",), ("c",), ("d",), (START, "a"), (START, "b"), (START, "c"), ("a", END),
        ("b", END), ("c", "d"), (START, "a", END), (START, "b", END), (START, "c", "d"),
    }  # fmt: skip


def test_a_word_that_was_not_released_is_unknown_from_there_on() -> None:
    records = [["a", "b"]] * 9 + [["a", "c"]] * 5 + [["a", "x"]] * 5
    grams = released(
        release(symbols_of(records, 9), ALPHABET, ReleaseConfig(None, 2, 9, 9), keyed_generator(1))
    )
    assert ("c",) not in grams
    assert grams[("a", UNKNOWN)] == 10
    assert grams[(UNKNOWN, END)] == 10


def test_only_what_follows_the_suffix_is_a_candidate() -> None:
    """At every ε: a spurious gram too ends with a gram that was released."""
    records = corpus(4000)
    for key in range(20):
        grams = released(
            release(
                symbols_of(records, 6),
                ALPHABET,
                ReleaseConfig(0.3, 4, 6, 1),
                keyed_generator(2, key),
            )
        )
        for gram in grams:
            assert gram[:-1] in grams or len(gram) == 1 or gram[:-1] in {(START,), (UNKNOWN,)}
            assert gram[1:] in grams or gram[1:] in {(), (UNKNOWN,), (END,)}
            assert START not in gram[1:]
            assert CUT not in gram


def test_the_threshold_lets_few_spurious_grams_through() -> None:
    """`SPURIOUS` for each node: here the words of an empty corpus, below the root."""
    empty, alphabet = symbols_of([], 6), [f"w{i}" for i in range(200)]
    runs = 3000
    spurious = sum(
        len(release(empty, alphabet, ReleaseConfig(1.0, 1, 6, 1), keyed_generator(3, run)))
        for run in range(runs)
    )
    # Poisson with mean 300: six standard deviations.
    assert (
        abs(spurious - ngram_release.SPURIOUS * runs) < 6 * (ngram_release.SPURIOUS * runs) ** 0.5
    )


def test_probabilities_after_a_context_sum_to_at_most_one() -> None:
    grams = release(
        symbols_of(corpus(), 6), ALPHABET, ReleaseConfig(3.0, 4, 6, 1), keyed_generator(1)
    )
    sums = np.bincount(grams.parent + 1, grams.probability)
    assert sums.max() <= 1 + 1e-12
    assert (grams.probability[FIRST_WORD:] > 0).all()


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ((0.0, 3, 9, 1), InvalidValueError, "expected epsilon > 0 .* use None for the exact"),
        ((float("inf"), 3, 9, 1), InvalidValueError, "epsilon=inf"),
        (("1", 3, 9, 1), InvalidTypeError, "expected epsilon to be a number"),
        ((1.0, 0, 9, 1), InvalidValueError, "expected n_max >= 1"),
        ((1.0, 2.5, 9, 1), InvalidTypeError, "expected n_max to be an integer"),
        ((1.0, 3, 1, 1), InvalidValueError, "expected l_max >= 2.* start of a record"),
        ((1.0, 3, 9, 0), InvalidValueError, "expected min_count >= 1"),
    ],
)
def test_terms_are_checked(
    config: tuple[float, int, int, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ReleaseConfig(*config)


def test_an_alphabet_holds_what_can_be_one_word_of_a_text() -> None:
    words = ["Play", "play", "new york", "l’eau", "l'eau", ",", "e-mail", "ß", "e\u0301t"]
    assert fold(words) == ("play", "l'eau", "ß", "\u00e9t")


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ([",", "new york"], InvalidValueError, "no word of the alphabet"),
        (["a", 1], InvalidTypeError, "expected words .* got a int"),
        ("abc", InvalidTypeError, "got one string"),
    ],
)
def test_an_alphabet_is_checked(words: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fold(words)

"""Author attribution: succeeds on what people wrote, is at chance where nothing is left."""

from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
from made_up_texts import texts_by_author

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation import author_attribution
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.results import share_interval
from hf_dxprivacy.spaces import EmbeddingSpace

AUTHORS = 6
RNG = np.random.default_rng


@pytest.fixture(scope="module")
def words(euclidean_space: EmbeddingSpace) -> list[str]:
    return list(euclidean_space.words[:200])


def accuracy(words: list[str], texts: list[str], authors: list[str]) -> float:
    known = texts_by_author(words, AUTHORS, 10, 60, seed=1)
    found = author_attribution(*known, texts, authors, subsets=20, rng=RNG(0))
    return found.results.where(metric="accuracy")[0].value


def test_texts_are_attributed_as_they_were_written_and_less_the_smaller_epsilon(
    words: list[str], euclidean_space: EmbeddingSpace
) -> None:
    texts, authors = texts_by_author(words, AUTHORS, 25, 60, seed=2)
    found = [accuracy(words, texts, authors)]
    for epsilon in (6.0, 2.0, 0.1):
        released = DxPrivatizer(euclidean_space, "tem", epsilon, seed=3).privatize(texts)
        found.append(accuracy(words, [str(text) for text in released], authors))
    assert found[0] > 0.98
    assert found == sorted(found, reverse=True)
    chance = share_interval(round(found[-1] * len(texts)), len(texts), 1 - 1e-6)
    assert chance.low < 1 / AUTHORS < chance.high


def test_shuffled_authors_are_found_by_chance(words: list[str]) -> None:
    texts, authors = texts_by_author(words, AUTHORS, 50, 60, seed=4)
    shuffled = RNG(0).permutation(authors).tolist()
    found = round(accuracy(words, texts, shuffled) * len(texts))
    chance = share_interval(found, len(texts), 1 - 1e-6)
    assert chance.low < 1 / AUTHORS < chance.high


def test_in_the_open_set_strangers_are_seldom_named(words: list[str]) -> None:
    known = texts_by_author(words, AUTHORS, 10, 60, seed=1)
    texts, authors = texts_by_author(words, 2 * AUTHORS, 10, 60, seed=6)
    found = author_attribution(*known, texts, authors, subsets=50, threshold=0.9, rng=RNG(0))
    shares = {r.metric: r.value for r in found.results}
    assert shares["recall"] > 0.9
    assert shares["accuracy"] > 0.98
    named = [name for name, author in zip(found.named, authors, strict=True) if name]
    assert len(named) == round(shares["named"] * len(texts))
    strangers = [n for n, a in zip(found.named, authors, strict=True) if a not in known[1]]
    assert sum(name is None for name in strangers) > len(strangers) / 3
    everybody = author_attribution(*known, texts, authors, threshold=0.0, rng=RNG(0))
    assert everybody.named == everybody.nearest
    assert everybody.results.where(metric="precision")[0].value < shares["precision"]


def test_with_all_features_it_is_the_cosine_of_tf_idf() -> None:
    known = ["abcde fghij abcd", "klmno pqrst klmn", "abcde klmno uvwxy"]
    asked = ["abcde uvwx", "Pqrst KLMN zz", "fghi jjj abcd"]
    rows = [Counter(grams(text)) for text in known]
    appears = Counter(gram for row in rows for gram in row)
    idf = {gram: log((1 + len(known)) / (1 + count)) + 1 for gram, count in appears.items()}

    def cosine(a: Counter[str], b: Counter[str]) -> float:
        dot = sum(a[g] * b[g] * idf[g] ** 2 for g in idf)
        return dot / sqrt(sum((b[g] * idf[g]) ** 2 for g in idf))

    expected = []
    for text in asked:
        expected.append(str(np.argmax([cosine(Counter(grams(text)), row) for row in rows])))
    found = author_attribution(known, ["0", "1", "2"], asked, ["0"] * 3, subsets=1, share=1.0)
    assert found.nearest == expected


def grams(text: str) -> list[str]:
    words = text.lower().split()
    return [g for word in words for g in [word[i : i + 4] for i in range(len(word) - 3)] or [word]]


def test_a_text_without_a_known_feature_goes_to_nobody_in_particular() -> None:
    known = ["aaaa bbbb", "cccc dddd"]
    found = author_attribution(known, ["a", "c"], ["zzzz"], ["a"], subsets=400, rng=RNG(0))
    assert found.wins[0] == pytest.approx([0.5, 0.5], abs=0.15)


def test_results_say_what_was_attacked() -> None:
    found = author_attribution(["a b"], ["x"], ["a"], ["x"]).results
    assert {(r.task, r.dataset, r.mechanism, r.epsilon) for r in found} == {
        ("attribution", "texts", "none", None)
    }
    named = found.replace(dataset="mail", mechanism="tem", epsilon=2.0)
    assert [r.value for r in named] == [r.value for r in found]
    assert {(r.task, r.dataset, r.mechanism, r.epsilon) for r in named} == {
        ("attribution", "mail", "tem", 2.0)
    }


def test_nothing_to_compare_with_is_refused() -> None:
    for texts, options, message in (
        ((["a"], [], ["a"], ["x"]), {}, "same length, got known: 1, known_authors: 0"),
        ((["a"], ["x"], [], []), {}, "texts >= 1"),
        (([" "], ["x"], ["a"], ["x"]), {}, "known texts with words in them"),
        ((["a"], ["x"], ["a"], ["x"]), {"share": 1.5}, "share"),
        ((["a"], ["x"], ["a"], ["x"]), {"subsets": 0}, "subsets"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            author_attribution(*texts, **options)  # type: ignore[arg-type]

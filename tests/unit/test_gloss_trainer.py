"""Counting, mutual information and factors against naive references; training on a toy database."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from wordnet_folder import NOUNS, OTHERS, Entry, write_wordnet

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.training import gloss
from hf_dxprivacy.training.gloss import GlossConfig, frequent_words, train_gloss
from hf_dxprivacy.training.wordnet import read_morphology, read_synsets, read_tag_counts

TOY = GlossConfig(size=30, dim=5)


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


def test_window_counts_against_a_double_loop() -> None:
    rng = np.random.default_rng(0)
    ids, texts = rng.integers(-1, 6, size=60), np.sort(rng.integers(0, 4, size=60))
    expected = np.zeros((6, 6))
    for i in range(60):
        for j in range(60):
            close = 0 < abs(i - j) <= 3 and texts[i] == texts[j]
            if close and ids[i] >= 0 and ids[j] >= 0:
                expected[ids[i], ids[j]] += 1.0 / abs(i - j)
    counts = gloss.window_counts(ids, texts, size=6, window=3)
    np.testing.assert_allclose(counts.toarray(), expected)


def test_positive_information_against_its_definition() -> None:
    counts = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 4.0], [1.0, 4.0, 0.0]])
    contexts = counts.sum(axis=0) ** 0.5
    joint = counts / counts.sum()
    with np.errstate(divide="ignore"):
        ratio = np.log(joint / np.outer(joint.sum(axis=1), contexts / contexts.sum()))
    found = gloss.positive_information(_sparse(counts), context_exponent=0.5)
    np.testing.assert_allclose(found.toarray(), np.maximum(ratio, 0.0))


def test_links_add_up_without_the_diagonal_and_average() -> None:
    links = gloss.weighted_links([(0, 1, 2.0), (0, 2, 1.0), (0, 1, 1.0), (1, 1, 5.0)], 3)
    assert links.toarray().tolist() == [[0.0, 3.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert gloss.averaging(links).toarray()[0].tolist() == [0.0, 0.75, 0.25]
    assert gloss.weighted_links([], 2).nnz == 0


def test_factors_are_those_of_the_exact_decomposition() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((80, 6)) @ np.diag([9, 7, 5, 3, 2, 1.0]) @ rng.random((6, 80))
    left, values = gloss.factors(_sparse(matrix), dim=4, seed=0)
    exact_left, exact_values, _ = np.linalg.svd(matrix)
    np.testing.assert_allclose(values, exact_values[:4], rtol=1e-4)
    np.testing.assert_allclose(np.abs((left * exact_left[:, :4]).sum(axis=0)), 1.0, atol=1e-4)


def test_frequent_words_are_words_most_frequent_first(wordnet: Path) -> None:
    words = _words(wordnet, 1000)
    assert words[:2] == ["dog", "a"]
    assert {"don't", "paris", "dogs", "canteen"} <= set(words)
    assert all(word == word.lower() and " " not in word and "_" not in word for word in words)
    assert words[:7] == _words(wordnet, 7)


def test_inflected_forms_gain_from_their_base(tmp_path: Path) -> None:
    often = [Entry("n", 20 + i, (f"l{'abcdefghijkl'[i]}",), "a dog") for i in range(12)]
    words = _words(write_wordnet(tmp_path, [*NOUNS, *often, *OTHERS]), 1000)
    # Both occur once; a dog is mentioned often, milk is not.
    assert words.index("dogs") < words.index("milk")


def test_training_is_reproducible_and_unit_scaled(wordnet: Path) -> None:
    space = train_gloss(wordnet, TOY)
    again = train_gloss(wordnet, TOY)
    assert (len(space), space.dim, space.metric) == (30, 5, "euclidean")
    np.testing.assert_allclose(space.vectors, again.vectors, atol=0.01)
    assert space.neighbour_distances((1,))[1] == pytest.approx(1.0, rel=5e-3)
    lengths = np.linalg.norm(space.vectors, axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=5e-3)
    assert np.array_equal(space.vectors.astype(np.float16), space.vectors)
    assert space.provenance["recipe"]["size"] == 30


def test_words_of_one_topic_come_together(tmp_path: Path) -> None:
    topics = {
        "sea": ("ship", "sail", "wave", "salt", "tide"),
        "law": "judge jury court bail plea".split(),
    }
    nouns = []
    for topic, words in topics.items():
        for i, (first, second) in enumerate(pairwise([*words, *words])):
            offset = 1000 * len(topic) + 10 * len(first) + len(nouns) * 100 + i
            nouns.append(
                Entry("n", offset, (f"{topic}{'abcdefghi'[i]}",), f"{first} {topic} {second}")
            )
    space = train_gloss(write_wordnet(tmp_path, [*nouns, *OTHERS]), GlossConfig(size=24, dim=4))
    within = [space.distance("ship", word) for word in ("sail", "wave", "salt", "tide")]
    across = [space.distance("ship", word) for word in topics["law"]]
    assert max(within) < min(across)


def test_too_small_a_database_is_refused(wordnet: Path) -> None:
    with pytest.raises(InvalidValueError, match="more than dim=100 words"):
        train_gloss(wordnet)
    with pytest.raises(InvalidValueError, match="window >= 1"):
        GlossConfig(window=0)


def test_a_word_without_any_context_is_refused(tmp_path: Path) -> None:
    alone = Entry("n", 30, ("...",), "hermit")
    folder = write_wordnet(tmp_path, [*NOUNS, alone, *OTHERS], tags="hermit%1:18:00:: 1 99\n")
    with pytest.raises(InvalidValueError, match="'hermit' stands near no other word"):
        train_gloss(folder, TOY)


def _words(folder: Path, size: int) -> list[str]:
    counts: Counter[str] = read_tag_counts(folder)
    return frequent_words(read_synsets(folder), read_morphology(folder), counts, size)


def _sparse(matrix: np.ndarray) -> object:
    from scipy import sparse

    return sparse.csr_matrix(matrix)

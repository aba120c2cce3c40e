"""The adversary who knows pairs of words: exact over all texts, and better where pairs say much."""

from itertools import pairwise, product

import numpy as np
import pytest

from hf_dxprivacy.evaluation import BayesAdversary, BigramModel, reconstruct_texts
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

WORDS = ("ann", "bob", "cat", "dog")
TEXTS = ("ann bob cat", "ann bob bob", "cat unheard dog", "dog", "", "bob cat ann")


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    return EmbeddingSpace.from_vectors(WORDS, np.random.default_rng(1).normal(size=(4, 3)))


def test_expectations_are_those_of_all_possible_texts(space: EmbeddingSpace) -> None:
    prior = {"ann": 4.0, "dog": 1.0, "cat": 2.0}
    adversary = BayesAdversary(create_mechanism("tem", space, 2.0), prior)
    model = BigramModel(TEXTS, adversary)
    outputs = space.ids(["dog", "bob", "cat", "cat"])
    seen = adversary.distribution.likelihoods(outputs)
    found = adversary.posterior(outputs, model.expectations(seen))
    # By hand, over ann, cat, dog: pairs of candidates, words between them passed over.
    pi, counts = np.array([4.0, 2.0, 1.0]) / 7.0, np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    total, different = counts.sum(axis=1), (counts > 0).sum(axis=1)
    share = np.divide(total, total + different, out=np.zeros(3), where=total > 0)
    follow = share[:, None] * counts / np.maximum(total, 1)[:, None] + (1 - share)[:, None] * pi
    np.testing.assert_allclose(follow.sum(axis=1), 1.0)
    expected = np.zeros((4, 3))
    for text in product(range(3), repeat=4):
        chance = pi[text[0]] * np.prod([follow[a, b] for a, b in pairwise(text)])
        chance *= np.prod([seen[at, word] for at, word in enumerate(text)])
        expected[range(4), text] += chance
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_without_pairs_it_is_the_prior(space: EmbeddingSpace) -> None:
    adversary = BayesAdversary(create_mechanism("tem", space, 2.0), dict.fromkeys(WORDS, 1.0))
    outputs = np.array([0, 3, 2])
    found = BigramModel([], adversary).expectations(adversary.distribution.likelihoods(outputs))
    np.testing.assert_allclose(found, 0.25)


def test_it_guesses_more_where_words_follow_each_other(space: EmbeddingSpace) -> None:
    texts = ["ann bob cat dog " * 5] * 40
    privatizer = DxPrivatizer(space, "tem", 1.0, seed=2**70)
    released = privatizer.privatize(texts)
    adversary = BayesAdversary(privatizer.mechanism, dict.fromkeys(WORDS, 1.0))
    alone, pairs = (
        reconstruct_texts(adversary, texts, released, tops=(1,), language_model=model)[0]
        for model in (None, BigramModel(texts, adversary))
    )
    assert alone.high < 0.6 < 0.9 < pairs.low

"""Nearest vectors of sums: the same answers as one search for each sum."""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import Mahalanobis, Mechanism, MultivariateLaplace
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import knn, nearest_euclidean, nearest_to_sums
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize("size", [1e-6, 1.0, 40.0, 1e25])
def test_every_sum_is_searched_for(
    euclidean_space: EmbeddingSpace,
    monkeypatch: pytest.MonkeyPatch,
    offset: float,
    size: float,
) -> None:
    """Also in several blocks, with equal vectors, and where float32 can not tell."""
    monkeypatch.setattr(knn, "PRODUCT_BYTES", 4 * 510 * 16)
    monkeypatch.setattr(knn, "SUM_BYTES", 4 * 510 * 3)
    vectors = np.concatenate([euclidean_space.vectors, euclidean_space.vectors[::50]])
    vectors = (vectors + np.float32(offset)).astype(np.float32)
    points = vectors[:37].astype(np.float64)
    offsets = size * np.random.default_rng(1).normal(size=(21, 8)).astype(np.float32)
    found = nearest_to_sums(points, offsets, vectors)
    each = nearest_euclidean((points[:, None] + offsets).reshape(-1, 8), vectors)
    np.testing.assert_array_equal(found, each.reshape(37, 21))


def test_one_vector_and_no_sums() -> None:
    one = np.ones((1, 3), dtype=np.float32)
    assert nearest_to_sums(one, np.zeros((2, 3), dtype=np.float32), one).tolist() == [[0, 0]]
    assert nearest_to_sums(one[:0], one, one).shape == (0, 1)


@pytest.mark.parametrize("kind", [MultivariateLaplace, Mahalanobis])
def test_noise_of_one_word_is_that_of_its_mechanism(
    euclidean_space: EmbeddingSpace, kind: type[Mechanism]
) -> None:
    mechanism, words = kind(euclidean_space, 4.0), [-1, 17]
    repeated = mechanism.sample_repeatedly(words, 300, keyed_generator(3))
    for word, outputs in zip(words, repeated, strict=True):
        drawn = mechanism.sample(np.full(300, word), keyed_generator(3))
        np.testing.assert_array_equal(outputs, drawn)

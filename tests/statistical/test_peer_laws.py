"""The peers draw what their laws say."""

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import ExactMechanism, Vickrey, create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import RejectedError, check_frequencies
from peer_laws import vickrey_on_a_line

DRAWS = 30_000
INPUTS = (-1, 0, 123)


@pytest.mark.parametrize(("name", "epsilon"), [("santext", 0.5), ("santext", 3.0)])
def test_draws_follow_the_law(name: str, epsilon: float, euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    mechanism = create_mechanism(name, space, epsilon)
    assert isinstance(mechanism, ExactMechanism)
    rng = keyed_generator(1)
    ids = rng.permutation(np.repeat(INPUTS, DRAWS))
    drawn = mechanism.sample(ids, rng)
    for word in INPUTS:
        counts = np.bincount(drawn[ids == word], minlength=len(space))
        check_frequencies(counts, mechanism.probabilities([word])[0])


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_vickrey_follows_its_integral(t: float) -> None:
    places = np.random.default_rng(3).normal(size=40).cumsum()
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(40)], places[:, None])
    mechanism, inputs = Vickrey(space, 0.7, t), np.array([0, 7, 39])
    drawn = mechanism.sample(np.repeat(inputs, DRAWS), keyed_generator(2)).reshape(3, DRAWS)
    law = vickrey_on_a_line(space.vectors[:, 0].astype(float), places[inputs], 0.7, t)
    other = vickrey_on_a_line(places, places[inputs], 0.77, min(1.0, t + 0.1))
    for row, expected, wrong in zip(drawn, law, other, strict=True):
        counts = np.bincount(row, minlength=40)
        check_frequencies(counts, expected)
        with pytest.raises(RejectedError, match=r"chi-square .* n=30000"):
            check_frequencies(counts, wrong)

"""The peers draw what their laws say."""

import numpy as np
import pytest

from hf_dxprivacy.evaluation.peer_candidates import PEERS, TruncatedGumbel
from hf_dxprivacy.evaluation.peers import Vickrey
from hf_dxprivacy.mechanisms import ExactMechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from laws import RejectedError, check_frequencies
from peer_laws import vickrey_on_a_line

DRAWS = 30_000
INPUTS = (-1, 0, 123)
LAWS = [
    ("santext", 0.5),
    ("santext", 3.0),
    ("diffractor", 0.03),
    ("diffractor", 1.0),
    ("custext", 3.0),
    ("syntf", 3.0),
    ("truncated-gumbel", 400.0),
]


@pytest.mark.parametrize(("name", "epsilon"), LAWS)
def test_draws_follow_the_law(name: str, epsilon: float, euclidean_space: EmbeddingSpace) -> None:
    space = euclidean_space.build_hierarchy(progress=False)
    mechanism = PEERS[name](space, epsilon)
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


def test_truncated_gumbel_is_the_algorithm_of_its_paper(euclidean_space: EmbeddingSpace) -> None:
    """The law is an integral; here K and the noise are drawn, and the least sum wins."""
    space, rng = euclidean_space, np.random.default_rng(4)
    mechanism = TruncatedGumbel(space, 400.0)
    distances, (_, reach) = np.sort(space.distances([123])[0]), mechanism._extent
    nearest = np.argsort(space.distances([123])[0])
    winners = []
    while len(winners) < DRAWS:
        k = rng.poisson(np.log(500))
        noise = rng.gumbel(0.0, mechanism._scale, size=20 * max(k, 1))
        noise = noise[np.abs(noise) <= reach][:k]
        if len(noise) == k > 0:
            winners.append(nearest[(distances[:k] + noise).argmin()])
    law = mechanism.probabilities([123])[0]
    check_frequencies(np.bincount(winners, minlength=500), law)
    louder = TruncatedGumbel(space, 4000.0).probabilities([123])[0]
    with pytest.raises(RejectedError, match="chi-square"):
        check_frequencies(np.bincount(winners, minlength=500), louder)

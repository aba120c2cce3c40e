"""Noise in a contracted ball: the certificate, also by the distances before, and what comes out."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.mechanisms import HyperbolicLaplace
from hf_dxprivacy.noise import ball_points
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.training.wordnet import DEFAULT_PATH
from hf_dxprivacy.verify import verify_guarantee

FACTOR, DRAWS = 0.5, 60_000


def small_ball() -> EmbeddingSpace:
    """Return twelve words of a plane ball, some of them near to each other."""
    rng = keyed_generator(3)
    points = ball_points(rng, np.linspace(0.3, 3.0, 12), 2)
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(12)], points, "poincare")


def mechanism_of(ball: EmbeddingSpace) -> HyperbolicLaplace:
    return HyperbolicLaplace(ball.contract(FACTOR), 1.01 * (ball.dim - 1) / ball.scale)


@pytest.mark.parametrize(("claimed", "holds"), [(FACTOR, True), (0.2 * FACTOR, False)])
def test_the_noise_keeps_its_certificate_by_the_distances_before(
    claimed: float, holds: bool
) -> None:
    """(c·ε)·d₀ holds, below the floor of the ball; a fifth of it does not, which shows."""
    ball = small_ball()
    mechanism, rng = mechanism_of(ball), keyed_generator(5)
    assert claimed * mechanism.epsilon < ball.dim - 1

    def release(words: list[str]) -> list[str]:
        return [ball.words[row] for row in mechanism.sample(ball.ids(words), rng).tolist()]

    found = verify_guarantee(
        release,
        list(ball.words),
        lambda a, b: claimed * mechanism.epsilon * ball.distance(a, b),
        draws=DRAWS,
        progress=False,
        rng=keyed_generator(6),
    )
    assert found.passed == holds, found


def test_the_guarantee_that_is_stated_holds() -> None:
    found = verify_guarantee(
        mechanism_of(small_ball()), draws=DRAWS, progress=False, rng=keyed_generator(7)
    )
    assert found.passed, found


@pytest.mark.skipif(
    not (Path(DEFAULT_PATH) / "data.noun").exists(), reason=f"no WordNet in {DEFAULT_PATH}"
)
def test_most_words_that_change_become_relatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of docs/hyperbolic.md, with room for another training of the ball."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[2] / "benchmarks")])
    from hypernyms import Kinship, frequent

    ball = EmbeddingSpace.from_pretrained("wordnet-poincare")
    words = frequent(ball)[:5000:40]
    kin = Kinship(DEFAULT_PATH)

    def shares(space: EmbeddingSpace) -> dict[str, float]:
        mechanism = HyperbolicLaplace(space, 1.01 * (space.dim - 1) / space.scale)
        drawn = mechanism.sample(np.repeat(space.ids(words), 8), keyed_generator(0))
        inputs = [word for word in words for _ in range(8)]
        return kin.shares(inputs, [space.words[row] for row in drawn.tolist()])

    half = shares(ball.contract(FACTOR))
    assert 0.35 < half["stays"] < 0.75
    assert half["relatives of the changed"] > 0.5
    # Without contraction nearly nothing changes, whatever the noise.
    assert shares(ball)["stays"] > 0.95

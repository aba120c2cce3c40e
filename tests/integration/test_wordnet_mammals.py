"""Training on WordNet's mammals, where the database is installed (Debian: wordnet-base)."""

from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.training import (
    PoincareConfig,
    Relations,
    depth_correlation,
    link_prediction,
    read_wordnet,
    reconstruction,
    split_relations,
    train_poincare,
)
from hf_dxprivacy.training.wordnet import DEFAULT_PATH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(DEFAULT_PATH) / "data.noun").exists(), reason=f"no WordNet in {DEFAULT_PATH}"
    ),
]

CONFIG = PoincareConfig(epochs=300)


@pytest.fixture(scope="module")
def nouns() -> Relations:
    return read_wordnet()


@pytest.fixture(scope="module")
def mammals(nouns: Relations) -> Relations:
    return nouns.below("mammal.n.01")


def test_the_closure_is_that_of_the_paper(nouns: Relations, mammals: Relations) -> None:
    assert (len(nouns), len(nouns.nodes)) == (743_241, 82_115)
    assert (len(mammals), len(mammals.nodes)) == (6_542, 1_182)


def test_mammals_are_reconstructed_better_than_in_the_reference(mammals: Relations) -> None:
    """The authors' program states a mean rank of 1.26 and a MAP of 0.927 in 5 dimensions."""
    space = train_poincare(mammals, 5, threads=1, progress=False)
    result = reconstruction(space, mammals)
    assert result.nodes == 1_181
    assert result.mean_average_precision > 0.975
    assert result.mean_rank < 1.15
    assert depth_correlation(space, mammals) > 0.5


def test_held_out_relations_are_foreseen(mammals: Relations) -> None:
    kept, held_out = split_relations(mammals, 0.05, seed=1)
    space = train_poincare(kept, 5, CONFIG, threads=1, progress=False)
    found = link_prediction(space, held_out, kept)
    shuffled = np.random.default_rng(0).permutation(len(space))
    chance = type(space)(tuple(space.words[row] for row in shuffled), space.vectors, "poincare")
    assert found.mean_average_precision > 0.6
    assert found.mean_rank < 10
    assert link_prediction(chance, held_out, kept).mean_rank > 100

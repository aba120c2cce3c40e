"""The posterior of a release: exact by Bayes' rule, and right on draws."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.mechanisms import ExponentialLaw, create_mechanism
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text.shapes import SHAPES, UNIFORMS, render
from hf_dxprivacy.verify.posterior import PosteriorLaw, frequencies
from laws import ALPHA

MECHANISMS = [("tem", 3.0), ("calibrated", 2.0), ("hierarchical", 1.5), ("krr", 5.0)]
DRAWS = 60_000
BINS = np.linspace(0.0, 1.0, 11)


@pytest.fixture(scope="module")
def space(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_hierarchy(progress=False)


def made(space: EmbeddingSpace, name: str, epsilon: float) -> ExponentialLaw:
    mechanism = create_mechanism(name, space, epsilon)
    assert isinstance(mechanism, ExponentialLaw)
    return mechanism


@pytest.mark.parametrize(("name", "epsilon"), MECHANISMS)
@pytest.mark.parametrize("kept", [[], [0, 3, 400]])
def test_it_is_what_bayes_rule_gives(
    space: EmbeddingSpace, name: str, epsilon: float, kept: list[int]
) -> None:
    mechanism = made(space, name, epsilon)
    prior, unknown = frequencies(space, "zipf")
    law = mechanism.probabilities(np.arange(-1, len(space)))
    for row in kept:
        law[row + 1] = np.arange(len(space)) == row
    joint = law * np.append(unknown, prior)[:, None]
    table = joint / joint.sum(axis=0)
    found = PosteriorLaw(mechanism, prior, unknown, np.array(kept, dtype=np.int64))
    outputs = np.array([0, 3, 17, 400, 17, 499])
    np.testing.assert_allclose(found.evidence(outputs), joint.sum(axis=0)[outputs], rtol=1e-9)
    np.testing.assert_allclose(found.unchanged(outputs), table[outputs + 1, outputs], rtol=1e-9)
    best, shares = found.originals(outputs, 4)
    np.testing.assert_allclose(shares, np.sort(table[1:, outputs], axis=0)[::-1][:4].T, rtol=1e-9)
    np.testing.assert_allclose(shares, table[best + 1, outputs[:, None]], rtol=1e-9)


@pytest.mark.parametrize(("name", "epsilon"), MECHANISMS)
def test_the_sums_of_a_tree_and_of_randomized_response_are_those_of_all_weights(
    space: EmbeddingSpace, name: str, epsilon: float
) -> None:
    mechanism, values = made(space, name, epsilon), np.random.default_rng(3).random(len(space))
    ids = np.array([5, 0, 499, 5])
    expected = mechanism.weights(ids) @ values
    np.testing.assert_allclose(mechanism.weighted_sums(values, ids), expected, rtol=1e-9)


def misjudged(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> bool:
    """Tell whether stated probabilities are refuted by what was right, with ALPHA by chance.

    In each of ten bins, the number that was right against the sum of what was stated.
    """
    at, cells = np.digitize(stated, BINS[1:-1]), []
    for each in range(len(BINS) - 1):
        here = at == each
        spread = float((stated[here] * (1.0 - stated[here])).sum())
        # Else far from normal.
        if spread > 25.0:
            cells.append((right[here].sum() - stated[here].sum()) / np.sqrt(spread))
    assert cells
    return bool(np.abs(cells).max() > stats.norm.isf(ALPHA / (2 * len(cells))))


@pytest.mark.parametrize(("name", "epsilon"), MECHANISMS)
def test_probabilities_are_right_on_draws_and_others_are_refuted(
    space: EmbeddingSpace, name: str, epsilon: float
) -> None:
    mechanism, rng = made(space, name, epsilon), np.random.default_rng(11)
    prior, unknown = frequencies(space, "zipf")
    inputs = rng.choice(np.arange(-1, len(space)), DRAWS, p=np.append(unknown, prior))
    outputs = mechanism.sample(inputs, rng)
    right = inputs == outputs
    assert not misjudged(PosteriorLaw(mechanism, prior, unknown).unchanged(outputs), right)
    # Of another ε, and of another prior.
    other = made(space, name, 1.2 * epsilon)
    assert misjudged(PosteriorLaw(other, prior, unknown).unchanged(outputs), right)
    flat, _ = frequencies(space, "uniform")
    assert misjudged(PosteriorLaw(mechanism, flat).unchanged(outputs), right)


def test_a_number_may_be_of_the_vocabulary_or_drawn_for_its_shape() -> None:
    english = EmbeddingSpace.from_pretrained("english")
    privatizer, rng = DxPrivatizer(english, "hierarchical", 1.2), np.random.default_rng(12)
    words, prior = ["7", "8", "1987", "<number:1>"], np.array([0.4, 0.3, 0.2, 0.1])
    originals = rng.choice(words, 300_000, p=prior)
    released = privatizer.mechanism.sample(english.ids(originals.tolist()), rng)
    drawn = [english.words[row] for row in released.tolist()]
    shown = [render(x, rng.random(UNIFORMS).tolist()) if x in SHAPES else x for x in drawn]
    counts = dict(zip(words, prior.tolist(), strict=True))
    for word, original in (("7", "7"), ("7", "<number:1>"), ("1987", "1987"), ("8", "7")):
        (found,) = privatizer.posterior(word, counts, k=4)
        stated = dict(found.originals)[original]
        same = np.array([each == word for each in shown])
        count, right = int(same.sum()), int((same & (originals == original)).sum())
        assert stats.binomtest(right, count, stated).pvalue > ALPHA
        assert found.probability == (pytest.approx(stated) if word == original else found[1])
    # As if no shape were ever written as a word of the vocabulary.
    law = PosteriorLaw(privatizer.mechanism, *frequencies(english, counts))
    same = np.array([each == "7" for each in shown])
    wrong = float(law.unchanged(english.ids(["7"]))[0])
    assert stats.binomtest(
        int((same & (originals == "7")).sum()), int(same.sum()), wrong
    ).pvalue < (ALPHA)

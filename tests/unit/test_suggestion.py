"""ε that is suggested: the target holds there for fresh words, and not at 1.2 times as much."""

import math

import numpy as np
import pytest

from hf_dxprivacy.calibration import (
    epsilon_for_local_bound,
    epsilon_for_radius,
    privacy_statistics,
    sample_words,
    suggest,
    suggest_epsilon,
)
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace

FINE = np.geomspace(1.0, 16.0, 37)


@pytest.mark.parametrize("name", ["tem", "calibrated"])
@pytest.mark.parametrize("targets", [{"max_nw": 0.5}, {"min_sw": 10}, {"max_nw": 0.9, "min_sw": 3}])
def test_exact_answers_hold_for_every_word(
    euclidean_space: EmbeddingSpace, name: str, targets: dict[str, float]
) -> None:
    answer = suggest_epsilon(euclidean_space, name, epsilons=FINE, **targets)  # type: ignore[arg-type]
    assert (answer.exact, answer.words, answer.unseen) == (True, 500, 0.0)

    def meets(epsilon: float) -> bool:
        found = privacy_statistics(create_mechanism(name, euclidean_space, epsilon))
        kept = (found.kept <= targets.get("max_nw", 1.0)).all()
        return bool(kept and (found.support >= targets.get("min_sw", 1)).all())

    assert meets(answer.epsilon)
    assert answer.next_epsilon is not None
    assert answer.next_epsilon < 1.1 * answer.epsilon
    above = FINE[answer.epsilon < FINE][::4]
    assert above[0] == answer.next_epsilon
    assert not any(meets(epsilon) for epsilon in [*above, 1.2 * answer.epsilon])
    found = privacy_statistics(create_mechanism(name, euclidean_space, answer.epsilon))
    assert answer.worst.kept == answer.worst.kept_high == pytest.approx(found.kept.max())
    assert answer.worst.support == answer.worst.support_low == found.support.min()


@pytest.mark.parametrize("name", ["laplace", "mahalanobis"])
def test_answers_from_draws_hold_with_fresh_noise_and_for_fresh_words(
    euclidean_space: EmbeddingSpace, name: str
) -> None:
    words = sample_words(euclidean_space, 150, rng=keyed_generator(3))
    answer = suggest_epsilon(
        euclidean_space,
        name,
        max_nw=0.5,
        words=words,
        epsilons=FINE,
        runs=3000,
        rng=keyed_generator(1),
    )
    assert (answer.exact, answer.words) == (False, 150)
    assert answer.worst.kept < answer.worst.kept_high <= 0.5
    found = privacy_statistics(
        create_mechanism(name, euclidean_space, answer.epsilon), runs=1500, rng=keyed_generator(9)
    )
    # Five deviations of the draws.
    surely_above = found.kept > 0.5 + 5 * np.sqrt(0.25 / 1500)
    assert not surely_above[euclidean_space.ids(words)].any()
    assert surely_above.mean() <= answer.unseen < 0.05
    more = create_mechanism(name, euclidean_space, 1.2 * answer.epsilon)
    assert privacy_statistics(more, words, 1500, rng=keyed_generator(9)).kept.max() > 0.5


def test_a_sample_speaks_for_words_not_looked_at(euclidean_space: EmbeddingSpace) -> None:
    """At no more than the stated share of all words, in nearly all of 20 samples at 80 %."""
    exceeded = 0
    for seed in range(20):
        words = sample_words(euclidean_space, 60, rng=keyed_generator(seed))
        answer = suggest_epsilon(
            euclidean_space, "tem", max_nw=0.5, words=words, epsilons=FINE, confidence=0.8
        )
        assert answer.words == 60
        # (1−q)^60 = 0.2/74.
        assert answer.unseen == pytest.approx(1 - (0.2 / 74) ** (1 / 60))
        found = privacy_statistics(create_mechanism("tem", euclidean_space, answer.epsilon))
        exceeded += np.mean(found.kept > 0.5) > answer.unseen
    assert exceeded <= 4


def test_draws_follow_their_generator(euclidean_space: EmbeddingSpace) -> None:
    first, again, other = (
        suggest_epsilon(
            euclidean_space,
            "laplace",
            min_sw=5,
            words=euclidean_space.words[:30],
            epsilons=FINE,
            runs=200,
            rng=keyed_generator(seed),
        )
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_default_grids_are_in_steps_of_the_nearest_neighbour(
    euclidean_space: EmbeddingSpace,
) -> None:
    unit = euclidean_space.neighbour_distances([1])[1]
    words = euclidean_space.words[:20]
    coarse = suggest_epsilon(euclidean_space, "tem", max_nw=0.999_999, words=words)
    assert coarse.epsilon * unit <= 512.0
    far = euclidean_space.rescale(10.0)
    assert suggest_epsilon(far, "tem", max_nw=0.4, words=words).epsilon * 10 == pytest.approx(
        suggest_epsilon(euclidean_space, "tem", max_nw=0.4, words=words).epsilon
    )
    top = suggest_epsilon(euclidean_space, "tem", min_sw=1, words=words)
    assert top.next_epsilon is None
    assert "the largest ε that was tried" in str(top)


def test_prints_what_it_says(euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words[:50]
    text = str(suggest_epsilon(euclidean_space, "tem", max_nw=0.5, min_sw=2, words=words))
    assert "for 'tem': N_w ≤ 0.5 and S_w ≥ 2 for all of 50 words, exactly" in text
    assert "of the words not looked at, at most" in text
    drawn = suggest_epsilon(
        euclidean_space,
        "laplace",
        max_nw=0.5,
        words=words,
        epsilons=FINE,
        runs=300,
        rng=keyed_generator(6),
    )
    assert "for all of 50 words, with confidence 0.95" in str(drawn)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, InvalidValueError, "expected max_nw, min_sw or both, got neither"),
        ({"max_nw": 1.0}, InvalidValueError, r"expected 0\.0 < max_nw < 1\.0"),
        ({"min_sw": 0}, InvalidValueError, "expected min_sw >= 1"),
        ({"max_nw": 0.5, "epsilons": []}, InvalidValueError, "expected epsilons to try, got none"),
        ({"max_nw": 0.5, "words": []}, InvalidValueError, "have to meet the target, got none"),
        ({"max_nw": 0.5, "words": "waaa"}, InvalidTypeError, "got a single string"),
        ({"max_nw": 0.5, "lam": 0.5}, InvalidTypeError, "mechanism 'tem' has no option 'lam'"),
        ({"max_nw": 0.5, "epsilons": [-1.0]}, InvalidValueError, "epsilon > 0 and finite"),
        ({"max_nw": 0.5, "epsilons": ["a"]}, InvalidTypeError, "epsilon to be a number.*'a'"),
        ({"max_nw": 0.5, "epsilons": [[4.0, 8.0]]}, InvalidTypeError, r"number, got .*\[4\.0, 8"),
        ({"max_nw": 0.5, "epsilons": np.ones((1, 2))}, InvalidTypeError, "epsilon to be a number"),
        ({"max_nw": 0.5, "rng": 3}, InvalidTypeError, r"random\.Generator, got an int"),
        (
            {"max_nw": 0.01, "epsilons": [8.0, 4.0]},
            InvalidValueError,
            r"no ε that was tried from 4 to 8 meets N_w ≤ 0\.01 for all words; try a smaller ε",
        ),
    ],
)
def test_arguments_are_checked(
    euclidean_space: EmbeddingSpace,
    arguments: dict[str, object],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        suggest_epsilon(euclidean_space, "tem", **arguments)  # type: ignore[arg-type]


def test_a_misspelt_option_costs_no_certificate(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(suggest, "certify")
    with pytest.raises(InvalidTypeError, match="'calibrated' has no option 'lam'"):
        suggest_epsilon(euclidean_space, "calibrated", max_nw=0.5, lam=0.5)
    with pytest.raises(InvalidValueError, match="expected mechanism to be one of"):
        suggest_epsilon(euclidean_space, "certified", max_nw=0.5)


def test_says_where_the_noise_ends(poincare_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match=r"meets N_w ≤ 0.001 .* below, the Riemannian"):
        suggest_epsilon(
            poincare_space, "hyperbolic", max_nw=0.001, words=poincare_space.words[:5], runs=50
        )


def test_radius() -> None:
    """Hyperbolic or not, ε·r is the level."""
    assert epsilon_for_radius(2.5, 5.0) == 2.0
    with pytest.raises(InvalidValueError, match="expected radius > 0"):
        epsilon_for_radius(0.0, 1.0)


def test_words_come_from_every_stratum(euclidean_space: EmbeddingSpace) -> None:
    rows = euclidean_space.ids(sample_words(euclidean_space, 50, rng=keyed_generator(0)))
    assert (rows // 10).tolist() == list(range(50))
    sparse = sample_words(euclidean_space, 50, "sparsity", keyed_generator(0))
    distances = np.sort(euclidean_space.distances(np.arange(500)), axis=1)[:, 10]
    ranks = np.argsort(np.argsort(distances))[euclidean_space.ids(sparse)]
    assert (ranks // 10).tolist() == list(range(50))


@pytest.mark.parametrize("by", ["frequency", "sparsity"])
def test_every_word_is_as_likely(euclidean_space: EmbeddingSpace, by: str) -> None:
    """Many samples of 50 of 500 words: within five deviations of a tenth."""
    rng, seen = keyed_generator(5), np.zeros(500)
    draws = 3000 if by == "frequency" else 100
    for _ in range(draws):
        seen[euclidean_space.ids(sample_words(euclidean_space, 50, by, rng))] += 1  # type: ignore[arg-type]
    assert np.abs(seen / draws - 0.1).max() < 5 * np.sqrt(0.09 / draws)


def test_samples_without_repeats_and_no_larger_than_the_vocabulary(
    poincare_space: EmbeddingSpace,
) -> None:
    for size in (1, 333, 500, 10_000):
        words = sample_words(poincare_space, size, "sparsity")
        assert len(set(words)) == len(words) == min(size, 500)
    alone = EmbeddingSpace.from_vectors(["alone"], [[1.0]])
    assert sample_words(alone, 3, "sparsity") == ("alone",)
    with pytest.raises(InvalidTypeError, match=r"numpy\.random\.Generator, got an int.*default"):
        sample_words(alone, 1, rng=3)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tree_space(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_hierarchy(progress=False)


@pytest.mark.parametrize("mechanism", ["hierarchical", "krr", "tem", "laplace", "mahalanobis"])
@pytest.mark.parametrize("limit", [0.01, 0.7, 5.0, 12.0, 14.59])
def test_the_largest_epsilon_of_a_local_bound(
    tree_space: EmbeddingSpace, mechanism: str, limit: float
) -> None:
    found = epsilon_for_local_bound(tree_space, mechanism, limit)
    assert float(f"{found:.6g}") == found
    assert create_mechanism(mechanism, tree_space, found).local_epsilon <= limit
    assert create_mechanism(mechanism, tree_space, found * 1.0001).local_epsilon > limit


def test_a_local_bound_of_calibrated_needs_no_certificate(euclidean_space: EmbeddingSpace) -> None:
    # A space of its own, of which no level is known.
    space = euclidean_space.rescale(1.5)
    found = epsilon_for_local_bound(space, "calibrated", 8.0)
    assert not space.cache.certificates
    assert create_mechanism("calibrated", space, found).local_epsilon <= 8.0
    # ln of 499·0.999/0.001 is 13.1, to which its bound falls: above that no ε is too large.
    with pytest.raises(InvalidValueError, match="of 14 does not limit ε for 'calibrated'"):
        epsilon_for_local_bound(space, "calibrated", 14.0)
    for epsilon in (64.0, 128.0):
        assert create_mechanism("calibrated", space, epsilon).local_epsilon < 14.0


def test_local_bounds_that_no_epsilon_or_every_one_has(
    euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> None:
    with pytest.raises(InvalidValueError, match="does not limit ε for 'tem'"):
        epsilon_for_local_bound(euclidean_space, "tem", 40.0)
    with pytest.raises(InvalidValueError, match=r"no ε has a local bound of 1 .* least is") as e:
        epsilon_for_local_bound(poincare_space, "hyperbolic", 1.0)
    least = float(str(e.value).rpartition("least is ")[2].partition(",")[0])
    found = epsilon_for_local_bound(poincare_space, "hyperbolic", 1.01 * least)
    assert create_mechanism("hyperbolic", poincare_space, found).local_epsilon <= 1.01 * least
    with pytest.raises(InvalidValueError, match=r"no ε has a local bound of 0\.5"):
        epsilon_for_local_bound(poincare_space, "hyperbolic", 0.5, noise="lebesgue")
    with pytest.raises(InvalidValueError, match="needs a space with a tree"):
        epsilon_for_local_bound(euclidean_space, "hierarchical", 5.0)
    with pytest.raises(InvalidValueError, match="expected local_epsilon > 0 and finite"):
        epsilon_for_local_bound(euclidean_space, "krr", math.inf)
    with pytest.raises(InvalidTypeError, match="has no option 'lam'"):
        epsilon_for_local_bound(euclidean_space, "krr", 5.0, lam=0.5)

"""Mechanisms at an equal guarantee or worst case, and the choice of λ."""

import numpy as np
import pytest

from hf_dxprivacy import calibration
from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import compare_mechanisms, norm_search, suggest_lambda
from hf_dxprivacy.evaluation.equal_terms import certified_at
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.spaces import EmbeddingSpace

FINE = np.geomspace(1.0, 16.0, 37)


def test_comparison_at_equal_guarantee(
    euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace
) -> None:
    words = euclidean_space.words[:100]
    named = {"laplace": {}, "mahalanobis": {"lam": 0.9}, "calibrated": {}}
    found = compare_mechanisms(euclidean_space, named, epsilon=4.0, words=words, runs=100)
    certified = {r.mechanism: r.value for r in found.where(metric="certified ε")}
    assert certified == pytest.approx(dict.fromkeys(named, 4.0))
    (asked,) = {r.epsilon for r in found.where(mechanism="mahalanobis")}
    assert asked is not None
    assert asked < 4.0
    assert len(found) == 15
    kept = found.where(mechanism="calibrated", metric="largest N_w")[0]
    exact = privacy_statistics(create_mechanism("calibrated", euclidean_space, 4.0), words)
    assert (kept.value, kept.repeats) == (pytest.approx(exact.kept.max()), 100)
    ball = certified_at(poincare_space, "hyperbolic", 12.0, {"noise": "lebesgue"})
    assert ball.certified_epsilon == pytest.approx(12.0)
    assert ball.epsilon == pytest.approx(12.0 - 4 / 0.5)
    with pytest.raises(InvalidValueError, match=r"'krr' has a metric of its own, .* at max_nw="):
        compare_mechanisms(euclidean_space, ["tem", "krr"], epsilon=4.0, words=words)


def test_comparison_at_equal_worst_words(euclidean_space: EmbeddingSpace) -> None:
    words = euclidean_space.words[:60]
    found = compare_mechanisms(
        euclidean_space,
        ["tem", "laplace"],
        max_nw=0.5,
        words=words,
        epsilons=FINE,
        rng=keyed_generator(6),
    )
    largest = [r.value for r in found.where(metric="largest N_w")]
    assert largest == pytest.approx([0.46, 0.45], abs=0.07)
    assert all(value <= 0.5 + 5 * np.sqrt(0.25 / 1000) for value in largest)
    with pytest.raises(InvalidValueError, match="exactly one of epsilon and max_nw"):
        compare_mechanisms(euclidean_space, ["tem"])


def crossing(lonely: int) -> EmbeddingSpace:
    """40 lonely words on the axis `lonely`, and 160 near each other on the other one."""
    points = np.zeros((200, 2))
    points[:40, lonely] = np.arange(40) * 4.0
    points[40:, 1 - lonely] = np.arange(160) * 0.5
    points[40:, 0] += -60.0 if lonely == 0 else -200.0
    points[40:, 0] *= 1.0 if lonely == 0 else 4.0
    return EmbeddingSpace.from_vectors([f"w{row}" for row in range(200)], points)


@pytest.mark.parametrize("by", ["kept", "distinct"])
def test_lambda_is_large_only_where_lonely_words_lie_along_the_covariance(by: str) -> None:
    """There the stretched noise reaches them; across it, it misses them."""
    for lonely, lam in ((0, 1.0), (1, 0.0)):
        found = suggest_lambda(
            crossing(lonely),
            1.0,
            by=by,  # type: ignore[arg-type]
            lams=(1.0, 0.0, 0.5, 0.0),
            runs=250,
            rng=keyed_generator(1),
        )
        assert (found.lam, list(found.figures)) == (lam, [0.0, 0.5, 1.0])
        assert found.epsilon == next(
            step.mechanism.epsilon
            for step in found.steps
            if step.mechanism.parameters["lam"] == lam
        )
        # As many stay, of the same draws; the ε at which they do is narrowed down to 0.5 %.
        means = [step.statistics.kept.mean() for step in found.steps]
        assert means == pytest.approx([means[0]] * 3, abs=0.01)
        worst = [np.sort(getattr(step.statistics, by)) for step in found.steps]
        expected = [row[-10:].mean() if by == "kept" else row[:10].mean() for row in worst]
        assert list(found.figures.values()) == pytest.approx(expected)
        sign = 1 if (lam == 1.0) == (by == "distinct") else -1
        assert (sign * np.diff(expected) > 0).all()


def test_lambda_follows_its_generator_its_margin_and_the_equal_epsilon() -> None:
    space = crossing(0)
    settings = {"lams": (0.0, 1.0), "runs": 200, "words": space.words[:80]}
    first, again, other = (
        suggest_lambda(space, 1.0, rng=keyed_generator(seed), **settings)  # type: ignore[arg-type]
        for seed in (1, 1, 2)
    )
    assert first.figures == again.figures != other.figures
    gain = first.figures[0.0] / first.figures[1.0] - 1.0
    assert gain > 0.05
    for margin, lam in ((0.5 * gain, 1.0), (1.01 * gain, 0.0)):
        found = suggest_lambda(
            space,
            1.0,
            margin=margin,
            rng=keyed_generator(1),
            **settings,  # type: ignore[arg-type]
        )
        assert found.lam == lam
    as_printed = suggest_lambda(space, 1.0, equal="epsilon", worst=0.0, **settings)  # type: ignore[arg-type]
    assert [step.mechanism.epsilon for step in as_printed.steps] == [1.0, 1.0]
    assert list(as_printed.figures.values()) == [
        step.statistics.kept.max() for step in as_printed.steps
    ]
    assert "of the worst 1 of 80 words is" in str(as_printed)
    assert f"| 1 | 1 | {upward(as_printed.steps[1].mechanism.space_epsilon)} |" in str(as_printed)


def test_no_lambda_is_chosen_by_chance() -> None:
    """In a space without directions, of 6 seeds of which 4 gained over 5 % in their draws."""
    points = np.random.default_rng(0).normal(size=(40, 5))
    space = EmbeddingSpace.from_vectors([f"w{row}" for row in range(40)], points)
    gained = 0
    for seed in (0, 1, 2, 3, 4, 5):
        found = suggest_lambda(space, 4.0, by="distinct", rng=keyed_generator(seed))
        assert (found.lam, found.epsilon) == (0.0, 4.0)
        gained += max(found.figures.values()) > 1.05 * found.figures[0.0]
    assert gained >= 3
    assert ", not surely better by the margin\n" in str(found)


def test_one_lambda_is_compared_with_zero() -> None:
    found = suggest_lambda(crossing(0), 1.0, lams=[1.0], runs=250, rng=keyed_generator(1))
    assert (found.lam, [*found.figures]) == (1.0, [0.0, 1.0])
    proven = upward(found.steps[1].mechanism.space_epsilon)
    title = str(found).partition("\n")[0]
    assert title.startswith(f"λ = 1 at ε = {found.epsilon:.4g} (Euclidean ε = {proven}): N_w of")
    assert title.endswith(f"; with λ = 0 it is {found.figures[0.0]:.3g}")
    across = str(suggest_lambda(crossing(1), 1.0, lams=[1.0], runs=250)).partition("\n")[0]
    assert across.startswith("λ = 0 at ε = 1 (Euclidean ε = 1): N_w")
    assert across.endswith("with λ = 1 it is 1")
    alone = str(suggest_lambda(crossing(0), 1.0, lams=[0.0], runs=250)).partition("\n")[0]
    assert "with λ" not in alone


@pytest.mark.parametrize(
    ("epsilon", "arguments", "message"),
    [
        (1.0, {"lams": ()}, "expected λ to try, and words to look at, got none"),
        (1.0, {"words": ()}, "expected λ to try, and words to look at, got none"),
        (1.0, {"lams": (0.5, 1.5)}, "lam"),
        (1.0, {"equal": "guarantee"}, "expected equal to be one of"),
        (1.0, {"by": "support"}, "expected by to be one of"),
        (1.0, {"worst": 1.1}, "worst"),
        (1.0, {"margin": -0.1}, "margin"),
        (0.0, {}, "expected epsilon > 0"),
        (1e-4, {"words": ["w100"]}, r"at which 0% do; choose a larger one"),
        (1e4, {}, r"at which 100% do; choose a smaller one"),
        (1.0, {"words": ["w1", "unknown"]}, "1 of 2 that it lacks"),
    ],
)
def test_a_search_for_lambda_checks_what_it_is_given(
    epsilon: float, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        suggest_lambda(crossing(0), epsilon, runs=50, **arguments)  # type: ignore[arg-type]


def test_a_lambda_that_the_space_does_not_allow_costs_no_draws(
    poincare_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(norm_search, "privacy_statistics")
    flat = EmbeddingSpace.from_vectors(["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    with pytest.raises(InvalidValueError, match="covariance is singular; choose lam < 1"):
        suggest_lambda(flat, 1.0)
    with pytest.raises(InvalidValueError, match="euclidean"):
        suggest_lambda(poincare_space, 1.0)


def test_a_seed_is_no_source_of_draws() -> None:
    with pytest.raises(InvalidTypeError, match=r"random\.Generator, got an int"):
        suggest_lambda(crossing(0), 1.0, rng=3)  # type: ignore[arg-type]


def test_names_of_the_last_version_still_lead_here() -> None:
    with pytest.warns(FutureWarning, match=r"moved to hf_dxprivacy\.evaluation"):
        assert calibration.suggest_lambda is suggest_lambda

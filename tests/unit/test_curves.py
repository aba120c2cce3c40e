"""Mechanisms at the same success of an attack: intervals, and the sentence that says it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.evaluation.curves import Curve, difference, headline
from hf_dxprivacy.results import Interval


def made(name: str, attack: NDArray[np.float64], utility: NDArray[np.float64]) -> Curve:
    """Return a curve of texts that share nothing."""
    return Curve(name, attack, np.zeros(len(attack)), utility, np.arange(float(utility.shape[1])))


def curve(name: str, attack: list[float], means: list[float], n: int, seed: int) -> Curve:
    """Return a curve whose texts are right or wrong at random."""
    rng = np.random.default_rng(seed)
    points = [
        (Interval(at, at, at), (rng.random(n) < mean).astype(float))
        for at, mean in zip(attack, means, strict=True)
    ]
    return Curve.of(name, points, np.arange(float(n)))


def test_a_difference_is_the_area_between_the_curves() -> None:
    a = made("a", np.array([0.0, 1.0]), np.array([[0.0] * 4, [1.0] * 4]))
    b = made("b", np.array([0.5, 0.9]), np.full((2, 4), 0.2))
    found = difference(a, b)
    assert found is not None
    assert (found.low, found.high) == (0.5, 0.9)
    # The mean of the line from 0.5 to 0.9, less 0.2.
    assert found.utility.value == pytest.approx(0.5, abs=1e-9)
    back = difference(b, a)
    assert back is not None
    assert back.utility.value == pytest.approx(-found.utility.value)


def test_single_points_compare_where_the_other_curve_passes_and_else_not() -> None:
    a = made("a", np.array([0.0, 1.0]), np.array([[0.0] * 4, [1.0] * 4]))
    inside = made("b", np.array([0.25]), np.zeros((1, 4)))
    found = difference(a, inside)
    assert found is not None
    assert found.utility.value == pytest.approx(0.25)
    assert difference(a, made("c", np.array([1.5]), np.zeros((1, 4)))) is None


def test_points_of_equal_attack_are_no_error() -> None:
    a = made("a", np.array([0.2, 0.2, 0.4]), np.full((3, 5), 0.5))
    found = difference(a, a)
    assert found is not None
    assert found.utility.value == 0.0


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Two equal curves: of 400 intervals of 95 %, 20 should miss 0; 40 or more do at 1e-5."""
    misses = 0
    for seed in range(400):
        a = curve("a", [0.1, 0.5, 0.9], [0.5, 0.6, 0.7], 300, 2 * seed)
        b = curve("b", [0.2, 0.6, 0.8], [0.525, 0.625, 0.675], 300, 2 * seed + 1)
        found = difference(a, b)
        assert found is not None
        misses += found.is_shown
    assert 4 <= misses < 40


def test_an_uncertain_attack_widens_the_interval() -> None:
    sure = curve("a", [0.1, 0.9], [0.2, 0.8], 500, 1)
    unsure = replace(sure, variance=np.full(2, 0.1**2))
    other = curve("b", [0.1, 0.9], [0.3, 0.9], 500, 2)
    narrow, wide = difference(sure, other), difference(unsure, other)
    assert narrow is not None
    assert wide is not None
    assert narrow.utility.value == wide.utility.value
    assert wide.utility.high - wide.utility.low > 2 * (narrow.utility.high - narrow.utility.low)


@pytest.mark.parametrize("better", ["hierarchical", "calibrated"])
def test_the_sentence_names_the_better_one_whichever_it_is(better: str) -> None:
    worse = {"hierarchical": "calibrated", "calibrated": "hierarchical"}[better]
    curves = [
        curve("hierarchical", [0.1, 0.9], [0.8 if better == "hierarchical" else 0.6] * 2, 2000, 1),
        curve("calibrated", [0.1, 0.9], [0.8 if better == "calibrated" else 0.6] * 2, 2000, 2),
    ]
    said = headline(curves, "accuracy", "success of the author attack")
    assert said.startswith(
        f"At the same success of the author attack, {better} keeps more accuracy than {worse} (+"
    )


def test_the_sentence_says_where_nothing_is_shown_or_can_be() -> None:
    same = [curve(name, [0.1, 0.9], [0.7, 0.7], 50, 3) for name in ("tem", "krr")]
    said = headline(same, "accuracy", "success of the author attack")
    assert "no difference in accuracy is shown between tem and krr" in said
    assert "keeps more" not in said
    apart = [curve("tem", [0.1, 0.2], [0.7, 0.7], 50, 4), curve("krr", [0.3], [0.7], 50, 5)]
    said = headline(apart, "accuracy", "success of the author attack")
    assert said.startswith("No two mechanisms were measured at the same success")
    assert "no two mechanisms" in headline(apart[:1], "accuracy", "x")
    said = headline([*same, apart[0], curve("laplace", [3.0], [0.5], 50, 6)], "accuracy", "x")
    assert re.search(r"; laplace keeps 0\.\d\d at 3, where \w+ was not measured\.$", said)


def test_texts_that_share_errors_count_as_one() -> None:
    """All texts of a part are right together: the interval is over five parts, not 500 texts."""
    rng = np.random.default_rng(1)
    parts = np.repeat(np.arange(5.0), 100)
    misses = 0
    for _ in range(200):
        both = [
            replace(
                made(
                    name,
                    np.array([0.5]),
                    (0.7 + 0.05 * rng.normal(size=5))[None, parts.astype(int)],
                ),
                parts=parts,
            )
            for name in "ab"
        ]
        found = difference(*both)
        assert found is not None
        misses += found.is_shown
    # 5 % of 200 by Student's t with 4 degrees of freedom; 26 or more at 1e-5.
    assert misses < 26


def test_one_text_shows_nothing() -> None:
    alone = [
        made(name, np.array([0.5]), np.array([[value]])) for name, value in (("a", 1.0), ("b", 0.0))
    ]
    found = difference(*alone)
    assert found is not None
    assert not found.is_shown


def test_the_best_of_many_equal_ones_is_not_said_to_keep_more() -> None:
    """Over six equal mechanisms 5 of 100 sentences at most say so wrongly; 15 at 1e-4."""
    shown = 0
    for seed in range(100):
        equal = [curve(f"m{k}", [0.2, 0.8], [0.6, 0.7], 400, 6 * seed + k) for k in range(6)]
        shown += "keeps more" in headline(equal, "accuracy", "x")
    assert shown <= 15


def test_large_bounds_are_plain_numbers() -> None:
    near = [curve(name, [0.1, 0.9], [0.7, 0.7], 50, 3) for name in ("tem", "krr")]
    said = headline(
        [*near, curve("laplace", [1083.0, 17231.0], [0.5, 0.6], 50, 6)], "accuracy", "x"
    )
    assert re.search(r"; laplace keeps 0\.\d\d at 1,080 to 0\.\d\d at 17,200, where ", said)

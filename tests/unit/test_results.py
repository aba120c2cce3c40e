"""Figures with intervals: their coverage, tables and files."""

from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.results import Result, Results, mean_interval, share_interval

TWO = Results(
    (
        Result("attribution", "mail", "none", None, "accuracy", 0.9, 0.8, 0.95, 100),
        Result("attribution", "mail", "tem", 2.0, "accuracy", 0.25, 0.25, 0.25),
    )
)


def test_a_t_interval_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.normal(3.0, 2.0, 5), 0.9) for _ in range(2000)]
    held = np.mean([i.low <= 3.0 <= i.high for i in found])
    assert 0.87 < held < 0.93


@pytest.mark.parametrize("chance", [0.02, 0.5, 0.99])
def test_a_clopper_pearson_interval_holds_the_share_at_least_as_often(chance: float) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.binomial(50, chance, 2000)
    intervals = {k: share_interval(int(k), 50, 0.9) for k in np.unique(drawn)}
    held = np.mean([intervals[k].low <= chance <= intervals[k].high for k in drawn])
    assert held > 0.88


def test_shares_of_none_and_all_have_the_ends_of_the_scale() -> None:
    none, every = share_interval(0, 100), share_interval(100, 100)
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    # The rule of three: 1 − (0.025)^(1/100).
    assert none.high == pytest.approx(1 - 0.025**0.01)
    assert every.low == pytest.approx(0.025**0.01)


def test_one_repeat_is_its_own_interval() -> None:
    found = mean_interval([0.5])
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_no_repeats_and_impossible_shares_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least one repeat, got none"):
        mean_interval([])
    for numbers, name in (((0, 0), "trials"), ((3, 2), "successes"), ((1, 2, 1.0), "confidence")):
        with pytest.raises(InvalidValueError, match=name):
            share_interval(*numbers)  # type: ignore[arg-type]


def test_results_come_back_from_a_file(tmp_path: Path) -> None:
    TWO.save(tmp_path / "results.jsonl")
    assert list(Results.load(tmp_path / "results.jsonl")) == list(TWO)
    # Characters at which str.splitlines splits, too.
    named = TWO.replace(dataset="a\u2028b\x85c\nd", mechanism="µ")
    named.save(tmp_path / "named.jsonl")
    assert list(Results.load(tmp_path / "named.jsonl")) == list(named)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(ArtifactError, match=r"other\.jsonl does not hold results"):
        Results.load(tmp_path / "other.jsonl")


def test_results_print_as_a_table_and_make_a_dataset() -> None:
    assert "| attribution | mail | tem | 2 | accuracy | 0.250 |  |" in repr(TWO)
    assert "0.800 to 0.950" in TWO.to_markdown()
    assert TWO.to_dataset()["mechanism"] == ["none", "tem"]
    assert [r.value for r in TWO.where(mechanism="tem")] == [0.25]
    assert len(TWO + TWO[:1]) == 3

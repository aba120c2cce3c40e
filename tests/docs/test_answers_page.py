"""Ranking of answers to insurance questions: its measures, and what the page says of its table."""

import gzip
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score

PAGE = (Path(__file__).parents[2] / "docs" / "results" / "utility.md").read_text("utf-8")


@pytest.fixture(scope="module")
def ranking() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        yield importlib.import_module("answer_ranking")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six questions, of which one has two answers and one is in both parts with other ones."""
    pairs = [("test", f"question {q}", f"answer {q}", "relevant") for q in range(6)]
    pairs += [("test", "question 0", "answer 10", "relevant")]
    pairs += [("validation", "question 1", "answer 11", "relevant")]
    pairs += [("validation", f"other {q}", f"reply {q}", "relevant") for q in range(4)]
    pairs += [("validation", "question 2", f"wrong {q}", "irrelevant") for q in range(5)]
    rows = [dict(zip(("split", "text1", "text2", "label"), pair, strict=True)) for pair in pairs]
    (tmp_path / "utility").mkdir()
    with gzip.open(tmp_path / "utility" / "insuranceqa_pairs.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_pools_hold_the_right_answers_first_and_no_other_right_one(
    ranking: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "POOL", 9)
    found = ranking.Insurance(folder, 6)
    assert found.questions == [f"question {q}" for q in range(6)]
    assert found.right == [2, 1, 1, 1, 1, 1]
    pools = [[found.answers[at] for at in pool] for pool in found.pools]
    assert all(len(set(pool)) == len(pool) == 9 for pool in pools)
    assert [pool[0] for pool in pools] == [f"answer {q}" for q in range(6)]
    assert "answer 11" not in pools[1]
    # Trained with what is not asked.
    assert set(found.asked) == {f"other {q}" for q in range(4)}
    assert ranking.Insurance(folder, 2).questions != found.questions


def test_measures_are_those_of_the_field(
    ranking: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "POOL", 9)
    insurance, rng = ranking.Insurance(folder, 6), np.random.default_rng(3)
    drawn = rng.normal(size=(6, len(insurance.answers)))
    precision, reciprocal = insurance.scores(lambda texts: drawn[: len(texts)], ["a"] * 6)
    for row, pool, right, p, r in zip(
        drawn, insurance.pools, insurance.right, precision, reciprocal, strict=True
    ):
        truth = np.arange(9) < right
        expected = label_ranking_average_precision_score([truth], [row[pool]])
        assert p == pytest.approx(expected)
        assert r == 1 / (1 + np.flatnonzero(truth[np.argsort(-row[pool])])[0])
    # Where all answers are alike, the right ones come last.
    precision, reciprocal = insurance.scores(lambda _: np.zeros_like(drawn), ["a"] * 6)
    assert reciprocal.tolist() == [1 / 8] + [1 / 9] * 5
    assert precision[0] == pytest.approx((1 / 8 + 2 / 9) / 2)


def test_readers_are_sorted_out_by_the_table() -> None:
    marked = re.search(r"<!-- ranking: made by .*?-->(.*?)<!-- end of ranking -->", PAGE, re.DOTALL)
    assert marked is not None
    head, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in marked[1].strip().splitlines()
    )
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    value = {
        (row["mechanism"], row["ε"], name): float(row[name].split()[0])
        for row in rows
        for name in head[3:]
    }
    for name in head[3:]:
        plain, chance = value["original", "", name], value["random", "", name]
        assert plain == max(v for (_, _, of), v in value.items() if of == name)
        for mechanism in {row["mechanism"] for row in rows[2:]}:
            by_epsilon = [v for (m, _, of), v in value.items() if (m, of) == (mechanism, name)]
            assert by_epsilon == sorted(by_epsilon)
            assert by_epsilon[-1] > 2 * chance

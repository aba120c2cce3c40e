"""Memoized noise and budgets inside the `datasets` library."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict
from datasets.fingerprint import Hasher

from hf_dxprivacy.errors import BudgetExceededError, InvalidValueError
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

KEY = bytes(range(7, 39))
ROWS = 60

Make = Callable[..., DxPrivatizer]


@pytest.fixture
def rows(euclidean_space: EmbeddingSpace, tmp_path: Path) -> Dataset:
    """Rows from a file, so that `map` caches: forty words each, some of them equal, three users."""
    rng = random.Random(3)
    texts = [" ".join(rng.choices(euclidean_space.words[:100], k=40)) for _ in range(ROWS)]
    texts[10:13] = [texts[0]] * 3
    lines = [f"{text},{at % 3}\n" for at, text in enumerate(texts)]
    (tmp_path / "rows.csv").write_text("text,who\n" + "".join(lines))
    return datasets.load_dataset(
        "csv", data_files=str(tmp_path / "rows.csv"), split="train", cache_dir=str(tmp_path)
    )


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(memoize: str | None = None, epsilon: float = 0.5, **options: Any) -> DxPrivatizer:
        if memoize is not None:
            options = {"memoize": memoize, "key": KEY, **options}
        if memoize == "user":
            options["user_column"] = "who"
        return DxPrivatizer(euclidean_space, "laplace", epsilon, **options)

    return make


def texts(data: Any) -> list[str]:
    return [row["text"] for row in data]


@pytest.mark.parametrize("memoize", ["row", "user"])
def test_one_release_whatever_the_batches_processes_and_formats(
    make: Make, rows: Dataset, memoize: str
) -> None:
    privatizer = make(memoize)
    expected = texts(rows.map(privatizer, batched=True))
    assert not set(expected) & set(texts(rows))
    for options in (
        {"batched": True, "batch_size": 7},
        {"batched": True, "with_indices": True},
        {"batched": True, "batch_size": 7, "num_proc": 3},
        {},
    ):
        assert texts(rows.map(privatizer, load_from_cache_file=False, **options)) == expected
    for form in ("pandas", "arrow", "numpy"):
        mapped = rows.with_format(form).map(privatizer, batched=True).with_format(None)
        assert texts(mapped) == expected
    stream = rows.to_iterable_dataset().map(privatizer, batched=True)
    assert texts(stream) == texts(stream) == expected
    lazy = rows.with_transform(privatizer)
    assert lazy[:]["text"] == lazy[:]["text"] == expected
    turned = rows.select(range(ROWS - 1, -1, -1)).map(privatizer, batched=True)
    assert texts(turned) == expected[::-1]


def test_equal_rows_and_equal_words_of_a_user_stay_equal(make: Make, rows: Dataset) -> None:
    released = texts(rows.map(make("row"), batched=True))
    assert len({released[at] for at in (0, 10, 11, 12)}) == 1
    assert len(set(released)) == ROWS - 3
    released = texts(rows.map(make("user"), batched=True))
    becomes: dict[tuple[int, str], str] = {}
    for row, text in zip(rows, released, strict=True):
        for before, after in zip(row["text"].split(), text.split(), strict=True):
            assert becomes.setdefault((row["who"], before), after) == after
    assert len({becomes[who, "waaa"] for who in range(3)}) > 1


def test_several_data_sets_agree(make: Make, rows: Dataset) -> None:
    parts = DatasetDict({"train": rows.select(range(40)), "test": rows.select(range(40, ROWS))})
    released = parts.map(make("row"), batched=True)
    whole = texts(rows.map(make("row"), batched=True))
    assert [*texts(released["train"]), *texts(released["test"])] == whole


def test_the_fingerprint_changes_with_the_key_and_does_not_show_it(make: Make) -> None:
    hashes = {
        Hasher.hash(privatizer)
        for privatizer in (
            make(),
            *(make("row", key=key) for key in (KEY, KEY, KEY + b"x")),
            make("user"),
        )
    }
    assert len(hashes) == 4
    assert all(KEY.hex()[:16] not in each and len(each) == 16 for each in hashes)


def test_a_map_with_a_key_is_cached(make: Make, rows: Dataset) -> None:
    first = rows.map(make("row"), batched=True)
    assert rows.map(make("row"), batched=True).cache_files == first.cache_files
    other = rows.map(make("row", key=KEY + b"x"), batched=True)
    assert other.cache_files != first.cache_files


# Budgets


def test_a_map_costs_epsilon_and_one_from_the_cache_nothing(make: Make, rows: Dataset) -> None:
    budget = PrivacyBudget(2.0)
    options: dict[str, Any] = {"batched": True, "batch_size": 7, "with_indices": True}
    first = rows.map(make(budget=budget), **options)
    assert budget.spent == 0.5
    again = rows.map(make(budget=budget), **options)
    assert (budget.spent, texts(again)) == (0.5, texts(first))
    again = rows.map(make(budget=PrivacyBudget(0.1)), **options)
    assert texts(again) == texts(first), "whatever the budget: what is cached is no new release"
    rows.map(make(epsilon=1.0, budget=budget), **options)
    assert budget.spent == 1.5
    with pytest.raises(BudgetExceededError, match=r"to ε = 2\.5; nothing was released"):
        rows.map(make(epsilon=1.0, budget=budget), load_from_cache_file=False, **options)
    rows.map(make(budget=budget), load_from_cache_file=False, **options)
    assert (budget.spent, budget.remaining) == (2.0, 0.0)


@pytest.mark.parametrize("num_proc", [1, 2])
def test_worker_processes_refuse(make: Make, rows: Dataset, num_proc: int) -> None:
    budget = PrivacyBudget(2.0)
    with pytest.raises(InvalidValueError, match="leave num_proc= out"):
        rows.map(make(budget=budget), batched=True, with_indices=True, num_proc=num_proc)
    assert budget.spent == 0.0


def test_users_pay_for_their_words(make: Make, rows: Dataset) -> None:
    budget = PrivacyBudget(500, "user")
    rows.map(make(budget=budget, user_column="who"), batched=True, batch_size=7)
    assert budget.spent == 0.5 * 40 * ROWS / 3
    with pytest.raises(BudgetExceededError, match="spent on a user"):
        rows.map(make(epsilon=0.2, budget=budget, user_column="who"), batched=True)


def test_each_pass_over_a_stream_is_paid_for(make: Make, rows: Dataset) -> None:
    budget = PrivacyBudget(1.2)
    stream = rows.to_iterable_dataset().map(make(budget=budget), batched=True, with_indices=True)
    for spent in (0.5, 1.0):
        assert len(list(stream)) == ROWS
        assert budget.spent == spent
    with pytest.raises(BudgetExceededError, match=r"to ε = 1\.5"):
        next(iter(stream))


def test_a_map_without_indices_pays_for_every_batch(make: Make, rows: Dataset) -> None:
    budget = PrivacyBudget(2.0)
    with pytest.raises(BudgetExceededError, match="without with_indices=True costs all rows"):
        rows.map(make(budget=budget), batched=True, batch_size=7)
    assert budget.spent == 2.0, "what was drawn before the refusal stays spent"

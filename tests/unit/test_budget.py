"""PrivacyBudget: what releases cost, and when there is no more of it."""

import copy
import multiprocessing
import os
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hf_dxprivacy.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import Mahalanobis
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.slots import ContentWordSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

Make = Callable[..., DxPrivatizer]


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(mechanism: Any = "laplace", epsilon: float = 2.0, **options: Any) -> DxPrivatizer:
        return DxPrivatizer(euclidean_space, mechanism, epsilon, **options)

    return make


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0}, InvalidValueError, "expected epsilon > 0 and finite, got epsilon=0"),
        ({"epsilon": float("inf")}, InvalidValueError, "got epsilon=inf"),
        ({"epsilon": "1"}, InvalidTypeError, "expected epsilon to be a number"),
        ({"epsilon": 1, "unit": "row"}, InvalidValueError, "'word', 'user'; got unit='row'"),
    ],
)
def test_arguments_are_checked(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PrivacyBudget(**arguments)


def test_a_privatizer_takes_a_budget_and_nothing_else(make: Make) -> None:
    with pytest.raises(InvalidTypeError, match="budget to be a PrivacyBudget, got a float"):
        make(budget=5.0)
    with pytest.raises(InvalidValueError, match="a budget of users need user_column="):
        make(budget=PrivacyBudget(1, "user"))
    with pytest.raises(InvalidValueError, match=r"need user_column=.* nothing else does"):
        make(budget=PrivacyBudget(1), user_column="who")


# Words


def test_each_release_of_a_row_costs_epsilon_once_however_many_words(make: Make) -> None:
    budget = PrivacyBudget(5)
    first, second = make(epsilon=2.0, budget=budget), make("tem", 3.0, budget=budget)
    batch = {"text": ["waaa waab waac", "waad", None]}
    first(batch, [0, 1, 2])
    assert budget.spent == 2.0
    first({"text": ["waaa", "waab"]}, [3, 4])
    assert budget.spent == 2.0, "other rows have an account of their own"
    second({"text": "waaa waab"}, 1)
    assert (budget.spent, budget.remaining) == (5.0, 0.0)
    first({"text": "waae"}, 5)
    with pytest.raises(BudgetExceededError, match="spent on a word to ε = 7; nothing was released"):
        first(batch, [0, 1, 2])


def test_rows_cost_the_same_with_and_without_words(make: Make) -> None:
    """Else a pass over rows in another order could hide that one of them is released again."""
    budget = PrivacyBudget(5)
    privatizer = make(epsilon=1.0, budget=budget, stopwords={"the"})
    for spent, text in enumerate(("", "...", "the", None), start=1):
        privatizer({"text": [text]}, [0])
        assert budget.spent == spent
    privatizer({"text": []}, [])
    privatizer.privatize([])
    assert budget.spent == 4.0


def test_the_words_of_users_cost_that_are_drawn(make: Make) -> None:
    budget = PrivacyBudget(5, "user")
    privatizer = make(epsilon=1.0, budget=budget, stopwords={"the"}, user_column="who")
    privatizer({"text": ["", "the waaa", None, "waab the"], "who": ["a"] * 4})
    assert budget.spent == 2.0


def test_columns_of_a_row_add_up(make: Make) -> None:
    budget = PrivacyBudget(5)
    privatizer = make(epsilon=2.0, text_column=["a", "b"], budget=budget)
    privatizer({"a": ["waaa", None], "b": ["waab", "waac"]}, [0, 1])
    assert budget.spent == 4.0
    make(epsilon=1.0, text_column="c", budget=budget)({"c": ["waaa"]}, [1])
    assert budget.spent == 5.0
    with pytest.raises(BudgetExceededError, match="to ε = 8"):
        privatizer({"a": ["waaa"], "b": ["waab"]}, [0])


def test_a_call_without_indices_is_charged_to_all_rows(make: Make) -> None:
    budget = PrivacyBudget(5)
    privatizer = make(epsilon=1.0, budget=budget)
    privatizer({"text": ["waaa"]}, [7])
    privatizer.privatize(["waaa waab", "waac"])
    privatizer({"text": ["waab"]}, [8])
    assert budget.spent == 2.0
    privatizer.privatize("waaa")
    privatizer({"text": ["waab"]}, [8])
    assert budget.spent == 4.0
    with pytest.raises(BudgetExceededError, match="every call without with_indices=True costs all"):
        make(epsilon=1.5, budget=budget).privatize("waaa")


def test_what_is_refused_costs_nothing_and_all_rows_are_refused_together(make: Make) -> None:
    budget = PrivacyBudget(3)
    privatizer = make(epsilon=2.0, budget=budget)
    privatizer({"text": ["waaa"]}, [1])
    with pytest.raises(BudgetExceededError, match="nothing was released"):
        privatizer({"text": ["waaa", "waab"]}, [0, 1])
    privatizer({"text": ["waaa"]}, [0])


def test_a_release_that_fails_stays_spent(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = PrivacyBudget(3)
    privatizer = make(epsilon=2.0, budget=budget)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt("now")

    monkeypatch.setattr(type(privatizer.mechanism), "sample", interrupted)
    with pytest.raises(KeyboardInterrupt, match="now"):
        privatizer({"text": ["waaa"]}, [0])
    assert budget.spent == 2.0


def test_decimals_add_up_as_they_are_written(make: Make) -> None:
    budget = PrivacyBudget(0.3)
    privatizer = make(epsilon=0.1, budget=budget)
    for _ in range(3):
        privatizer({"text": ["waaa"]}, [0])
    assert (budget.spent, budget.remaining) == (0.3, 0.0)
    with pytest.raises(BudgetExceededError, match=r"to ε = 0\.4"):
        privatizer({"text": ["waaa"]}, [0])


# Users


def test_every_word_of_a_user_costs_epsilon(make: Make) -> None:
    budget = PrivacyBudget(10, "user")
    privatizer = make(epsilon=2.0, budget=budget, user_column="who")
    privatizer({"text": ["waaa waab", "waac", "waad"], "who": ["a", "a", "b"]})
    assert budget.spent == 6.0
    privatizer({"text": "waaa", "who": "c"})
    privatizer({"text": ["waaa"], "who": ["b"]}, [0])
    assert budget.spent == 6.0
    with pytest.raises(BudgetExceededError, match="spent on a user to ε = 12"):
        privatizer({"text": ["waaa", "waab", "waaa waab"], "who": ["b", "a", "a"]})
    privatizer({"text": ["waaa", "waab"], "who": ["a", "a"]})
    assert budget.remaining == 0.0


def test_users_may_be_numbers_and_must_be_there(make: Make) -> None:
    budget = PrivacyBudget(4, "user")
    privatizer = make(epsilon=2.0, budget=budget, user_column="who")
    privatizer({"text": ["waaa", "waab"], "who": [7, "7"]})
    assert budget.spent == 4.0
    for who, error, message in (
        (None, InvalidValueError, "column 'who', row 1 of the batch: there is no user"),
        (float("nan"), InvalidValueError, "row 1 of the batch: there is no user"),
        (1.5, InvalidTypeError, "row 1 of the batch: expected a user .* got a float"),
        (True, InvalidTypeError, "got a bool"),
    ):
        with pytest.raises(error, match=message):
            privatizer({"text": ["waaa", "waab"], "who": [1, who]})
    with pytest.raises(InvalidValueError, match="column 'who', row 9: there is no user"):
        privatizer({"text": ["waaa"], "who": [None]}, [9])
    with pytest.raises(InvalidValueError, match="column 'who' is not in the data"):
        privatizer({"text": ["waaa"]})
    with pytest.raises(InvalidValueError, match="user_column='who' is set, so call"):
        privatizer.privatize("waaa")


def test_only_slots_cost(euclidean_space: EmbeddingSpace) -> None:
    budget = PrivacyBudget(100, "user")
    privatizer = SlotPrivatizer(
        *(euclidean_space, "laplace", 2.0),
        selector=ContentWordSelector({"waaa"}),
        budget=budget,
        user_column="who",
    )
    privatizer({"text": ["waaa waab waac", "waaa"], "who": [1, 1]})
    assert budget.spent == 4.0


# Metrics


def test_other_distances_do_not_add_up(make: Make, poincare_space: EmbeddingSpace) -> None:
    budget = PrivacyBudget(100)
    make(budget=budget).privatize("waaa")
    other = DxPrivatizer(poincare_space, "tem", 1.0, budget=budget)
    with pytest.raises(InvalidValueError, match=r"Euclidean distance .*, hyperbolic distance"):
        other.privatize("waaa")
    moved = DxPrivatizer(make().space.rescale(2.0), "laplace", 1.0, budget=budget)
    with pytest.raises(InvalidValueError, match="ε of different distances do not add up"):
        moved.privatize("waaa")
    assert budget.spent == 2.0


@pytest.mark.parametrize("second", ["laplace", "krr", "hierarchical"])
def test_a_metric_that_is_not_that_of_the_space_does_not_add_up_with_it(
    euclidean_space: EmbeddingSpace, second: str
) -> None:
    """A tree over the same words is another metric, as is another tree."""
    budget = PrivacyBudget(100)
    first = DxPrivatizer(
        euclidean_space.build_hierarchy(progress=False), "hierarchical", 1.5, budget=budget
    )
    first.privatize("waaa")
    other = euclidean_space.build_hierarchy("ward", progress=False)
    with pytest.raises(InvalidValueError, match="ε of different distances do not add up"):
        DxPrivatizer(other, second, 2.0, budget=budget).privatize("waaa")
    assert budget.spent == 1.5
    first.privatize("waaa")
    assert budget.spent == 3.0


def test_the_price_is_what_is_certified_for_the_distance_of_the_space(
    make: Make, poincare_space: EmbeddingSpace
) -> None:
    budget = PrivacyBudget(100)
    stretched = make("mahalanobis", 2.0, lam=1.0, budget=budget)
    stretched.privatize("waaa")
    assert isinstance(stretched.mechanism, Mahalanobis)
    assert budget.spent == pytest.approx(stretched.mechanism.space_epsilon)
    assert budget.spent > 2.0
    paper = PrivacyBudget(100)
    DxPrivatizer(poincare_space, "hyperbolic", 1.0, noise="lebesgue", budget=paper).privatize("x")
    assert paper.spent == 1.0 + 4 / 0.5


# One process


def test_what_was_spent_is_never_printed_too_small(make: Make) -> None:
    budget = PrivacyBudget(10)
    make(epsilon=1.2345612, budget=budget).privatize("waaa")
    assert str(budget).splitlines()[0].startswith("spent 1.23457 of ε = 10")
    make(epsilon=1.0000001, budget=budget).privatize("waaa")
    printed = [float(number) for number in re.findall(r"= ([\d.]+)$", str(budget), re.MULTILINE)]
    assert sum(printed) >= budget.spent
    assert float(str(budget).split()[1]) >= budget.spent


def test_it_says_what_was_spent_on_what(make: Make) -> None:
    budget = PrivacyBudget(10)
    assert str(budget) == "spent 0 of ε = 10 for any one word"
    assert repr(budget) == "PrivacyBudget(epsilon=10, unit='word')"
    first = make(epsilon=2.0, text_column=["a", "b"], budget=budget)
    first({"a": ["waaa", "x"], "b": [None, "y"]}, [0, 1])
    make("tem", 1.5, text_column="a", budget=budget)({"a": ["waaa"]}, [0])
    make("tem", 1.5, text_column="a", budget=budget).privatize("waaa")
    lines = str(budget).splitlines()
    assert lines[0].startswith("spent 7 of ε = 10 for any one word, per unit of Euclidean distance")
    assert lines[1:] == [
        "  - column 'a' by 'laplace': 1 × 2 = 2",
        "  - column 'b' by 'laplace': 1 × 2 = 2",
        "  - column 'a' by 'tem': 2 × 1.5 = 3",
    ]


def test_copies_refuse_every_release(make: Make) -> None:
    budget = PrivacyBudget(10)
    privatizer = make(budget=budget)
    for other in (pickle.loads(pickle.dumps(privatizer)), copy.deepcopy(privatizer)):
        with pytest.raises(InvalidValueError, match="counts only where it was made"):
            other.privatize("waaa")
        assert (other.budget.spent, other.budget.remaining) == (0.0, 0.0)
    assert copy.copy(privatizer).budget is budget


def _fails(privatizer: DxPrivatizer) -> str:
    try:
        privatizer.privatize("waaa")
    except InvalidValueError as error:
        return str(error)
    return ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_refuses_every_release(make: Make) -> None:
    privatizer = make(budget=PrivacyBudget(10))
    reader, writer = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: writer.send(_fails(privatizer))
    )
    child.start()
    assert "another process: leave num_proc= out" in reader.recv()
    child.join()


def test_the_pickle_does_not_depend_on_the_budget(make: Make) -> None:
    budget = PrivacyBudget(10)
    privatizer = make(budget=budget)
    before = pickle.dumps(privatizer)
    privatizer.privatize("waaa")
    assert pickle.dumps(privatizer) == before
    assert pickle.dumps(make(budget=PrivacyBudget(3))) == before
    assert pickle.dumps(make()) != before, "a release without a budget is another matter"


def test_threads_share_one_count(make: Make) -> None:
    budget = PrivacyBudget(30)
    privatizer = make(epsilon=1.0, budget=budget)
    refused: list[BaseException] = []

    def release() -> None:
        for _ in range(10):
            try:
                privatizer({"text": ["waaa"]}, [0])
            except BudgetExceededError as error:
                refused.append(error)

    threads = [threading.Thread(target=release) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (budget.spent, len(refused)) == (30.0, 10)


def test_no_order_of_the_rows_hides_a_release(make: Make) -> None:
    """A row that comes in every pass has cost no more than the budget says."""
    budget = PrivacyBudget(100)
    texts = ["waaa", "", "waab waac", "waad", "..."]
    passes = ([0, 1, 2, 3, 4], [1, 2], [4, 2, 0], [2], [3, 1, 2])
    for epsilon, rows in enumerate(passes, start=1):
        privatizer = make(epsilon=float(epsilon), budget=budget)
        privatizer({"text": [texts[row] for row in rows]}, range(len(rows)))
    assert budget.spent >= 1 + 2 + 3 + 4 + 5

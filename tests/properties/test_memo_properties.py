"""What holds of memoized noise for any texts, and of a budget for any sequence of releases."""

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.errors import BudgetExceededError
from hf_dxprivacy.privatizers.budget import EVERYBODY, Expense, PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

KEY = bytes(range(60, 99))
READER = RowReader()

WORDS = st.sampled_from(["waaa", "Waaa", "waab", "wabc", "Oslo", "42", ",", "!", "the"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["a", "b", 1])), max_size=6)


@pytest.fixture(scope="module")
def by_row(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(euclidean_space, "tem", 0.5, memoize="row", key=KEY)


@pytest.fixture(scope="module")
def by_user(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    options = {"memoize": "user", "user_column": "who", "key": KEY}
    return DxPrivatizer(euclidean_space, "tem", 0.5, **options)


def inputs(space: EmbeddingSpace, text: str) -> list[int]:
    """Return the inputs of the mechanism: rows of the vocabulary, −1 for what it lacks."""
    words = [word.lower() for word in READER.read_text(text).words]
    return [int(word) for word in space.ids(words)]


@given(rows=ROWS, more=ROWS)
@settings(max_examples=100, deadline=None)
def test_a_row_is_released_by_its_words_and_what_shows(
    by_row: DxPrivatizer, rows: list[tuple[str, object]], more: list[tuple[str, object]]
) -> None:
    texts = [text for text, _ in rows + more]
    released = [READER.read_text(text).words for text in by_row.privatize(texts)]
    seen: dict[tuple[object, ...], list[str]] = {}
    for text, words in zip(texts, released, strict=True):
        shows = READER.read_text(text).separators
        assert seen.setdefault((*shows, *inputs(by_row.space, text)), words) == words
        assert READER.read_text(by_row.privatize(text)).words == words


@given(rows=ROWS, more=ROWS)
@settings(max_examples=100, deadline=None)
def test_a_word_is_released_by_its_user_alone(
    by_user: DxPrivatizer, rows: list[tuple[str, object]], more: list[tuple[str, object]]
) -> None:
    becomes: dict[tuple[str, int], str] = {}
    for batch in (rows, more, more + rows):
        texts = [text for text, _ in batch]
        released = by_user({"text": texts, "who": [who for _, who in batch]})["text"]
        for (text, who), output in zip(batch, released, strict=True):
            words = READER.read_text(output).words
            for word, output_word in zip(inputs(by_user.space, text), words, strict=True):
                assert becomes.setdefault((str(who), word), output_word) == output_word


@given(a=TEXTS, b=TEXTS)
@settings(max_examples=200, deadline=None)
def test_bounds_of_users_are_finite_for_one_pattern(by_user: DxPrivatizer, a: str, b: str) -> None:
    bound = by_user.guarantee.bound
    first, second = inputs(by_user.space, a), inputs(by_user.space, b)
    one = READER.read_text(a).separators == READER.read_text(b).separators
    pattern = [[words.index(word) for word in words] for words in (first, second)]
    assert bound(a, a) == 0.0
    assert bound(a, b) == bound(b, a)
    assert (bound(a, b) < float("inf")) == (one and pattern[0] == pattern[1])


USES = st.one_of(
    st.dictionaries(st.integers(0, 3), st.integers(1, 3), max_size=3),
    st.just({EVERYBODY: 1}),
)
EXPENSES = st.builds(
    Expense,
    purpose=st.sampled_from(["x", "y"]),
    epsilon=st.sampled_from([0.1, 0.25, 1.0, 1 / 3]),
    metric=st.just("one metric"),
    uses=USES,
)


@given(batches=st.lists(st.lists(EXPENSES, max_size=3), max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_budget_adds_up_and_never_goes_beyond(batches: list[list[Expense]]) -> None:
    budget = PrivacyBudget(3.0)
    spent: dict[object, Fraction] = defaultdict(Fraction)
    for batch in batches:
        then = spent.copy()
        for each in batch:
            for account, count in each.uses.items():
                for one in range(5) if account is EVERYBODY else [account]:
                    then[one] += count * Fraction(repr(each.epsilon))
        touched = [one for one in then if then[one] != spent[one]]
        if any(then[one] > 3 for one in touched):
            with pytest.raises(BudgetExceededError, match="nothing was released"):
                budget.charge(batch)
        else:
            budget.charge(batch)
            spent = then
        assert budget.spent == float(max(spent.values(), default=Fraction(0)))
        assert budget.remaining >= 0.0

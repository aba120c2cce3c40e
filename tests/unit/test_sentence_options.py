"""Options of sentence privatizers: public labels, and slots that are filled afresh."""

import re

import numpy as np
import pytest
from scipy.stats import chi2

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import ExactMechanism, Hierarchical
from small_pools import LABELS, SENTENCES, SUBJECTS, small_pool, small_words

SEED = 2**100 + 7
KEY = bytes(range(40))


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return small_pool()


@pytest.fixture(scope="module")
def slots() -> SentencePool:
    """A pool whose sentences each have a name, a number and a year, and are of known words else."""
    sentences = [f"{s} and {s}, said Susan {k} times in 1999" for k, s in enumerate(SENTENCES, 10)]
    return SentencePool.from_sentences(sentences, small_words(), labels=LABELS, progress=False)


# Labels


def test_sentences_of_a_label_have_the_law_of_its_part(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=1.5, label_column="topic")
    draws, label = 20_000, "film"
    part = pool.with_label(label)
    law = Hierarchical(part.space, 1.5)
    expected = law.probabilities(part.look_up(["the soup was cold"]))[0] * draws
    # Rows of another label stand between.
    rows = {"text": ["the soup was cold"] * (2 * draws), "topic": [label, "soup"] * draws}
    released = privatizer(rows)["text"]
    found = np.array([released[::2].count(sentence) for sentence in part.sentences])
    # Exceeded by honest draws with a probability of 1e-6.
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(part) - 1)
    assert all("soup" in sentence for sentence in released[1::2])


def test_a_row_is_released_in_the_same_way_whatever_labels_are_beside_it(
    pool: SentencePool,
) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=0.5, label_column="topic", seed=SEED)
    batch = {"text": SENTENCES, "topic": LABELS}
    rows = zip(SENTENCES, LABELS, strict=True)
    alone = [
        privatizer({"text": text, "topic": label}, at)["text"]
        for at, (text, label) in enumerate(rows)
    ]
    assert privatizer(batch, range(30))["text"] == alone
    backwards = {name: column[::-1] for name, column in batch.items()}
    assert privatizer(backwards, range(29, -1, -1))["text"] == alone[::-1]
    # Another label of the same row has noise of its own.
    moved = privatizer(batch | {"topic": LABELS[1:] + LABELS[:1]}, range(30))["text"]
    mine = [re.sub("|".join(SUBJECTS), "x", text) for text in alone]
    assert mine != [re.sub("|".join(SUBJECTS), "x", text) for text in moved]


def test_a_user_has_one_sentence_for_a_text_of_a_label(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(
        *(pool, "hierarchical", 0.3),
        label_column="topic",
        memoize="user",
        user_column="who",
        key=KEY,
    )
    rows = {"text": ["soup"] * 40, "topic": ["film", "soup"] * 20, "who": ["a", "a", "b", "b"] * 10}
    released = privatizer(rows)["text"]
    assert [set(released[at::4]) for at in range(4)] == [{text} for text in released[:4]]
    bound = privatizer.guarantee.bound
    film, other = {"text": "soup", "topic": "film"}, {"text": "a city", "topic": "film"}
    assert 0 < bound(film, other) < np.inf
    assert privatizer.guarantee.ldp_epsilon == np.inf


def test_what_the_guarantee_says_of_labels(pool: SentencePool) -> None:
    uneven = small_pool(labels=["a"] * 20 + ["b"] * 10)
    privatizer = SentencePrivatizer(uneven, epsilon=1.0, label_column="topic")
    local = [SentencePrivatizer(uneven.with_label(x), epsilon=1.0).guarantee for x in "ab"]
    guarantee = privatizer.guarantee
    assert guarantee.ldp_epsilon == max(each.ldp_epsilon for each in local)
    assert guarantee.ldp_epsilon < SentencePrivatizer(uneven, epsilon=1.0).guarantee.ldp_epsilon
    said = str(guarantee)
    assert "label of each row in column 'topic', one of 2, with 10 to 20 entries each" in said
    assert "nothing is promised between labels" in said
    assert "exact level" not in said
    near = guarantee.neighbour_epsilon
    assert near[1] == max(each.neighbour_epsilon[1] for each in local)
    assert near[10] == local[0].neighbour_epsilon[10]
    assert "30 public sentences among those of its label" in said
    assert "label" not in str(SentencePrivatizer(pool, epsilon=1.0).guarantee)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"label_column": "text"}, InvalidValueError, "'text' cannot be text and label at once"),
        ({"label_column": 7}, InvalidTypeError, "expected label_column to be a column name"),
        ({"refill": 1}, InvalidTypeError, "expected refill to be True or False, got 1"),
    ],
)
def test_arguments_that_are_refused(
    pool: SentencePool, arguments: dict[str, object], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        SentencePrivatizer(pool, epsilon=1.0, **arguments)  # type: ignore[arg-type]


def test_labels_need_a_pool_that_has_them_and_the_name_of_a_mechanism(pool: SentencePool) -> None:
    with pytest.raises(InvalidValueError, match="the pool has no labels"):
        SentencePrivatizer(small_pool(labels=None), epsilon=1.0, label_column="topic")
    with pytest.raises(InvalidTypeError, match="pass its name and epsilon="):
        SentencePrivatizer(pool, Hierarchical(pool.space, 1.0), label_column="topic")
    labelled = SentencePrivatizer(pool, epsilon=1.0, label_column="topic")
    with pytest.raises(InvalidValueError, match="label_column='topic' is set, so call"):
        labelled.privatize("a")
    with pytest.raises(InvalidTypeError, match="two rows with the columns 'text' and 'topic'"):
        labelled.guarantee.bound("a", "b")
    with pytest.raises(InvalidValueError, match="no sentence of this label"):
        labelled.guarantee.bound({"text": "a", "topic": "x"}, {"text": "a", "topic": "film"})


# Slots


@pytest.mark.parametrize("unit", ["text", "sentence"])
@pytest.mark.parametrize("label_column", [None, "topic"])
def test_refilling_changes_slots_and_nothing_else(
    slots: SentencePool, unit: str, label_column: str | None
) -> None:
    """The entries that come out are those without it: noise of slots is noise of its own."""
    settings = {"epsilon": 0.5, "unit": unit, "label_column": label_column, "seed": SEED}
    plain = SentencePrivatizer(slots, **settings)  # type: ignore[arg-type]
    refilled = SentencePrivatizer(slots, refill=True, **settings)  # type: ignore[arg-type]
    rows = {"text": SENTENCES * 5, "topic": LABELS * 5}
    before, after = (p(rows, range(150))["text"] for p in (plain, refilled))
    slot = re.compile(r"said \w+ \d\d times in \d{4}")
    assert [slot.sub("", text) for text in after] == [slot.sub("", text) for text in before]
    assert sum(a == b for a, b in zip(after, before, strict=True)) < 3
    assert len({text[-4:] for text in after}) > 30
    assert refilled(rows, range(150))["text"] == after


def test_fresh_slots_are_drawn_anew_and_memoized_ones_are_not(slots: SentencePool) -> None:
    fresh = SentencePrivatizer(slots, epsilon=30.0, refill=True)
    released = fresh.privatize(["the soup was cold and late"] * 50)
    assert len(set(released)) > 45
    memoized = SentencePrivatizer(
        slots, epsilon=0.5, refill=True, memoize="user", user_column="who", key=KEY
    )
    rows = {"text": ["the soup"] * 20, "who": ["a", "b"] * 10}
    said = memoized(rows)["text"]
    assert {*said} == {said[0], said[1]}
    assert said[0] != said[1]


def test_slots_of_the_pool_never_come_out(slots: SentencePool) -> None:
    released = SentencePrivatizer(slots, epsilon=0.5, refill=True).privatize(SENTENCES * 20)
    assert not any("Susan" in str(text) for text in released)
    years = np.array([int(str(text)[-4:]) for text in released])
    # 600 draws of 75 years: each comes eight times on average.
    assert 0 <= (years == 1999).sum() < 30


def test_what_the_guarantee_says_of_slots(slots: SentencePool) -> None:
    plain, refilled = (
        SentencePrivatizer(slots, epsilon=1.0, refill=refill).guarantee for refill in (False, True)
    )
    assert refilled.bound("the soup", "a city") == plain.bound("the soup", "a city")
    assert refilled.ldp_epsilon == plain.ldp_epsilon
    assert "drawn afresh, from noise of their own" in str(refilled)
    assert "drawn afresh" not in str(plain)


# Statements


@pytest.mark.parametrize("mechanism", ["hierarchical", "calibrated", "tem", "krr", "laplace"])
def test_a_guarantee_of_texts_says_nothing_of_words(pool: SentencePool, mechanism: str) -> None:
    for unit in ("text", "sentence"):
        for more in ({}, {"seed": SEED}, {"memoize": "row", "key": KEY}):
            privatizer = SentencePrivatizer(pool, mechanism, 2.0, unit=unit, **more)  # type: ignore[arg-type]
            text = str(privatizer.guarantee)
            assert not re.search(r"\bwords?\b", text), text
            assert text.startswith(
                f"Near {unit}s: a release changes the odds of a {unit}'s public "
            )
            assert f"  ε·d-private per {unit}: ε = 2" in text
            assert "was not made from the private text" not in text
            assert "were not made from the private text" in text
    law = SentencePrivatizer(pool, mechanism, 2.0).mechanism
    assert isinstance(law, ExactMechanism) == (mechanism != "laplace")

"""The guarantee as an object: what it prints, stores, compares and bounds."""

import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_dxprivacy import DxPrivatizer, SentencePrivatizer, SlotPrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation.peer_candidates import CusText
from hf_dxprivacy.guarantee import (
    ALWAYS,
    WORD,
    Disclosure,
    PrivacyGuarantee,
    agreed,
    at_most,
    upward,
)
from hf_dxprivacy.mechanisms import (
    CalibratedExponential,
    MultivariateLaplace,
    TruncatedExponential,
    create_mechanism,
)
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.slots import TagColumnSelector
from hf_dxprivacy.spaces import EmbeddingSpace

GUARANTEE = PrivacyGuarantee(
    epsilon=2.5,
    metric="Euclidean distance",
    ldp_epsilon=27.12341,
    neighbour_epsilon={1: 2.5, 10: 4.25, 100: 7.0, 1000: 9.0},
    disclosures=(Disclosure("First."), Disclosure("Second.")),
)


def test_prints_as_a_readable_block() -> None:
    assert str(GUARANTEE).splitlines() == [
        "Near words: a release changes the odds of a word against its nearest neighbour by a "
        "factor of at most 13, against the 10th nearest by at most 71 (at the median distance).",
        "Any words: the odds of any two words change by a factor of at most 10^12 (pure local DP: "
        "ε ≤ 27.13). Factors of several words and releases multiply.",
        "Not covered: whatever is released beside the words.",
        "Details:",
        "  ε·d-private per word: ε = 2.5 per unit of Euclidean distance",
        "  ε·d at the median distance: 2.5 at the 1st neighbour, 4.25 at the 10th neighbour, "
        "7 at the 100th neighbour, 9 at the 1000-th neighbour",
        "  as pure local DP, any word against any other: ε ≤ 27.13",
        "  - First.",
        "  - Second.",
    ]


def test_prints_that_there_is_no_local_level() -> None:
    text = str(replace(GUARANTEE, ldp_epsilon=math.inf))
    assert "as pure local DP, any word against any other: none, nothing bounds it" in text
    assert "inf" not in text


def test_plain_lines_are_rounded_up(euclidean_space: EmbeddingSpace) -> None:
    near, any_two, _ = create_mechanism("krr", euclidean_space, np.log(123.4)).guarantee.plain
    assert "its nearest neighbour by a factor of at most 130, against the 10th nearest by " in near
    assert "the odds of any two words change by a factor of at most 130 (pure " in any_two
    large = create_mechanism("krr", euclidean_space, 50.0).guarantee
    assert "by a factor of at most 10^22 (pure local DP: ε ≤ 50)" in large.plain[1]


@given(st.floats(0.0, 600.0))
def test_printed_factors_hold(epsilon: float) -> None:
    printed = at_most(epsilon).removeprefix("by a factor of at most ").replace(",", "")
    if printed.startswith("10^"):
        assert epsilon / math.log(10) <= int(printed[3:]) < epsilon / math.log(10) + 1.0
    else:
        assert math.exp(epsilon) <= float(printed) <= 1.11 * math.exp(epsilon)


def test_plain_lines_say_where_there_is_no_bound(euclidean_space: EmbeddingSpace) -> None:
    near, any_two, _ = CusText(euclidean_space, 2.0, k=5).guarantee.plain
    assert "its nearest neighbour by a factor of at most 7.4, against the 10th nearest " in near
    assert near.endswith("without any bound (at the median distance).")
    assert "any two words change without any bound (no pure local DP)" in any_two
    assert "WARNING: no finite guarantee between words of different clusters" in any_two


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, ()),
        ({"oov": "drop"}, ("where words out of vocabulary were",)),
        ({"oov": "keep"}, ('words out of vocabulary (oov="keep")',)),
        ({"stopwords": {"a", "b"}}, ("2 stop words",)),
        ({"case": "preserve"}, ("the letter case of every word (lower, Title or UPPER)",)),
        ({"seed": 1 << 70}, ("which rows are equal, and everything once the seed is known",)),
        (
            {"memoize": "user", "key": bytes(range(32)), "user_column": "who"},
            (
                "which words of a user are equal, and so how often each comes, and everything once "
                "the key is known",
            ),
        ),
        (
            {"text_column": "chat[].content", "roles": ("user",)},
            (
                "all of column 'chat' but the texts at 'chat[].content'",
                "the texts of every other role, which may quote them, as answers do",
            ),
        ),
        (
            {"selector": TagColumnSelector("tags. of ner")},
            (
                "every other word as it is, and which words are slots (the mask)",
                "the tags in column 'tags. of ner'",
            ),
        ),
    ],
)
def test_the_last_plain_line_names_all_that_is_not_covered(
    euclidean_space: EmbeddingSpace, options: dict[str, Any], left: tuple[str, ...]
) -> None:
    make = SlotPrivatizer if "selector" in options else DxPrivatizer
    guarantee = make(euclidean_space, "tem", 2.0, **options).guarantee
    shown = guarantee.plain[2].removeprefix("Not covered: ").removesuffix(".").split("; ")
    always = (
        "the number of words and what stands between them (spaces, punctuation, symbols)",
        "other columns, and what `datasets` keeps beside the rows",
    )
    assert sorted(shown) == sorted((*always, *left))
    assert ("without any bound" in guarantee.plain[1]) == math.isinf(guarantee.ldp_epsilon)
    # Equal noise of equal rows shows for certain which are equal.
    equal = "any two words of inputs that agree in which rows are equal change"
    assert (equal in guarantee.plain[1]) == ("seed" in options)
    assert "inf" not in str(guarantee)


def test_plain_lines_of_sentences_are_of_one_label(euclidean_space: EmbeddingSpace) -> None:
    entries = [f"{a} {b} waae." for a in ("waaa", "waab", "waac") for b in ("waad", "waaf")]
    pool = SentencePool.from_sentences(
        entries, euclidean_space, labels=["x", "y"] * 3, progress=False
    )
    near, any_two, left = SentencePrivatizer(pool, epsilon=1.0).guarantee.plain
    assert near.startswith("Near texts: a release changes the odds of a text's public sentence ")
    assert any_two.startswith("Any texts: the odds of any two texts change by a factor of at most")
    labelled = SentencePrivatizer(pool, epsilon=1.0, label_column="y")
    assert "the odds of any two texts of one label change by" in labelled.guarantee.plain[1]
    assert "the label of each row in column 'y', one of 2" in labelled.guarantee.plain[2]
    assert "any text against any other of one label: ε ≤ " in str(labelled.guarantee)
    assert "label" not in left


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (27.12341, 4, "27.13"),
        (27.12, 4, "27.12"),
        (27.129999, 4, "27.13"),
        (0.1, 4, "0.1"),
        (2.0, 6, "2"),
        (9.99901, 4, "10"),
        (99999.0, 4, "100000"),
        (1.23441e-7, 4, "1.235e-07"),
        (1e-30, 6, "1e-30"),
        (1 + 1e-15, 6, "1.00001"),
        (21_873.4, 3, "21900"),
        (123_456_789.0, 4, "123500000"),
        (0.0, 4, "0"),
        (math.inf, 4, "inf"),
    ],
)
def test_printed_bounds_are_rounded_up(value: float, digits: int, text: str) -> None:
    assert upward(value, digits) == text
    assert float(text) >= value


def test_every_printed_bound_holds() -> None:
    for k in range(2000):
        value = math.exp(k * 0.0173 - 17)
        assert value <= float(upward(value)) <= value * (1 + 1.1e-3)


def test_what_is_written_is_rounded_up_and_the_same_for_neighbours_of_a_round_value() -> None:
    for k in range(2000):
        value = math.exp(k * 0.0173 - 17)
        assert value * (1 - 1e-10) <= agreed(value) <= value * (1 + 1.1e-6)
        assert agreed(agreed(value)) == agreed(value)
        round_value = float(f"{value:.7g}")
        for ulp in range(-16, 17):
            assert agreed(round_value * (1 + ulp * 2.0**-52)) == round_value
    assert (agreed(0.0), agreed(1.0000001), agreed(math.inf)) == (0.0, 1.000001, math.inf)


@pytest.mark.parametrize("epsilon", [0.7, 1.3, 2.1, 3.9])
def test_the_printed_truncation_is_no_shorter_than_the_true_one(
    euclidean_space: EmbeddingSpace, epsilon: float
) -> None:
    """A shorter one would state a smaller log-ratio for words farther apart than it."""
    for kind in (TruncatedExponential, CalibratedExponential):
        mechanism = kind(euclidean_space, epsilon)
        printed = float(mechanism.metric.rpartition("γ = ")[2])
        assert mechanism.radius <= printed <= 1.0011 * mechanism.radius


def test_dictionary_is_strict_json() -> None:
    stored = GUARANTEE.to_dict()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    assert stored == {
        "epsilon": 2.5,
        "metric": "Euclidean distance",
        "ldp_epsilon": 27.12341,
        "neighbour_epsilon": {"1": 2.5, "10": 4.25, "100": 7.0, "1000": 9.0},
        "unit": "word",
        "assumptions": ["First.", "Second."],
        "disclosures": [
            {"kind": "condition", "subject": "", "text": "First."},
            {"kind": "condition", "subject": "", "text": "Second."},
        ],
    }


def test_dictionary_says_among_which_inputs() -> None:
    found = {**GUARANTEE.to_dict(), "among": "one label"}
    assert replace(GUARANTEE, among="one label").to_dict() == found


def test_dictionary_has_no_infinity() -> None:
    stored = replace(GUARANTEE, ldp_epsilon=math.inf).to_dict()
    assert stored["ldp_epsilon"] is None
    json.dumps(stored, allow_nan=False)


def test_bound_is_the_one_it_was_given_and_infinite_without() -> None:
    assert GUARANTEE.bound("a", "b") == math.inf
    bounded = replace(GUARANTEE, log_ratio_bound=lambda a, b: abs(len(a) - len(b)) * 2.5)
    assert bounded.bound("abc", "a") == 5.0


def test_is_a_value() -> None:
    same = replace(GUARANTEE, log_ratio_bound=lambda _a, _b: 0.0)
    assert same == GUARANTEE
    assert hash(same) == hash(GUARANTEE)
    assert replace(GUARANTEE, epsilon=2.6) != GUARANTEE
    assert replace(GUARANTEE, neighbour_epsilon={1: 2.5}) != GUARANTEE
    assert pickle.loads(pickle.dumps(GUARANTEE)) == GUARANTEE
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'ldp_epsilon'"):
        GUARANTEE.ldp_epsilon = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_needs_a_finite_level(epsilon: float) -> None:
    with pytest.raises(InvalidValueError, match="expected epsilon > 0 and finite"):
        replace(GUARANTEE, epsilon=epsilon)


def test_needs_a_number_as_level() -> None:
    with pytest.raises(InvalidTypeError, match="expected epsilon to be a number"):
        replace(GUARANTEE, epsilon="2.5")


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
@pytest.mark.parametrize("case", ["lower", "preserve"])
@pytest.mark.parametrize("stopwords", [0, 12])
@pytest.mark.parametrize("seeded", [False, True])
def test_every_disclosure_is_stated_when_it_applies(
    euclidean_space: EmbeddingSpace, oov: Any, case: Any, stopwords: int, seeded: bool
) -> None:
    made = DxPrivatizer(
        *(euclidean_space, "tem", 2.0),
        oov=oov,
        case=case,
        stopwords=[f"w{k}" for k in range(stopwords)],
        seed=1 << 70 if seeded else None,
    )
    text = " ".join(made.guarantee.assumptions)
    assert "the number of words and what stands between them" in text
    assert ("HOLE" in text) == (oov == "keep")
    assert ("removed" in text) == (oov == "drop")
    assert ("centroid" in text) == (oov == "centroid")
    assert ("letter case" in text) == (case == "preserve")
    assert ("12 stop words" in text) == (stopwords == 12)
    assert ("seed stays secret" in text) == seeded


def test_what_always_holds_names_the_idealisation() -> None:
    said = [each.text for each in ALWAYS[WORD]]
    assert any("Arithmetic is treated as exact" in sentence for sentence in said)
    assert any("add up" in sentence for sentence in said)


@pytest.mark.parametrize("mechanism", [TruncatedExponential, CalibratedExponential])
def test_an_epsilon_that_hides_nothing_is_told(
    euclidean_space: EmbeddingSpace, mechanism: type[CalibratedExponential | TruncatedExponential]
) -> None:
    """By the exact probability that a word stays."""
    every = np.arange(len(euclidean_space))
    for epsilon in (0.5, 60.0):
        law = mechanism(euclidean_space, epsilon)
        stays = law.probabilities(every)[every, every].mean()
        assert (stays > 0.99) == (epsilon == 60.0)
        assert (law.caution is not None) == (epsilon == 60.0)
        assert (law.guarantee.disclosures[0].kind == "warning") == (epsilon == 60.0)
        assert law.guarantee.assumptions[0].startswith("WARNING") == (epsilon == 60.0)
    text = str(law.guarantee)
    assert "at ε = 60 nearly every word of this space stays as it is, with probability 0.99" in text
    nearest = euclidean_space.neighbour_distances()[1]
    assert f"the nearest neighbour is {nearest:.3g}: take a smaller ε" in text
    assert MultivariateLaplace(euclidean_space, 60.0).caution is None

"""Numbers, dates and names of people in public sentences, drawn afresh."""

import re
from collections import Counter

import numpy as np
import pytest

from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.text.refill import GIVEN, SURNAMES, masked, refill

AGAIN = range(200)


def refilled(sentence: str) -> list[str]:
    return [refill(sentence, keyed_generator(seed)) for seed in AGAIN]


@pytest.mark.parametrize(
    ("sentence", "pattern"),
    [
        ("It took 3 hours.", r"It took [2-9] hours\."),
        ("She was 47 then.", r"She was [1-9]\d then\."),
        ("About 40% of them left.", r"About [1-9]\d?% of them left\."),
        ("We met on June 15, 1987.", r"We met on June (1\d|2[0-8]), (19[5-9]\d|20[012]\d)\."),
        ("In the 1940s it was new.", r"In the (19[5-9]0|20[012]0)s it was new\."),
        ("On 04/05/1999 it rained.", r"On \d\d/\d\d/(19|20)\d\d it rained\."),
        ("Come at 8pm or at 19:30.", r"Come at ([1-9]|1[0-2])pm or at \d\d?:\d\d\."),
        ("It is $2,500 or 0.75 more.", r"It is \$[1-9],\d{3} or 0\.\d\d more\."),
        ("I asked Susan about it.", rf"I asked ({'|'.join(GIVEN)}) about it\."),
        ("Susan's friend Kevin left.", rf"({'|'.join(GIVEN)})'s friend ({'|'.join(GIVEN)}) left\."),
        (
            "a film by Kevin Donaghue today",
            rf"a film by ({'|'.join(GIVEN)}) ({'|'.join(SURNAMES)}) today",
        ),
        ("then Dr. Palmer came", rf"then Dr\. ({'|'.join(SURNAMES)}) came"),
    ],
)
def test_what_is_drawn_afresh(sentence: str, pattern: str) -> None:
    outputs = refilled(sentence)
    assert {*map(masked, outputs)} == {masked(sentence)} != {sentence}
    assert all(re.fullmatch(pattern, output) for output in outputs)
    assert len(set(outputs)) >= 6


@pytest.mark.parametrize(
    "sentence",
    [
        "Nothing here is a number or a name.",
        "It has one leg and 1 arm, or 0.",
        "I give it 7 out of 10, that is 7/10.",
        "The mp3 of H2O and a B2B deal, 24/7.",
        "We went to Paris and New York on Monday.",
        "Washington and April are more than that.",
        "He works at Walter Reed Army Medical Center here.",
        "JOHN SAYS NO TO THIS AND I DO TOO",
        "Ann-Margret and Lewis-Jones sang.",
        "Не знаю 今天天气很好 🎉",
        "",
    ],
)
def test_what_stays(sentence: str) -> None:
    assert set(refilled(sentence)) == {sentence}


def test_one_name_stays_one_name() -> None:
    for output in refilled("Kevin Palmer called; Kevin was late, and Palmer's car too."):
        first, last, again = re.findall(r"[A-Z]\w+", output)[:3]
        assert again == first
        assert output.endswith(f"and {last}'s car too.")


def test_nothing_of_a_slot_is_kept() -> None:
    """All values of a slot come equally often, whatever stood there."""
    counts = [
        Counter(refill(sentence, keyed_generator(7, k)).split()[-1] for k in range(4000))
        for sentence in ("it was 58", "it was 99")
    ]
    for count in counts:
        assert len(count) == 90
        # 4000 draws of 90 values: a standard deviation of 6.6, six of them.
        assert all(abs(found - 4000 / 90) < 40 for found in count.values())


def test_the_source_decides() -> None:
    sentence = "Susan met 5 people in 1999."
    assert refill(sentence, np.random.default_rng(1)) == refill(sentence, np.random.default_rng(1))

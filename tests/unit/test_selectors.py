"""The contract of selectors: how they combine, and runs of slots."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_dxprivacy import slots
from hf_dxprivacy.errors import MissingExtraError
from hf_dxprivacy.slots import Selector, spans
from hf_dxprivacy.text.selector import Mask, Rows, Words


class Containing(Selector):
    """Selects the words that contain a letter."""

    def __init__(self, letter: str) -> None:
        self._letter = letter

    def __repr__(self) -> str:
        return self._letter

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See the contract."""
        return [
            None if row is None else np.array([self._letter in word for word in row], dtype=bool)
            for row in words
        ]

    @property
    def disclosures(self) -> tuple[str, ...]:
        """One sentence of its own."""
        return ("Shared.", f"Words with {self._letter}.")


A, B = Containing("a"), Containing("b")
ROWS = [["a", "b", "ab", "c"], None, []]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (A, [True, False, True, False]),
        (A | B, [True, True, True, False]),
        (A & B, [False, False, True, False]),
        (~A, [False, True, False, True]),
        (~(A | ~B), [False, True, False, False]),
    ],
)
def test_selectors_combine(selector: Selector, expected: list[bool]) -> None:
    first, missing, empty = selector.masks(ROWS)
    assert first is not None
    assert first.tolist() == expected
    assert missing is None
    assert empty is not None
    assert (empty.shape, empty.dtype) == ((0,), np.dtype(bool))


def test_a_combination_discloses_what_its_parts_do() -> None:
    assert (A | ~B).disclosures == ("Shared.", "Words with a.", "Words with b.")
    assert repr(A & ~B) == "(a & ~b)"


@pytest.mark.parametrize("other", [None, "a", {"a"}])
def test_only_selectors_combine(other: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        A | other
    with pytest.raises(TypeError, match="unsupported operand"):
        A & other


@given(st.lists(st.booleans()))
def test_spans_are_the_runs_of_slots(bits: list[bool]) -> None:
    mask = np.array(bits, dtype=bool)
    rebuilt = np.zeros(len(mask), dtype=bool)
    last = -1
    for start, stop in spans(mask):
        assert last < start < stop
        rebuilt[start:stop] = True
        last = stop
    assert (rebuilt == mask).all()


@pytest.mark.parametrize(
    ("name", "package"), [("SpacySelector", "spacy"), ("PresidioSelector", "presidio_analyzer")]
)
def test_selectors_that_need_an_extra_are_found_beside_the_others(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    module = f"hf_dxprivacy.integrations.{package.partition('_')[0]}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    extra = package.partition("_")[0]
    with pytest.raises(MissingExtraError, match=rf"pip install 'hf-dxprivacy\[{extra}\]'"):
        getattr(slots, name)
    with pytest.raises(AttributeError, match="has no attribute 'NoSelector'"):
        _ = slots.NoSelector

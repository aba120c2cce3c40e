"""Selectors that need the words alone, spans of characters, or tags beside the tokens."""

import pickle
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.slots import (
    ContentWordSelector,
    Selector,
    ShareSelector,
    SpanSelector,
    TagColumnSelector,
)
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.selector import Mask

TOKENS = ["John", "Smith", ",", "of", "New", "York"]
IOB1 = ["I-PER", "I-PER", "O", "O", "I-LOC", "I-LOC"]
IOB2 = ["B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC"]
BIOES = ["B-PER", "E-PER", "O", "O", "B-LOC", "E-LOC"]
PLAIN = ["PER", "PER", "O", "O", "LOC", "LOC"]
CLASSES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def read(*cells: Any) -> list[Any]:
    return [RowReader().read(cell) for cell in cells]


def lists(masks: list[Mask | None]) -> list[Any]:
    return [None if mask is None else mask.tolist() for mask in masks]


def selected(selector: Selector, cell: Any, **columns: Any) -> list[str]:
    """Return the words of one cell that a selector selects."""
    (row,) = read(cell)
    (mask,) = selector.masks([row], columns)
    assert mask is not None
    assert mask.dtype == bool
    return [word for word, slot in zip(row.words, mask, strict=True) if slot]


# Content words


def test_every_word_but_stop_words() -> None:
    selector = ContentWordSelector()
    assert selected(selector, "Will it be colder in Ohio, isn’t it?") == ["colder", "Ohio"]
    assert selected(selector, ["The", "dog", "."]) == ["dog"]
    assert lists(selector.masks([None, []])) == [None, []]
    assert selected(ContentWordSelector({"Dog"}), "the dog") == ["the"]
    assert pickle.loads(pickle.dumps(selector)).stopwords == selector.stopwords
    with pytest.raises(InvalidValueError, match="got 'german'"):
        ContentWordSelector("german")


# Shares


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 10), st.integers(0, 10))
def test_shares_are_kept_within_bounds(bits: list[bool], a: int, b: int) -> None:
    low, high = sorted((a, b))
    rows = [["x" if bit else "of" for bit in bits]]
    inner = ContentWordSelector({"of"})
    bounded = ShareSelector(inner, minimum=low / 10, maximum=high / 10)
    mask, before = bounded.masks(rows)[0], inner.masks(rows)[0]
    assert mask is not None
    assert before is not None
    least, most = -(-low * len(bits) // 10), high * len(bits) // 10
    assert mask.sum() == max(least, min(before.sum(), most))
    # Nothing is added that was left out, nor left out while something is added.
    assert (mask <= before).all() or (mask >= before).all() or least > most


def test_added_words_lie_at_even_distances() -> None:
    nothing = ~ContentWordSelector(set())
    (mask,) = ShareSelector(nothing, minimum=0.25).masks([["x"] * 8])
    assert lists([mask]) == [[True, False, False, False, True, False, False, False]]
    (mask,) = ShareSelector(~nothing, maximum=0.5).masks([["x"] * 6])
    assert lists([mask]) == [[True, False, True, False, True, False]]


def test_shares_depend_on_positions_alone() -> None:
    selector = ShareSelector(ContentWordSelector({"of"}), minimum=0.5, maximum=0.75)
    one, other = selector.masks([["of", "a", "of", "of"], ["of", "b", "of", "of"]])
    assert lists([one]) == lists([other])
    assert any("0.5" in s and "0.75" in s for s in map(str, selector.disclosures))


@pytest.mark.parametrize(
    ("shares", "error", "message"),
    [
        ({"minimum": -0.1}, InvalidValueError, "0 <= minimum <= 1"),
        ({"maximum": 1.5}, InvalidValueError, "0 <= maximum <= 1"),
        ({"minimum": 0.6, "maximum": 0.5}, InvalidValueError, "expected minimum <= maximum"),
        ({"minimum": "all"}, InvalidTypeError, "expected minimum to be a number"),
    ],
)
def test_shares_are_checked(shares: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ShareSelector(ContentWordSelector(), **shares)
    with pytest.raises(InvalidTypeError, match="expected a selector, got a str"):
        ShareSelector("english")  # type: ignore[arg-type]


# Tags


@pytest.mark.parametrize("tags", [IOB1, IOB2, BIOES, PLAIN, np.array(IOB2), tuple(IOB2)])
def test_tags_of_every_scheme(tags: Any) -> None:
    assert selected(TagColumnSelector("t"), TOKENS, t=[tags]) == ["John", "Smith", "New", "York"]
    assert selected(TagColumnSelector("t", ["LOC"]), TOKENS, t=[tags]) == ["New", "York"]


def test_labels_with_prefix_and_labels_that_look_like_one() -> None:
    assert selected(TagColumnSelector("t", ["B-LOC"]), TOKENS, t=[IOB2]) == ["New"]
    tags = ["B-E-mail", "O"]
    assert selected(TagColumnSelector("t", ["E-mail"]), ["a@b.c", "x"], t=[tags]) == ["a@b.c"]


@pytest.mark.parametrize("kind", [list, np.array])
def test_tags_that_are_class_labels(kind: Any) -> None:
    tags = kind([CLASSES.index(tag) for tag in IOB2])
    selector = TagColumnSelector("t", {"PER"}, names=CLASSES)
    assert selected(selector, TOKENS, t=[tags]) == ["John", "Smith"]
    with pytest.raises(InvalidTypeError, match=r"row 0 .*tags are integers.*names=dataset"):
        selected(TagColumnSelector("t"), TOKENS, t=[tags])
    with pytest.raises(InvalidValueError, match="tags from 0 to 1, got 3"):
        selected(TagColumnSelector("t", names=CLASSES[:2]), TOKENS[4:], t=[[0, 3]])
    with pytest.raises(InvalidValueError, match=r"no label 'GPE'; there are .*'LOC', 'PER'"):
        TagColumnSelector("t", ["GPE"], names=CLASSES)


def test_missing_rows_have_no_mask_and_need_no_tags() -> None:
    masks = TagColumnSelector("t").masks(read(None, ["a"], []), {"t": [None, ["B-X"], []]})
    assert lists(masks) == [None, [True], []]
    assert lists(TagColumnSelector("t").masks([["a", "b"]], {"t": [["O", "B-X"]]})) == [
        [False, True]
    ]


@pytest.mark.parametrize(
    ("cell", "tags", "error", "message"),
    [
        (TOKENS, IOB2[:5], InvalidValueError, "one tag for each of 6 tokens, got 5 tags"),
        (TOKENS, [], InvalidValueError, "got 0 tags"),
        ("John Smith", ["B-PER", "I-PER"], InvalidTypeError, r"holds a text; split it.*split\(\)"),
        (["John"], "B-PER", InvalidTypeError, "expected a list of tags, got a str"),
        (["John"], None, InvalidTypeError, "expected a list of tags, got a NoneType"),
        (["John"], [None], InvalidTypeError, "strings or integers, got a NoneType"),
        (["John"], [1.5], InvalidTypeError, "strings or integers, got a float"),
    ],
)
def test_tags_that_do_not_fit(cell: Any, tags: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        TagColumnSelector("t").masks(read(["x"], cell), {"t": [["O"], tags]})
    assert str(raised.value).startswith("column 't', row 1 of the batch: ")
    assert "John" not in str(raised.value)


def test_a_missing_tag_column() -> None:
    for columns in (None, {"other": [[]]}):
        with pytest.raises(InvalidValueError, match=r"column 't', and there is none.*dataset\.map"):
            TagColumnSelector("t").masks(read(["a"]), columns)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5,), InvalidTypeError, "the name of a column of tags, got 5"),
        (("t", "PER"), InvalidTypeError, "expected labels to be names"),
        (("t", []), InvalidValueError, "at least one label"),
    ],
)
def test_arguments_of_tags_are_checked(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TagColumnSelector(*arguments)


def test_combinations_need_the_columns_of_their_parts() -> None:
    a, b = TagColumnSelector("a"), TagColumnSelector("b")
    selector = ShareSelector((a | b) & ~(ContentWordSelector() | a))
    assert selector.columns == ("a", "b")
    assert ContentWordSelector().columns == ()


# Spans


def capitals(text: str, extra: int = 0) -> list[SimpleNamespace]:
    """Find words with a capital, as an analyzer reports them."""
    return [
        SimpleNamespace(start=at, end=at + 2 + extra, entity_type="NAME", score=0.5)
        for at, character in enumerate(text)
        if character.isupper()
    ]


def test_results_of_an_analyzer() -> None:
    selector = SpanSelector(partial(capitals, extra=1))
    text = "  Ann's aunt met Bob-Lee; née Zoë"
    assert selected(selector, text) == ["Ann's", "Bob", "Lee", "Zoë"]
    assert selected(selector, ["ann", "(", "Bob", "x"]) == ["Bob"]
    assert lists(selector.masks([["a", "B"], None, []])) == [[False, True], None, []]
    assert selected(SpanSelector(capitals, ["CITY"]), text) == []
    assert selected(SpanSelector(capitals, ["NAME"]), "a Bob") == ["Bob"]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 3)], ["one"]),
        ([(3, 4)], []),
        ([(2, 5)], ["one", "two"]),
        ([(5, 5)], []),
        ([(4, 6), (4, 7, "X")], ["two"]),
        ([(0, 99)], ["one", "two", "three"]),
        ([], []),
    ],
)
def test_a_word_is_a_slot_if_it_touches_a_span(spans: Any, expected: list[str]) -> None:
    assert selected(SpanSelector(lambda _: spans), "one two three") == expected


def test_spans_are_those_of_the_normalized_text() -> None:
    seen: list[str] = []
    selector = SpanSelector(lambda text: seen.append(text) or [(0, 4)])  # type: ignore[func-returns-value]
    assert selected(selector, "Zoe\u0308 x") == ["Zoë"]
    assert seen == ["Zoë x"]


def test_spans_are_checked() -> None:
    with pytest.raises(InvalidTypeError, match="expected a function of a text, got a str"):
        SpanSelector("x")  # type: ignore[arg-type]
    for wrong in ("ab", 5, (1, 2, 3, 4)):
        with pytest.raises(InvalidTypeError, match="expected spans"):
            selected(SpanSelector(lambda _, wrong=wrong: [wrong]), "one")

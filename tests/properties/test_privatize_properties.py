"""What holds of every text that goes through `privatize`, whatever is in it."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import LOOKUP_FORMS, RowReader, case_pattern, plain_apostrophes
from hf_dxprivacy.text.segmentation import TextRow

READER = RowReader()
MADE: dict[tuple[Any, ...], DxPrivatizer] = {}

PIECES = (
    *("waaa", "Waab", "WAAC", "wAad", "naïve", "e\u0301", "jo", "x1", "the", "don’t", "Zürich"),
    *("www.", "https://", "@", ".", "_", "'", "’", "-", "+", "%", "/", ":", ",", " ", "\n", "!"),
    *(
        "1",
        "23",
        "👍🏽",
        "👩\u200d👧",
        "🇩🇪",
        "1️⃣",
        "中文",
        "नि",
        "\u200b",
        "\x00",
        "\u0301",
        "\ud800",
    ),
)

# Lone surrogates included: st.text() alone leaves them out.
ANY_TEXT = st.text(st.characters(exclude_categories=[]))
TEXTS = st.one_of(ANY_TEXT, st.lists(st.sampled_from(PIECES)).map("".join))
TOKENS = st.lists(st.one_of(st.none(), TEXTS))


def make(space: EmbeddingSpace, mechanism: str = "laplace", **options: Any) -> DxPrivatizer:
    """Return one and the same privatizer for every example."""
    key = (id(space), mechanism, *options.items())
    if key not in MADE:
        MADE[key] = DxPrivatizer(space, mechanism, 1.0, **options)
    return MADE[key]


@pytest.fixture(scope="module")
def space(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    """Words of letters that no test text is likely to hold by chance."""
    return euclidean_space


def taken_apart(text: str) -> TextRow:
    return READER.read_text(text)


def normalized(text: str) -> str:
    return unicodedata.normalize("NFC", re.sub("[\ud800-\udfff]", "\ufffd", text))


def released(privatizer: DxPrivatizer, text: str) -> tuple[TextRow, TextRow]:
    """Return a text and its release, both taken apart."""
    before = taken_apart(text)
    return before, READER.read_text(privatizer.privatize(text))


@given(text=TEXTS)
@settings(max_examples=1000, deadline=None)
@example(text="o'neil@x.org's it's@b.c a@b.c@d.e")
@example(text="\ud83d\udc4d \ufeff#tag @user\u200b")
def test_every_word_is_replaced_and_nothing_else(space: EmbeddingSpace, text: str) -> None:
    before, after = released(make(space), text)
    assert after.separators == before.separators
    assert before.detokenize(before.words) == normalized(text)
    assert len(after.words) == len(before.words)
    assert all(word in space for word in after.words)
    unknown = {word for word in before.words if plain_apostrophes(word) not in space}
    assert not unknown & set(after.words)


@pytest.mark.parametrize("mechanism", ["tem", "calibrated", "mahalanobis"])
@given(texts=st.lists(st.one_of(st.none(), TEXTS)))
@settings(max_examples=50, deadline=None)
def test_so_it_is_with_every_mechanism_and_in_batches(
    space: EmbeddingSpace, mechanism: str, texts: list[str | None]
) -> None:
    rows = [None if text is None else taken_apart(text) for text in texts]
    for row, output in zip(rows, make(space, mechanism).privatize(texts), strict=True):
        assert (row is None) == (output is None)
        if row is not None:
            assert isinstance(output, str)
            after = READER.read_text(output)
            assert after.separators == row.separators
            assert all(word in space for word in after.words)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_case_is_preserved(space: EmbeddingSpace, text: str) -> None:
    before, after = released(make(space, case="preserve"), text)
    assert after.separators == before.separators
    assert [case_pattern(word) for word in after.words] == [
        case_pattern(word) for word in before.words
    ]
    assert all(word.lower() in space for word in after.words)


def known(space: EmbeddingSpace, words: Sequence[str]) -> list[bool]:
    return [any(form(word) in space for form in (str, *LOOKUP_FORMS)) for word in words]


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
@example(text="WAAÀ, waaø")
def test_dropped_words_leave_only_what_was_around_them(space: EmbeddingSpace, text: str) -> None:
    before = taken_apart(text)
    output = make(space, oov="drop").privatize(text)
    pieces = [before.separators[0]]
    for found, after in zip(known(space, before.words), before.separators[1:], strict=True):
        if found:
            pieces.append(after)
        else:
            pieces[-1] += after
    pattern = "w[a-z]{3}".join(map(re.escape, pieces))
    assert re.fullmatch(pattern, output, re.DOTALL)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_kept_words_stay_in_their_places(space: EmbeddingSpace, text: str) -> None:
    before = taken_apart(text)
    output = make(space, oov="keep").privatize(text)
    pieces = [before.separators[0]]
    for word, found, after in zip(
        before.words, known(space, before.words), before.separators[1:], strict=True
    ):
        pieces += ["w[a-z]{3}" if found else re.escape(word), re.escape(after)]
    assert re.fullmatch(re.escape(pieces[0]) + "".join(pieces[1:]), output, re.DOTALL)


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_stop_words_alone_are_kept(space: EmbeddingSpace, text: str) -> None:
    privatizer = make(space, stopwords="english")
    before, after = released(privatizer, text)
    for old, new in zip(before.words, after.words, strict=True):
        assert new == old if plain_apostrophes(old) in privatizer.stopwords else new in space


@pytest.mark.parametrize("oov", ["centroid", "keep"])
@given(lists=st.lists(st.one_of(st.none(), TOKENS)))
@settings(max_examples=100, deadline=None)
def test_token_lists_keep_their_length(
    space: EmbeddingSpace, oov: Any, lists: list[list[str | None] | None]
) -> None:
    outputs = make(space, oov=oov).privatize(lists)
    for tokens, output in zip(lists, outputs, strict=True):
        if tokens is None:
            assert output is None
            continue
        assert isinstance(output, list)
        for old, new in zip(tokens, output, strict=True):
            if old is None or not READER.read_text(old).words:
                assert new == (None if old is None else normalized(old))
            elif oov == "centroid" or all(known(space, [normalized(old)])):
                assert new in space
            else:
                assert new == normalized(old)


@given(tokens=TOKENS)
@settings(max_examples=100, deadline=None)
def test_dropped_tokens_are_gone(space: EmbeddingSpace, tokens: list[str | None]) -> None:
    output = make(space, oov="drop").privatize([tokens])[0]
    assert isinstance(output, list)
    kept = [
        token
        for token in tokens
        if token is None
        or not READER.read_text(token).words
        or known(space, [normalized(token)])[0]
    ]
    assert len(output) == len(kept)
    assert all(new is None or new in space or not READER.read_text(new).words for new in output)


@given(texts=st.lists(TEXTS, max_size=8), seed=st.integers(min_value=0), cut=st.integers(0, 8))
@settings(max_examples=100, deadline=None)
def test_seeded_rows_do_not_depend_on_their_batch(
    space: EmbeddingSpace, texts: list[str], seed: int, cut: int
) -> None:
    privatizer = DxPrivatizer(space, "tem", 1.0, seed=seed, text_column="t")
    indices = list(range(len(texts)))
    whole = privatizer({"t": texts}, indices)["t"]
    parts = [
        privatizer({"t": texts[part]}, indices[part])["t"]
        for part in (slice(cut), slice(cut, None))
    ]
    assert parts[0] + parts[1] == whole
    assert [privatizer({"t": t}, i)["t"] for i, t in reversed(list(enumerate(texts)))] == whole[
        ::-1
    ]


@given(a=TEXTS, b=TEXTS)
@settings(max_examples=200, deadline=None)
def test_the_bound_is_symmetric_and_finite_only_for_one_carrier(
    space: EmbeddingSpace, a: str, b: str
) -> None:
    bound = make(space).guarantee.bound
    assert bound(a, a) == 0.0
    assert bound(a, b) == bound(b, a)
    assert (bound(a, b) < float("inf")) == (
        READER.read_text(a).separators == READER.read_text(b).separators
    )

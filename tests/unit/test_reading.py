"""A column as it was read: what is worked out for all rows at once is what each row gives alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.plan import Case, OutOfVocabulary, Plan
from hf_dxprivacy.randomness import RowStreams, keyed_generator
from hf_dxprivacy.reading import Reading, RowKeys
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader, apply_case, case_pattern

READER = RowReader()
VOCABULARY = ("waaa", "waab", "waac", "waad")
STOPWORDS = frozenset({"waac", "keep"})

PIECES = st.sampled_from(
    [*VOCABULARY, "Waaa", "WAAB", "keep", "Other", "東京", "😀", "naïve", " ", ", ", " – ", "a@b.c"]
)
TEXT = st.lists(PIECES).map(" ".join)
CELLS = st.lists(st.none() | TEXT | st.lists(PIECES | st.none()))


def reading(cells: list[object], space: EmbeddingSpace, oov: OutOfVocabulary) -> Reading:
    rows = READER.read_column(cells, "text", None)
    return Reading.of("text", RowKeys(), rows, None, space, STOPWORDS, oov)


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
@given(cells=CELLS)
@settings(deadline=None)
def test_rows_of_a_batch_are_those_of_the_rows_alone(
    euclidean_space: EmbeddingSpace, oov: OutOfVocabulary, cells: list[object]
) -> None:
    batch = reading(cells, euclidean_space, oov)
    alone = [reading([cell], euclidean_space, oov) for cell in cells]
    assert batch.by_row(batch.words) == [one.words for one in alone]
    inputs = [ids.tolist() for ids in batch.inputs]
    assert inputs == [one.plan.ids[one.plan.drawn].tolist() for one in alone]


def uniform(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.random((size, 2))


@given(cells=CELLS)
@settings(deadline=None)
def test_a_row_has_the_stream_of_its_words_and_of_what_is_drawn(
    euclidean_space: EmbeddingSpace, cells: list[object]
) -> None:
    batch = reading(cells, euclidean_space, "drop")
    generators, counts = [], []
    for one in (reading([cell], euclidean_space, "drop") for cell in cells):
        drawn = one.plan.drawn
        identity = ("settings", "text", None, *one.words, drawn.tobytes().hex())
        generators.append(keyed_generator(5, *identity))
        counts.append(int(drawn.sum()))
    streams, expected = batch.streams(5, "settings"), RowStreams(generators, counts)
    assert len(streams) == sum(counts)
    if len(streams):
        words = np.arange(len(streams))
        np.testing.assert_array_equal(streams.draw(uniform, words), expected.draw(uniform, words))


@pytest.mark.parametrize("case", ["lower", "preserve"])
@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
@given(words=st.lists(PIECES), data=st.data())
@settings(deadline=None)
def test_what_is_released_word_by_word(
    euclidean_space: EmbeddingSpace,
    oov: OutOfVocabulary,
    case: Case,
    words: list[str],
    data: st.DataObject,
) -> None:
    plan = Plan.of(words, euclidean_space, STOPWORDS, oov)
    count = int(plan.drawn.sum())
    output = st.integers(0, len(VOCABULARY) - 1)
    outputs = data.draw(st.lists(output, min_size=count, max_size=count))
    left = iter(outputs)
    expected: list[str | None] = []
    for word, drawn, kept in zip(words, plan.drawn, plan.kept, strict=True):
        if drawn:
            new = VOCABULARY[next(left)]
            expected.append(apply_case(new, case_pattern(word)) if case == "preserve" else new)
        else:
            expected.append(None if oov == "drop" and not kept else word)
    assert plan.released(words, np.array(outputs, np.int64), VOCABULARY, oov, case) == expected

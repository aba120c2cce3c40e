"""An encoded column: what is computed for all rows at once is what each row gives alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy.privatizers.batch import Case, EncodedText, OutOfVocabulary, RowIds
from hf_dxprivacy.randomness import RowStreams, keyed_generator, row_streams
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


def encoded(
    cells: list[object], space: EmbeddingSpace, oov: OutOfVocabulary, case: Case = "lower"
) -> EncodedText:
    rows = [READER.read(cell) for cell in cells]
    return EncodedText.encode(
        "text", rows, RowIds(), space, stopwords=STOPWORDS, oov=oov, case=case
    )


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
@given(cells=CELLS)
@settings(deadline=None)
def test_rows_of_a_batch_are_those_of_the_rows_alone(
    euclidean_space: EmbeddingSpace, oov: OutOfVocabulary, cells: list[object]
) -> None:
    batch = encoded(cells, euclidean_space, oov)
    alone = [encoded([cell], euclidean_space, oov) for cell in cells]
    assert batch.words == [word for one in alone for word in one.words]
    assert np.diff(batch.offsets).tolist() == [len(one.words) for one in alone]
    inputs = [ids.tolist() for ids in batch.row_inputs()]
    assert inputs == [one.inputs.tolist() for one in alone]
    assert batch.row_lengths == [len(row) for row in inputs]
    seen = [at for at, cell in enumerate(batch.rows) if cell is not None]
    assert [batch.visible(at) for at in seen] == [alone[at].visible(0) for at in seen]


def uniform(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.random((size, 2))


@given(cells=CELLS)
@settings(deadline=None)
def test_a_row_has_the_stream_of_its_words_and_of_what_is_drawn(
    euclidean_space: EmbeddingSpace, cells: list[object]
) -> None:
    batch = encoded(cells, euclidean_space, "drop")
    generators, counts = [], []
    for one in (encoded([cell], euclidean_space, "drop") for cell in cells):
        drawn = one.perturbed
        identity = ("settings", "text", None, *one.words, drawn.tobytes().hex())
        generators.append(keyed_generator(5, *identity))
        counts.append(int(drawn.sum()))
    streams = row_streams(5, ("settings", "text"), batch.contents(), None, batch.row_lengths)
    expected = RowStreams(generators, counts)
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
    column = encoded([words], euclidean_space, oov, case)
    count = len(column.inputs)
    output = st.integers(0, len(VOCABULARY) - 1)
    outputs = data.draw(st.lists(output, min_size=count, max_size=count))
    left = iter(outputs)
    expected: list[str | None] = []
    actions = zip(column.words, column.perturbed, column.passed_through, strict=True)
    for word, perturbed, passed_through in actions:
        if perturbed:
            new = VOCABULARY[next(left)]
            expected.append(apply_case(new, case_pattern(word)) if case == "preserve" else new)
        else:
            expected.append(None if oov == "drop" and not passed_through else word)
    assert column.released([VOCABULARY[output] for output in outputs]) == [expected]

"""DxPrivatizer: arguments, rows and batches, options, and what it promises."""

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import HubOptions
from hf_dxprivacy.mechanisms import MultivariateLaplace
from hf_dxprivacy.privatizers.batch import EncodedText, RowIds, WordCounts
from hf_dxprivacy.privatizers.dataset_formats import DatasetBatch
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

Make = Callable[..., DxPrivatizer]

# So much that noise never reaches another word of the test space.
NOISELESS = 1e6


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(mechanism: Any = "laplace", epsilon: float | None = 2.0, **options: Any) -> Any:
        return DxPrivatizer(euclidean_space, mechanism, epsilon, **options)

    return make


# Arguments


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": None}, InvalidValueError, "epsilon is missing.* your decision"),
        ({"epsilon": 0}, InvalidValueError, "expected epsilon > 0 and finite, got epsilon=0"),
        ({"epsilon": -1.0}, InvalidValueError, r"got epsilon=-1\.0"),
        ({"epsilon": math.inf}, InvalidValueError, "got epsilon=inf"),
        ({"epsilon": math.nan}, InvalidValueError, "got epsilon=nan"),
        ({"epsilon": "5"}, InvalidTypeError, r"expected epsilon to be a number, got epsilon='5'"),
        ({"epsilon": True}, InvalidTypeError, "expected epsilon to be a number"),
        ({"mechanism": "madlib"}, InvalidValueError, "'laplace', 'mahalanobis', .*'madlib'"),
        ({"mechanism": None}, InvalidValueError, "mechanism is missing: .* no default"),
        ({"mechanism": MultivariateLaplace}, InvalidValueError, "expected mechanism to be one of"),
        ({"mechanism": "hyperbolic"}, InvalidValueError, "'poincare', got 'euclidean'"),
        ({"lam": 0.5}, InvalidTypeError, "'laplace' has no option 'lam'; its options are: index"),
        ({"mechanism": "tem", "lam": 1}, InvalidTypeError, "its options are: beta, gamma"),
        ({"mechanism": "mahalanobis", "lam": 2.0}, InvalidValueError, "<= lam <= 1.0, got lam=2.0"),
        ({"oov": "remove"}, InvalidValueError, "'centroid', 'drop', 'keep'; got oov='remove'"),
        ({"case": "upper"}, InvalidValueError, "'lower', 'preserve'; got case='upper'"),
        ({"index": "hnsw"}, InvalidValueError, "needs a space with that index, this one has none"),
        ({"device": None}, InvalidTypeError, "device to be a string such as 'cuda', got None"),
        ({"seed": -1}, InvalidValueError, "expected seed >= 0, got seed=-1"),
        ({"seed": 1.0}, InvalidTypeError, "expected seed to be an integer, got seed=1.0"),
        ({"seed": True}, InvalidTypeError, "expected seed to be an integer, got seed=True"),
        ({"seed": "0"}, InvalidTypeError, "expected seed to be an integer, got seed='0'"),
        ({"stopwords": "german"}, InvalidValueError, "got 'german'"),
        ({"stopwords": [1]}, InvalidTypeError, "strings, as in .* got a list"),
        ({"text_column": ()}, InvalidTypeError, r"text_column to be a column name or .* got \(\)"),
        ({"text_column": 1}, InvalidTypeError, "text_column to be a column name .* got 1"),
        ({"text_column": ["a", 1]}, InvalidTypeError, "text_column to be a column name"),
        ({"text_column": {"a", "b"}}, InvalidTypeError, "text_column to be a column name"),
        ({"text_column": ["a", "a"]}, InvalidValueError, "text_column to name some different"),
        ({"output_column": 5}, InvalidTypeError, "output_column to be a column name"),
        ({"output_column": ["a", "b"]}, InvalidValueError, "output_column to name 1 different"),
        (
            {"text_column": ["a", "b"], "output_column": ["c", "c"]},
            InvalidValueError,
            "output_column to name 2 different",
        ),
        (
            {"text_column": ["a", "b"], "output_column": "c"},
            InvalidValueError,
            "output_column to name 2 different columns, as many as text_column, got .'c'",
        ),
    ],
)
def test_arguments_are_checked(
    make: Make, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)


@pytest.mark.parametrize("space", [None, 5, ["a"], np.zeros((2, 2))])
def test_the_space_is_checked(space: Any) -> None:
    with pytest.raises(
        InvalidTypeError, match=f"an EmbeddingSpace, got an? {type(space).__name__}"
    ):
        DxPrivatizer(space, "laplace", 1.0)


def test_an_unknown_space_is_named_beside_the_known() -> None:
    with pytest.raises(InvalidValueError, match="'wordnet-glos', which is none of them"):
        DxPrivatizer("wordnet-glos", "laplace", 1.0)


def test_options_are_given_by_name(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(TypeError, match="positional arguments"):
        DxPrivatizer(euclidean_space, "laplace", 1.0, "text")  # type: ignore[misc]


def test_a_ready_made_mechanism(euclidean_space: EmbeddingSpace, make: Make) -> None:
    mechanism = MultivariateLaplace(euclidean_space, 3.0)
    for epsilon in (None, 3.0):
        privatizer = make(mechanism, epsilon)
        assert privatizer.mechanism is mechanism
        assert (privatizer.epsilon, privatizer.space) == (3.0, euclidean_space)
    with pytest.raises(InvalidValueError, match=r"its epsilon is 3\.0"):
        make(mechanism, 4.0)
    with pytest.raises(InvalidValueError, match="brings its own space, epsilon and options"):
        make(mechanism, None, lam=0.5)
    other = EmbeddingSpace.from_vectors(euclidean_space.words, euclidean_space.vectors)
    with pytest.raises(InvalidValueError, match="pass that same space"):
        DxPrivatizer(other, mechanism)


def test_the_space_may_be_a_folder(euclidean_space: EmbeddingSpace, tmp_path: Path) -> None:
    euclidean_space.save_pretrained(tmp_path)
    for folder in (tmp_path, str(tmp_path)):
        for privatizer in (
            DxPrivatizer(folder, "laplace", 2.0),
            DxPrivatizer.from_pretrained(folder, mechanism="laplace", epsilon=2.0),
        ):
            assert privatizer.space.digest == euclidean_space.digest
    with pytest.raises(InvalidValueError, match="epsilon is missing"):
        DxPrivatizer.from_pretrained(tmp_path, mechanism="laplace")


def test_there_is_no_default_mechanism(euclidean_space: EmbeddingSpace, tmp_path: Path) -> None:
    euclidean_space.save_pretrained(tmp_path)
    for make in (DxPrivatizer, DxPrivatizer.from_pretrained):
        for space in (tmp_path, str(tmp_path)):
            with pytest.raises(
                InvalidValueError,
                match=r"mechanism is missing: .*'laplace', .*'krr'\. 'hierarchical' is recommended",
            ):
                make(space, epsilon=5)


def test_repr_states_epsilon_and_never_the_seed(make: Make) -> None:
    shown = repr(make("mahalanobis", 2.5, lam=0.25, seed=987654321))
    for part in ("500 words", "mechanism='mahalanobis'", "epsilon=2.5", "lam=0.25", "oov='cent"):
        assert part in shown
    assert "987654321" not in shown
    assert "987654321" not in str(make(seed=987654321).guarantee)


def test_no_repr_shows_private_text_or_a_token_of_the_hub(make: Make) -> None:
    """Debuggers and services that collect errors show the repr of every local variable."""
    row = RowReader().read("secret text")
    tokens = RowReader().read(["secret", "text"])
    users = RowIds([0], ["secret"])
    column = EncodedText.encode("a", [row], users, make().space)
    batch = DatasetBatch.of({"text": ["secret"]})
    for private in (row, tokens, users, column, batch, HubOptions(token="secret")):
        assert "secret" not in repr(private)


def test_a_token_of_the_hub_does_not_travel() -> None:
    """Encoders and selectors hold the options that they were loaded with."""
    options = HubOptions("cache", token="secret", local_files_only=True)
    pickled = pickle.dumps(options)
    assert b"secret" not in pickled
    assert pickle.loads(pickled) == HubOptions("cache", local_files_only=True)


# Rows and batches


def test_rows_and_batches_are_told_apart(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS, output_column="out")
    assert privatizer({"text": "waaa, waab"}) == {"out": "waaa, waab"}
    assert privatizer({"text": ["waaa", "waab"]}) == {"out": ["waaa", "waab"]}
    assert privatizer({"text": None}) == {"out": None}
    assert privatizer({"text": [None, "waaa"]}) == {"out": [None, "waaa"]}
    assert privatizer({"text": []}) == {"out": []}
    # One row with tokens, and two rows of tokens.
    assert privatizer({"text": ["waaa", "."], "id": 7}) == {"out": ["waaa", "."]}
    assert privatizer({"text": ["waaa", "."]}, 0) == {"out": ["waaa", "."]}
    assert privatizer({"text": [["waaa", "."], []]}, [0, 1]) == {"out": [["waaa", "."], []]}


class Image:
    """A cell that is neither text, number nor container."""


@pytest.mark.parametrize("extra", ["x", b"x", 1, 2.5, None, True, {}, np.int64(1), Image(), [1]])
def test_another_column_tells_a_row_of_tokens_from_a_batch(make: Make, extra: Any) -> None:
    """Two tokens with a space inside: as a batch of texts they would be four words."""
    released = make()({"text": ["New York", "Los Angeles"], "extra": extra})["text"]
    assert [len(token.split()) for token in released] == [1, 1]


def test_a_batch_has_columns_of_one_length(make: Make) -> None:
    released = make()({"text": ["New York", "a b c"], "extra": [1, 2]})["text"]
    assert [len(token.split()) for token in released] == [2, 3]


def test_what_a_row_is_can_be_told(make: Make) -> None:
    """A list of strings is a batch of texts or one row of tokens."""
    texts = make(seed=1, is_split_into_words=False)
    tokens = make(seed=1, is_split_into_words=True)
    unclear = {"text": ["waaa", "waaa", None]}
    first, second, none = texts(unclear)["text"]
    assert (first, none) == (second, None)
    assert [texts({"text": [text]})["text"][0] for text in ("waaa", None)] == [first, None]
    assert texts({"text": "waaa"})["text"] == first
    drawn = tokens({"text": ["waaa"] * 30})["text"]
    assert tokens({"text": [["waaa"] * 30, []]})["text"] == [drawn, []]
    assert len(set(drawn)) > 5
    assert tokens({"text": []}) == texts({"text": []}) == {"text": []}
    assert tokens({"text": [None], "who": ["a"]}) == {"text": [None]}
    with pytest.raises(InvalidValueError, match="one of None, False, True; got is_split_into_w"):
        make(is_split_into_words="yes")


@pytest.mark.parametrize("options", [{"seed": 1}, {"oov": "drop"}])
def test_an_unclear_batch_is_refused_where_it_matters(make: Make, options: dict[str, Any]) -> None:
    """One token list, read as a batch, would give equal tokens equal seeded noise."""
    privatizer = make(**options)
    with pytest.raises(InvalidValueError, match=r"tokens of one row.*with_indices=True"):
        privatizer({"text": ["waaa", "waab", None], "tags": [0, 0, 1]})
    assert len(privatizer({"text": ["waaa", "waab"]}, 0)["text"]) == 2
    assert len(privatizer({"text": ["waaa", "waab"]}, [0, 1])["text"]) == 2
    assert len(privatizer({"text": ["waaa waab", "waab"]})["text"]) == 2
    assert len(privatizer({"text": [["waaa", "waab"]]})["text"]) == 1
    assert privatizer({"text": [None, None]}) == {"text": [None, None]}


def test_several_columns(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS, text_column=["b", "a"], output_column=["x", "y"])
    assert privatizer({"a": "waaa", "b": "waab", "c": 1}) == {"x": "waab", "y": "waaa"}
    batch = {"a": ["waaa", None], "b": [["waab", "!"], ["waac"]], "c": [1, 2]}
    assert privatizer(batch) == {"x": [["waab", "!"], ["waac"]], "y": ["waaa", None]}
    in_place = make(epsilon=NOISELESS, text_column=("a", "b"))
    assert in_place({"a": "WAAA", "b": "WAAB"}) == {"a": "waaa", "b": "waab"}


def test_an_output_takes_the_place_of_no_other_column(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS, output_column="stars")
    batch = {"text": ["waaa", "waab waac"], "stars": [1, 2]}
    for examples in (batch, {"text": "waaa", "stars": 1}, pd.DataFrame(batch), pa.table(batch)):
        with pytest.raises(InvalidValueError, match=r"have a column 'stars' already.*be lost"):
            privatizer(examples)
    shifted = make(epsilon=NOISELESS, text_column=["a", "b"], output_column=["b", "c"])
    assert shifted({"a": "waaa", "b": "waab"}) == {"b": "waaa", "c": "waab"}


def test_the_input_is_not_changed(make: Make) -> None:
    tokens = ["waaa", ".", None]
    batch = {"text": [tokens, ["waab"]]}
    frame = pd.DataFrame({"text": ["waaa waab"]})
    table = pa.table({"text": ["waaa waab"]})
    for examples in (batch, frame, table):
        make(seed=1)(examples)
    assert batch == {"text": [["waaa", ".", None], ["waab"]]}
    assert frame["text"].tolist() == table["text"].to_pylist() == ["waaa waab"]


@pytest.mark.parametrize("dtype", [object, "string", "category", pd.ArrowDtype(pa.string())])
def test_a_data_frame_comes_back_whole(make: Make, dtype: Any) -> None:
    texts = pd.Series(["WAAA!", None, "", "waab"], dtype=dtype)
    frame = pd.DataFrame({"text": texts, "self": [1, 2, 3, 4]})
    frame.index = pd.Index([5, 5, 7, 9])
    result = make(epsilon=NOISELESS, output_column="out")(frame)
    assert list(result.columns) == ["text", "self", "out"]
    assert result.index.equals(frame.index)
    pd.testing.assert_frame_equal(result[["text", "self"]], frame)
    released = [None if pd.isna(text) else text for text in result["out"]]
    assert released == ["waaa!", None, "", "waab"]
    if dtype == "string":
        assert result["out"].dtype == texts.dtype


def test_a_data_frame_of_tokens_comes_back_whole(make: Make) -> None:
    frame = pd.DataFrame({"text": [["WAAA", "!"], [], None, np.array(["waab", None])]})
    result = make(epsilon=NOISELESS)(frame)
    assert result["text"].tolist() == [["waaa", "!"], [], None, ["waab", None]]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()],
)
@pytest.mark.parametrize("texts", [["WAAA!", None, ""], [None, None, None]])
def test_an_arrow_table_comes_back_whole(
    make: Make, kind: pa.DataType, texts: list[str | None]
) -> None:
    table = pa.table({"text": pa.array(texts, kind), "n": [1, 2, 3]})
    expected = [text and text.lower() for text in texts]
    in_place = make(epsilon=NOISELESS)(table)
    assert in_place.schema.equals(table.schema)
    assert in_place["text"].to_pylist() == expected
    result = make(epsilon=NOISELESS, output_column="out")(table)
    assert result.column_names == ["text", "n", "out"]
    assert result.schema.field("out").type == kind
    assert result["out"].to_pylist() == expected
    assert result["text"].equals(table["text"])


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_an_arrow_table_of_tokens_comes_back_whole(make: Make, kind: pa.DataType) -> None:
    table = pa.table({"text": pa.array([["WAAA", "!"], [], None, [None]], kind)})
    result = make(epsilon=NOISELESS)(table)
    assert result.schema.equals(table.schema)
    assert result["text"].to_pylist() == [["waaa", "!"], [], None, [None]]


def test_a_wrong_column_is_named_beside_those_there_are(make: Make) -> None:
    message = re.escape(
        "column 'text' is not in the data: the columns are 'review', 'label'; name the one to use "
        "with text_column="
    )
    for examples in (
        {"review": "secret", "label": 1},
        {"review": ["secret"], "label": [1]},
        pd.DataFrame({"review": ["secret"], "label": [1]}),
        pa.table({"review": ["secret"], "label": [1]}),
    ):
        with pytest.raises(InvalidValueError, match=message):
            make()(examples)


@pytest.mark.parametrize("examples", ["secret", ["secret"], None, 5])
def test_what_is_no_example_is_refused(make: Make, examples: Any) -> None:
    kind = type(examples).__name__
    with pytest.raises(InvalidTypeError, match=rf"got a {kind}; use privatize\(\)") as raised:
        make()(examples)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [(31415, "int"), (b"31415", "bytes"), ({"x": 31415}, "dict"), ([31415], "int"), (True, "bool")],
)
def test_a_cell_that_is_no_text_is_named_by_place_and_type(
    make: Make, cell: Any, kind: str
) -> None:
    privatizer = make(text_column="review")
    batch = {"review": ["waaa", cell, "waab"], "label": [0, 1, 2]}
    with pytest.raises(
        InvalidTypeError, match=f"^column 'review', row 1 of the batch: .*(a|an) {kind}(;|$)"
    ) as raised:
        privatizer(batch)
    assert "31415" not in str(raised.value)
    assert raised.value.__cause__ is None
    with pytest.raises(InvalidTypeError, match=r"^column 'review', row 1001: "):
        privatizer(batch, [1000, 1001, 1002])


@pytest.mark.parametrize("indices", [0, [0], [0, 1, 2], [[0], [1]], "ab"])
def test_indices_must_fit_a_batch(make: Make, indices: Any) -> None:
    frame = pd.DataFrame({"text": ["waaa", "waab"]})
    with pytest.raises(InvalidTypeError, match="2 row indices beside a batch of 2 rows"):
        make()(frame, indices)


def test_missing_cells_of_pandas_pass_through(make: Make) -> None:
    texts = [float("nan"), np.float64("nan"), pd.NA, None]
    assert make()({"text": texts}) == {"text": [None] * 4}
    assert make()({"text": float("nan"), "label": 1}) == {"text": None}


# privatize


def test_privatize_takes_a_text_or_several(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS)
    assert privatizer.privatize("Waaa, waab!") == "waaa, waab!"
    assert privatizer.privatize(["WAAA", None, ["waab", "."]]) == ["waaa", None, ["waab", "."]]
    assert privatizer.privatize(()) == []
    assert privatizer.privatize(text for text in ["waaa"]) == ["waaa"]
    assert privatizer.privatize(pd.Series(["waaa", None])) == ["waaa", None]
    assert privatizer.privatize(np.array(["waaa"])) == ["waaa"]


@pytest.mark.parametrize("texts", [None, 5, b"secret", {"text": "secret"}])
def test_privatize_refuses_what_is_no_text(make: Make, texts: Any) -> None:
    with pytest.raises(
        InvalidTypeError, match=f"got an? {type(texts).__name__}; rows of"
    ) as raised:
        make().privatize(texts)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("text", ["", " ", "\n", "?!", "\u3000", "\x00"])
def test_texts_without_words_pass_through(make: Make, seed: int | None, text: str) -> None:
    privatizer = make(seed=seed)
    assert privatizer.privatize(text) == text
    assert privatizer.privatize([text, None, [], [text]]) == [text, None, [], [text]]
    assert privatizer.privatize([]) == []
    assert privatizer({"text": []}, []) == {"text": []}


@pytest.mark.parametrize("seed", [None, 3])
def test_a_very_long_row(make: Make, seed: int | None) -> None:
    words = ["waaa", "Unknown", "wabc", "12.5"] * 50_000
    for mechanism, row in (("laplace", " ".join(words)), ("calibrated", words)):
        released = make(mechanism, seed=seed).privatize([row])[0]
        assert released is not None
        tokens = released.split(" ") if isinstance(released, str) else released
        assert len(tokens) == 200_000
        assert len(set(tokens)) > 100


# Options


def test_lookup_is_exact_then_lower_case_then_with_plain_apostrophes() -> None:
    words = ["Polish", "polish", "can't", "us", "US"]
    vectors = np.arange(5.0)[:, None] * 100.0
    privatizer = DxPrivatizer(EmbeddingSpace.from_vectors(words, vectors), "laplace", 100.0)
    texts = ["Polish polish POLISH", "can't Can’t CAN'T", "us US Us"]
    assert privatizer.privatize(texts) == [
        "Polish polish polish",
        "can't can't can't",
        "us US us",
    ]


def test_words_out_of_vocabulary_become_words_of_the_space(make: Make) -> None:
    text = "jo@x.org https://x.y 12.5 @jo #tag 👍🏽 日本 waaa"
    released = make().privatize(text)
    assert len(released.split()) == 8
    assert all(word in make().space for word in released.replace("@", "").replace("#", "").split())


def test_all_words_out_of_vocabulary_are_one_input(make: Make) -> None:
    space = make().space
    nearest = space.words[int(np.argmin(space.distances([-1])[0]))]
    assert make(epsilon=NOISELESS).privatize("Zürich, 42 👍🏽") == f"{nearest}, {nearest} {nearest}"


def test_accents_are_put_aside_where_the_space_lacks_them() -> None:
    """As letter case is; a word that the space has with its accents is another one."""
    space = EmbeddingSpace.from_vectors(["cafe", "naive", "é", "мои", "o"], 9.0 * np.eye(5))
    privatizer = DxPrivatizer(space, "tem", NOISELESS, oov="keep", stopwords=["kept"])
    cells = ["Café CAFÉ cafe\u0301 naïve é мой", "ø ñ"]
    assert privatizer.privatize(cells) == ["cafe cafe cafe naive é мои", "ø ñ"]
    bound = privatizer.guarantee.bound
    assert bound("a café", "a cafe") == 0.0 < bound("a café", "a naïve")


def test_a_possessive_is_the_word_itself_where_the_space_lacks_it() -> None:
    space = EmbeddingSpace.from_vectors(["it", "it's", "soup", "élan", "o"], 9.0 * np.eye(5))
    privatizer = DxPrivatizer(space, "tem", NOISELESS, oov="keep")
    cells = ["It's soup's, SOUP’S élan's sóup's", "lamp's 's"]
    assert privatizer.privatize(cells) == ["it's soup, soup élan soup", "lamp's 's"]
    bound = DxPrivatizer(space, "tem", 2.0).guarantee.bound
    assert bound("a soup's", "a soup") == 0.0 < bound("it's", "it")


@pytest.mark.parametrize("nested", [False, True])
def test_capitalized_words_within_sentences_are_counted(nested: bool) -> None:
    """They are few names of all words, so that a share of all words says little of them."""
    space = EmbeddingSpace.from_vectors(["ohio", "jose", "met", "in"], 50.0 * np.eye(4))
    said = "Met José in Ohio. Ohio met Ohio's, I met I'm OHIO! Zed"
    for epsilon, same in ((200.0, 4), (1e-9, None)):
        path = {"text_column": "m[].content"} if nested else {"text_column": "m"}
        privatizer = DxPrivatizer(space, "tem", epsilon, **path, seed=1)  # type: ignore[arg-type]
        counts: list[WordCounts] = []
        cell = [{"role": "user", "content": said}] * 2 if nested else said
        (released,) = privatizer({"m": [cell], "n": [0]}, [0], on_counts=counts.append)["m"]
        assert counts[0].capitalized == 4 * (1 + nested)
        if same is not None:
            assert counts[0].capitalized_unchanged == same * (1 + nested), released
    # At a sentence's start, "I" and what is no capital do not count; dropped words did not come.
    for oov, shown in (("keep", 1), ("drop", 0)):
        privatizer = DxPrivatizer(space, "tem", 200.0, oov=oov)  # type: ignore[arg-type]
        _, found = privatizer.privatize_counted(["met Zed in 7", ["Ohio", "Zed", ".", "Zed"], None])
        assert (found.capitalized, found.capitalized_unchanged) == (2, 2 * shown)


def test_dropped_and_kept_words(make: Make) -> None:
    cells = ["Waaa Zürich, 42!", ["Waaa", "Zürich", ",", "42", None]]
    drop = make(epsilon=NOISELESS, oov="drop")
    assert drop.privatize(cells) == ["waaa , !", ["waaa", ",", None]]
    keep = make(epsilon=NOISELESS, oov="keep")
    assert keep.privatize(cells) == ["waaa Zürich, 42!", ["waaa", "Zürich", ",", "42", None]]


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
def test_stop_words_are_kept_and_nothing_else(make: Make, oov: str) -> None:
    privatizer = make("tem", 1e-3, stopwords={"WAAA", "isn't"}, oov=oov)
    released = [privatizer.privatize("waaa Waaa, ISN’T wabc!") for _ in range(20)]
    assert all(text.startswith("waaa Waaa, ISN’T ") for text in released)
    assert len({text.rsplit(" ")[-1] for text in released}) > 10


@pytest.mark.parametrize("column", ["text", "review", "chat[].content"])
def test_a_seed_releases_a_text_in_one_way_in_a_data_set_and_alone(make: Make, column: str) -> None:
    privatizer, text = make(seed=5, text_column=column), "waaa waab waac waad"
    name, path, _ = column.partition("[")
    cell: Any = [{"content": text}] if path else text
    (released,) = privatizer({name: [cell]})[name]
    assert (released[0]["content"] if path else released) == privatizer.privatize(text)
    other = make(seed=5, text_column="another")
    assert [other.privatize(text)] != [privatizer.privatize(text)]


def test_case_is_preserved_on_request(make: Make) -> None:
    text = "waaa Waab WAAC iWaad É ÉT 5"
    patterns = ["lower", "title", "upper", "lower", "title", "upper", "lower"]
    lower = make(seed=1).privatize(text)
    expected = [
        {"lower": word, "title": word.capitalize(), "upper": word.upper()}[pattern]
        for word, pattern in zip(lower.split(), patterns, strict=True)
    ]
    assert lower.islower()
    assert make(seed=1, case="preserve").privatize(text).split() == expected


def test_stop_words_of_token_lists(make: Make) -> None:
    with pytest.raises(InvalidValueError, match=r"'well-known'; .* is_split_into_words=True"):
        make(stopwords=["the", "well-known"])
    privatizer = make(epsilon=1e-3, stopwords=["Well-Known"], is_split_into_words=True)
    assert privatizer.privatize([["well-known", "waaa"]])[0][0] == "well-known"


def test_counts(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS, stopwords={"waaa", "keepme"})
    cells = ["Waaa waab, waac", None, ["keepme", "Zürich", ".", "waad"]]
    released, counts = privatizer.privatize_counted(cells)
    assert released[0] == "Waaa waab, waac"
    assert (counts.kept, counts.out_of_vocabulary) == (2, 1)
    assert (counts.unchanged, counts.replaced) == (3, 0)
    _, noisy = make(epsilon=1e-3).privatize_counted(["waaa " * 1000])
    assert noisy.replaced + noisy.unchanged == 1000
    assert noisy.replaced > 900
    total = counts + noisy
    assert (total.kept, total.unchanged) == (2, 3 + noisy.unchanged)


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
def test_every_word_is_counted_once(make: Make, oov: str) -> None:
    text = "waaa Zürich 5 waab the waac"
    _, counts = make(oov=oov, stopwords="english").privatize_counted([text, text.split()])
    assert (counts.kept, counts.out_of_vocabulary) == (2, 4)
    assert counts.replaced + counts.unchanged == 6


# Seeds


def released(privatizer: DxPrivatizer, **call: Any) -> list[str]:
    text = " ".join(privatizer.space.words[:60])
    return str(privatizer({"text": [text]}, **call)["text"][0]).split()


def overlap(a: list[str], b: list[str]) -> float:
    return float(np.mean([x == y for x, y in zip(a, b, strict=True)]))


def test_a_seed_reproduces(make: Make) -> None:
    for mechanism in ("laplace", "mahalanobis", "tem", "calibrated"):
        first, second = make(mechanism, seed=5), make(mechanism, seed=np.int64(5))
        assert released(first) == released(second)
        assert released(first, indices=[3]) == released(second, indices=[3])
        assert overlap(released(first), released(first, indices=[0])) < 0.5
        assert overlap(released(first), released(make(mechanism, seed=6))) < 0.5
        assert overlap(released(make(mechanism)), released(make(mechanism))) < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 2.0 + 1e-9},
        {"mechanism": "mahalanobis", "lam": 0.0},
        {"text_column": "other"},
        {"oov": "drop"},
        {"stopwords": {"never"}},
    ],
)
def test_one_seed_gives_independent_noise_to_another_release(
    make: Make, options: dict[str, Any]
) -> None:
    """With one noise at two scales, two releases of a text would give it away."""
    first, second = make(seed=5), make(seed=5, **options)
    text = " ".join(first.space.words[:60])
    column = second.text_columns[0]
    a = first({"text": [text]}, [0])["text"][0].split()
    b = second({column: [text]}, [0])[column][0].split()
    assert overlap(a, b) < 0.5


def test_one_seed_gives_independent_noise_in_another_space(make: Make) -> None:
    space = make().space
    moved = EmbeddingSpace.from_vectors(space.words, space.vectors * np.float32(1.0 + 1e-6))
    other = DxPrivatizer(moved, "laplace", 2.0, seed=5)
    assert overlap(released(make(seed=5)), released(other)) < 0.5


def test_what_changes_no_draw_changes_no_noise(make: Make) -> None:
    plain = make(seed=5)
    assert released(plain) == released(make(seed=5, case="preserve"))
    out = make(seed=5, output_column="out")
    text = " ".join(plain.space.words[:60])
    assert out({"text": [text]})["out"] == plain({"text": [text]})["text"]


def test_equal_words_of_one_seeded_row_are_drawn_independently(make: Make) -> None:
    for cell in ("waaa " * 100, ["waaa"] * 100):
        words = make(seed=5, epsilon=0.5)({"text": [cell]}, [0])["text"][0]
        assert len(set(words.split() if isinstance(words, str) else words)) > 20


# Pickling


def test_pickling_brings_decisions_and_no_more(make: Make) -> None:
    privatizer = make(
        "calibrated",
        text_column=["a", "b"],
        output_column=["c", "d"],
        stopwords="english",
        oov="drop",
        case="preserve",
        seed=12,
    )
    before = pickle.dumps(privatizer)
    privatizer({"a": ["waaa waab"], "b": ["waac waad"]})
    str(privatizer.guarantee)
    assert pickle.dumps(privatizer) == before, "use must not change the fingerprint"
    assert len(before) < 10_000
    copy = pickle.loads(before)
    batch = {"a": ["waaa waab", "x"], "b": ["waac The", "y z"]}
    assert copy(batch, [0, 1]) == privatizer(batch, [0, 1])
    assert copy.guarantee == privatizer.guarantee
    assert repr(copy) == repr(privatizer)


def test_unseeded_copies_do_not_share_noise(make: Make) -> None:
    privatizer = make()
    copies = [pickle.loads(pickle.dumps(privatizer)) for _ in range(2)]
    draws = [released(each) for each in (privatizer, *copies)]
    assert max(overlap(draws[i], draws[j]) for i, j in ((0, 1), (0, 2), (1, 2))) < 0.5


# The guarantee


def assumption(privatizer: DxPrivatizer, part: str) -> bool:
    return any(part in sentence for sentence in privatizer.guarantee.assumptions)


@pytest.mark.parametrize(
    ("options", "sentence", "local"),
    [
        ({}, "Words out of vocabulary are replaced too", True),
        ({"oov": "drop"}, "Words out of vocabulary are removed", False),
        ({"oov": "keep"}, "HOLE: words out of vocabulary are released unchanged", False),
        ({"stopwords": {"a", "b", "A"}}, "2 stop words", False),
        ({"case": "preserve"}, "the letter case of every word", False),
        ({"seed": 1}, "only while the seed stays secret", True),
    ],
)
def test_the_guarantee_names_every_option(
    make: Make, options: dict[str, Any], sentence: str, local: bool
) -> None:
    guarantee = make(**options).guarantee
    assert assumption(make(**options), sentence)
    assert sentence in str(guarantee)
    assert not options or not assumption(make(), sentence)
    assert assumption(make(**options), "the number of words and what stands between them")
    assert math.isfinite(guarantee.ldp_epsilon) == local
    assert (guarantee.to_dict()["ldp_epsilon"] is None) == (not local)
    assert guarantee.epsilon == 2.0


@pytest.mark.parametrize("mechanism", ["laplace", "mahalanobis", "tem", "calibrated"])
def test_the_local_level_bounds_every_pair_of_words(make: Make, mechanism: str) -> None:
    guarantee = make(mechanism).guarantee
    words = [*make().space.words[::29], "unknown", "42"]
    bounds = [guarantee.bound(a, b) for a in words for b in words]
    assert 0.3 * guarantee.ldp_epsilon < max(bounds) <= guarantee.ldp_epsilon * (1 + 1e-9)


def test_the_bound_of_equal_texts_is_zero(make: Make) -> None:
    for text in ("", "waaa, waab!", "Zürich 42", " x  y\n", "e\u0301"):
        for options in ({}, {"oov": "drop"}, {"oov": "keep"}, {"case": "preserve"}):
            assert make(**options).guarantee.bound(text, text) == 0.0
    assert make().guarantee.bound("Caf\u00e9 waaa", "Cafe\u0301 waaa") == 0.0


@pytest.mark.parametrize("mechanism", ["laplace", "mahalanobis", "tem", "calibrated"])
def test_the_bound_adds_up_over_words(make: Make, mechanism: str) -> None:
    privatizer = make(mechanism)
    bound, metric = privatizer.guarantee.bound, privatizer.mechanism.pair_distances
    pairs = [("waaa", "waab"), ("wabc", "wabc"), ("waad", "unknown")]
    ids = np.array([privatizer.space.ids(pair) for pair in pairs])
    expected = privatizer.guarantee.epsilon * metric(ids[:, 0], ids[:, 1])
    assert [bound(a, b) for a, b in pairs] == pytest.approx(list(expected))
    texts = ["{}, {} and {}!".format(*side) for side in zip(*pairs, strict=True)]
    assert bound(*texts) == pytest.approx(expected.sum())
    assert bound(*reversed(texts)) == pytest.approx(expected.sum())


def test_the_bound_between_words_out_of_vocabulary(make: Make) -> None:
    assert make().guarantee.bound("Zürich 42", "jo@x.org 👍🏽") == 0.0
    assert make(oov="keep").guarantee.bound("Zürich", "Berlin") == math.inf
    assert make(oov="keep").guarantee.bound("Zürich", "waaa") == math.inf
    drop = make(oov="drop").guarantee
    assert drop.bound("waaa Zürich", "waaa Berlin") == 0.0
    assert drop.bound("waaa Zürich", "waaa waab") == math.inf


def test_the_bound_is_infinite_where_something_shows(make: Make) -> None:
    bound = make().guarantee.bound
    assert bound("waaa", "waaa!") == math.inf
    assert bound("waaa waab", "waaa  waab") == math.inf
    assert bound("waaa", "waaa waab") == math.inf
    assert bound("waaa", "") == math.inf
    assert bound("waaa", "WAAA") == 0.0
    kept = make(stopwords={"the"}).guarantee.bound
    assert kept("the waaa", "a waaa") == math.inf
    assert kept("the waaa", "The waaa") == math.inf
    assert math.isfinite(kept("the waaa", "the waab"))
    cased = make(case="preserve").guarantee.bound
    assert cased("waaa", "Waaa") == math.inf
    assert cased("WAAA", "Waaa") == math.inf
    assert math.isfinite(cased("Waaa", "Waab"))


def test_the_bound_holds_for_the_law_itself(make: Make) -> None:
    privatizer = make("tem", 1.0)
    ids = privatizer.space.ids(["waaa", "wabc", "unknown"])
    logs = np.log(privatizer.mechanism.probabilities(ids))  # type: ignore[attr-defined]
    for i, a in enumerate(["waaa", "wabc", "unknown"]):
        for j, b in enumerate(["waaa", "wabc", "unknown"]):
            assert np.abs(logs[i] - logs[j]).max() <= privatizer.guarantee.bound(a, b) + 1e-12


def test_a_hyperbolic_space(poincare_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(poincare_space, "hyperbolic", 8.0)
    text = "waaa Zürich, waab"
    assert len(privatizer.privatize(text).split()) == 3
    assert privatizer.guarantee.bound("waaa", "Zürich") == pytest.approx(
        8.0 * poincare_space.pair_distances([0], [-1])[0]
    )
    with pytest.raises(InvalidValueError, match=r"\(n-1\)/scale = 6"):
        DxPrivatizer(poincare_space, "hyperbolic", 6.0)

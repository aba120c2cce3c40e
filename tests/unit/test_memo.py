"""Memoized noise: what repeats itself, what does not, and what the guarantee says of it."""

import itertools
import math
import pickle
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hf_dxprivacy.errors import DxPrivacyError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.slots import ContentWordSelector, TagColumnSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

Make = Callable[..., DxPrivatizer]

KEY = bytes(range(100, 132))
TEXT = " ".join(f"wa{a}{b}" for a in "abcdef" for b in "abcdefghij")
MECHANISMS = ["laplace", "mahalanobis", "tem", "calibrated"]


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(
        mechanism: Any = "laplace", epsilon: float = 1.0, memoize: str = "row", **options: Any
    ) -> DxPrivatizer:
        options = {"key": KEY, "memoize": memoize, **options}
        if memoize == "user":
            options = {"user_column": "who", **options}
        return DxPrivatizer(euclidean_space, mechanism, epsilon, **options)

    return make


def same(a: str, b: str) -> float:
    """Return how many words two releases have in common, place by place."""
    return float(np.mean([x == y for x, y in zip(a.split(), b.split(), strict=True)]))


def release(privatizer: DxPrivatizer, text: str = TEXT, who: object = "a") -> str:
    return str(privatizer({"text": [text], "who": [who]})["text"][0])


# Keys


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"key": None}, InvalidValueError, r"needs key=.* secrets\.token_bytes\(32\)"),
        ({"key": KEY[:31]}, InvalidValueError, "of 32 bytes or more, got one of 31"),
        ({"key": b""}, InvalidValueError, "got one of 0"),
        ({"key": bytes(64)}, InvalidValueError, "one of 1 different bytes, which can be guessed"),
        ({"key": b"secret " * 9}, InvalidValueError, "one of 6 different bytes"),
        ({"key": "x" * 40}, InvalidTypeError, "bytes or the pathlib.Path of a file, got a str"),
        ({"key": bytearray(KEY)}, InvalidTypeError, "got a bytearray"),
        ({"memoize": "word"}, InvalidValueError, "one of 'row', 'user'; got memoize='word'"),
        ({"memoize": True}, InvalidValueError, "got memoize=True"),
        ({"memoize": None}, InvalidValueError, 'key= is for memoize="row" or "user"'),
        ({"seed": 1}, InvalidValueError, "seed and memoize both say where the noise is from"),
        ({"user_column": "who"}, InvalidValueError, "need user_column=.* nothing else does"),
        ({"memoize": "user", "user_column": None}, InvalidValueError, "need user_column="),
        ({"memoize": "user", "user_column": 5}, InvalidTypeError, "user_column to be a column"),
        ({"memoize": "user", "user_column": ["a", "b"]}, InvalidValueError, "name 1 different"),
    ],
)
def test_arguments_are_checked(
    make: Make, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_a_key_may_be_in_a_file(make: Make, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    assert release(make(key=tmp_path / "key")) == release(make())
    with pytest.raises(InvalidValueError, match=r"cannot read the key: .*No such file"):
        make(key=tmp_path / "missing")


@pytest.mark.parametrize("key", [b"hunter2", b"passpass" * 9, "correct horse battery staple"])
def test_no_message_and_no_text_shows_the_key(make: Make, key: Any, tmp_path: Path) -> None:
    with pytest.raises(DxPrivacyError, match="token_bytes") as caught:
        make(key=key)
    assert (key if isinstance(key, str) else key.decode())[:8] not in str(caught.value)
    privatizer = make(key=KEY)
    secret = privatizer._noise.secret  # type: ignore[union-attr]
    shown = f"{privatizer!r} {privatizer.guarantee} {vars(privatizer)}"
    for trace in (str(secret), hex(secret)[2:], KEY.hex(), repr(KEY)[2:-1]):
        assert trace not in shown


def test_no_key_is_saved(
    make: Make,
    euclidean_space: EmbeddingSpace,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    space = EmbeddingSpace.from_pretrained(tmp_path / "space")
    options: dict[str, Any] = {"memoize": "user", "user_column": "who", "key": KEY}
    privatizer = DxPrivatizer(space, "laplace", 1.0, **options)
    privatizer.save_pretrained(tmp_path / "privatizer")
    assert "not stored: memoize and its key; without them" in caplog.text
    for path in (tmp_path / "privatizer").iterdir():
        content = path.read_bytes()
        assert b"emoiz" not in content, f"{path.name} says of a key that is not there"
        assert KEY not in content
    loaded = DxPrivatizer.from_pretrained(tmp_path / "privatizer")
    assert loaded.memoize is None
    again = DxPrivatizer.from_pretrained(tmp_path / "privatizer", **options)
    assert release(again) == release(privatizer) != release(loaded)


# Rows


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_words_always_become_the_same_words(make: Make, mechanism: str) -> None:
    privatizer = make(mechanism)
    first = release(privatizer)
    assert same(first, TEXT) < 0.5
    batch = {"text": ["waaa", TEXT, None, "", TEXT]}
    assert privatizer(batch)["text"][1::3] == [first, first]
    assert privatizer(batch, [4, 3, 2, 1, 0])["text"][1::3] == [first, first]
    assert privatizer.privatize(TEXT) == first
    assert pickle.loads(pickle.dumps(privatizer)).privatize(TEXT) == first
    assert make(mechanism).privatize(TEXT) == first
    tokens = privatizer({"text": [TEXT.split()]}, [0])["text"]
    assert privatizer({"text": [TEXT.upper().split()]})["text"] == tokens
    assert privatizer.privatize(TEXT.upper()) == first, "letter case does not show"


def test_equal_words_of_a_row_are_drawn_independently(make: Make) -> None:
    assert len(set(make(epsilon=0.5).privatize("waaa " * 100).split())) > 20


def test_rows_that_differ_in_what_shows_have_independent_noise(make: Make) -> None:
    """Otherwise rows that differ in all but their drawn words would show that these are equal."""
    privatizer = make()
    first = release(privatizer)
    assert same(first, release(privatizer, f"{TEXT}!").rstrip("!")) < 0.5
    assert same(first, " ".join(privatizer.privatize([TEXT.split()])[0])) < 0.5
    kept = make(stopwords={"the", "a"})
    the, a = (kept.privatize(f"{word} {TEXT}").partition(" ")[2] for word in ("the", "a"))
    assert same(the, a) < 0.5
    assert release(make(case="preserve")) != release(make(case="preserve"), TEXT.upper()).lower()


def test_slots_in_other_phrases_have_independent_noise(euclidean_space: EmbeddingSpace) -> None:
    tags = {"selector": TagColumnSelector("tags"), "memoize": "row", "key": KEY}
    privatizer = SlotPrivatizer(euclidean_space, "laplace", 0.01, **tags)
    words = list(euclidean_space.words[:60])
    batch = {
        "text": [[*phrase, word] for word in words for phrase in (["patient", "has"], ["treats"])],
        "tags": [["O"] * size + ["B"] for _ in words for size in (2, 1)],
    }
    released = [cell[-1] for cell in privatizer(batch)["text"]]
    assert released == [cell[-1] for cell in privatizer(batch)["text"]]
    assert np.mean([x == y for x, y in zip(released[::2], released[1::2], strict=True)]) < 0.5


def test_one_release_whatever_the_column_and_the_options_that_draw_nothing(make: Make) -> None:
    first = release(make())
    assert release(make(oov="drop")) == first
    assert release(make(stopwords={"never"})) == first
    other = make(text_column="b", output_column="c")
    assert other({"b": [TEXT], "n": 1}, [0])["c"] == [first]
    assert len(set(make().privatize(["Oslo waaa", "Rome waaa"]))) == 1, "both out of vocabulary"


@pytest.mark.parametrize(
    "options",
    [
        {"key": KEY + b"x"},
        {"key": secrets.token_bytes(32)},
        {"epsilon": 1.0 + 1e-9},
        {"mechanism": "mahalanobis", "lam": 0.0},
    ],
    ids=["longer key", "another key", "epsilon", "mechanism"],
)
@pytest.mark.parametrize("memoize", ["row", "user"])
def test_anything_else_has_independent_noise(
    make: Make, options: dict[str, Any], memoize: str
) -> None:
    assert same(release(make(memoize=memoize)), release(make(memoize=memoize, **options))) < 0.5


def test_rows_and_users_have_independent_noise(make: Make) -> None:
    assert same(release(make()), release(make(memoize="user"))) < 0.5


def test_a_row_with_another_word_has_independent_noise(make: Make) -> None:
    privatizer = make()
    assert same(release(privatizer), release(privatizer, f"{TEXT} waaa").rpartition(" ")[0]) < 0.5
    assert same(release(privatizer), release(make(), TEXT[5:] + " wabc")) < 0.5


def test_a_seed_of_the_value_of_the_key_has_independent_noise(make: Make) -> None:
    for order in ("little", "big"):
        seed = int.from_bytes(KEY, order)  # type: ignore[arg-type]
        seeded = DxPrivatizer(make().space, "laplace", 1.0, seed=seed)
        assert same(seeded.privatize(TEXT), release(make())) < 0.5


def test_slots_that_are_others_are_another_release(euclidean_space: EmbeddingSpace) -> None:
    first, again, second = (
        SlotPrivatizer(
            *(euclidean_space, "laplace", 1.0),
            selector=ContentWordSelector({kept}),
            memoize="row",
            key=KEY,
        ).privatize(TEXT)
        for kept in ("waaa", "waaa", "waab")
    )
    assert first == again
    assert same(first.split(" ", 2)[2], second.split(" ", 2)[2]) < 0.5


# Users


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_word_of_a_user_always_becomes_the_same_word(make: Make, mechanism: str) -> None:
    privatizer = make(mechanism, memoize="user", text_column=["text", "title"])
    words = TEXT.split()
    first = privatizer({"text": TEXT, "title": None, "who": "a"})["text"].split()
    assert same(" ".join(first), TEXT) < 0.5
    becomes = dict(zip(words, first, strict=True))
    mixed = [words[i] for i in (5, 3, 5, 5, 17, 3, 0)]
    expected = " ".join(becomes[word] for word in mixed)
    batch = {
        "text": [None, " ".join(mixed).upper(), "waaa"],
        "title": [mixed, None, " ".join(mixed)],
        "who": ["a", "a", "b"],
    }
    for copy in (privatizer, pickle.loads(pickle.dumps(privatizer))):
        result = copy(batch, [3, 4, 5])
        assert result["text"][1] == expected
        assert result["title"][0] == expected.split()
        assert same(result["title"][2], expected) < 0.6, "another user"


def test_all_words_of_a_user_that_the_space_lacks_become_one_word(make: Make) -> None:
    assert len(set(release(make(memoize="user"), "Oslo Rome 42").split())) == 1


def test_users_are_known_by_their_name_in_every_format(make: Make) -> None:
    privatizer = make(memoize="user")
    first = release(privatizer, who="7")
    assert release(privatizer, who=7) == release(privatizer, who=np.int64(7)) == first
    assert release(privatizer, who=np.str_("7")) == first
    columns = {"text": [TEXT, TEXT], "who": [7, 8]}
    frame = privatizer(pd.DataFrame(columns))
    table = privatizer(pa.table(columns))
    assert frame["text"].tolist() == table["text"].to_pylist()
    assert frame["text"][0] == first
    assert frame["who"].tolist() == table["who"].to_pylist() == [7, 8]
    assert same(first, frame["text"][1]) < 0.5


def test_a_row_without_a_user_is_refused(make: Make) -> None:
    privatizer = make(memoize="user")
    for who in (None, float("nan"), pd.NA):
        with pytest.raises(InvalidValueError, match="column 'who', row 1 of the batch: there is"):
            privatizer({"text": ["waaa", "waab"], "who": ["a", who]})
    with pytest.raises(InvalidValueError, match=r"'who' is not in the data.* with user_column="):
        privatizer({"text": ["waaa"]})
    with pytest.raises(InvalidValueError, match="user_column='who' is set, so call"):
        privatizer.privatize(["waaa"])
    assert privatizer({"text": [], "who": []}) == {"text": []}


def test_users_of_slots(euclidean_space: EmbeddingSpace) -> None:
    privatizer = SlotPrivatizer(
        *(euclidean_space, "laplace", 1.0),
        selector=~ContentWordSelector({"waab", "waac"}),
        memoize="user",
        user_column="who",
        key=KEY,
        mask_column="mask",
    )
    batch = {"text": ["waaa waab, waac", "waac waab"], "who": [1, 1]}
    first, second = privatizer(batch)["text"]
    assert first.split()[0] == "waaa"
    assert first.replace(",", "").split()[1:] == second.split()[::-1]
    assert privatizer(batch)["mask"] == [[False, True, True], [True, True]]


# The guarantee


def test_the_guarantee_says_what_repeats_and_what_shows(make: Make) -> None:
    for memoize, parts in (
        ("row", ("equal rows become equal rows", "Not covered: which rows are equal")),
        ("user", ("a word of a user becomes the same word", "which words of a user are equal")),
    ):
        guarantee = make(memoize=memoize).guarantee
        for part in (*parts, "only while the key stays secret", "costs no more than the first"):
            assert part in str(guarantee)
        assert math.isfinite(guarantee.ldp_epsilon) == (memoize == "row")


def test_bounds_of_rows_add_up_over_words(make: Make) -> None:
    bare = DxPrivatizer(make().space, "laplace", 1.0).guarantee.bound
    bound = make().guarantee.bound
    for a, b in (("waaa waaa", "waab waac"), ("waaa, Oslo", "waab, waac")):
        assert bound(a, b) == pytest.approx(bare(a, b))


def test_bounds_of_users_add_up_over_different_words(make: Make) -> None:
    one = DxPrivatizer(make().space, "laplace", 1.0).guarantee.bound
    bound = make(memoize="user").guarantee.bound
    assert bound("waaa waaa waaa", "waab waab waab") == pytest.approx(one("waaa", "waab"))
    assert bound("waaa waab waaa", "waac waad waac") == pytest.approx(
        one("waaa", "waac") + one("waab", "waad")
    )
    assert bound("waaa waab", "waab waaa") == pytest.approx(2 * one("waaa", "waab"))
    assert bound("Oslo Rome waaa", "42 42 waaa") == 0.0, "out of vocabulary all are one word"
    for other in ("waab waac waaa", "waaa waaa waaa", "waaa waab waab", "Oslo waab waac"):
        assert bound("waaa waab waaa", other) == math.inf
        assert bound(other, "waaa waab waaa") == math.inf
    assert bound("waaa waaa", "waaa waaa!") == math.inf
    assert bound("", "") == 0.0


def _law_of_user(probabilities: np.ndarray, ids: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Return how likely each release is when every different word is drawn once."""
    law: dict[tuple[int, ...], float] = {}
    different = list(dict.fromkeys(ids))
    for outputs in itertools.product(range(probabilities.shape[1]), repeat=len(different)):
        becomes = dict(zip(different, outputs, strict=True))
        chance = math.prod(probabilities[word, y] for word, y in becomes.items())
        law[tuple(becomes[word] for word in ids)] = chance
    return law


def test_the_bound_of_users_is_exactly_where_the_law_is_bounded() -> None:
    """All pairs of texts of three words over three words, all releases."""
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    space = EmbeddingSpace.from_vectors(["waaa", "waab", "waac"], vectors)
    privatizer = DxPrivatizer(space, "tem", 1.0, memoize="user", user_column="who", key=KEY)
    probabilities = privatizer.mechanism.probabilities(range(3))  # type: ignore[attr-defined]
    texts = list(itertools.product(range(3), repeat=3))
    for a, b in itertools.product(texts, repeat=2):
        bound = privatizer.guarantee.bound(*(" ".join(space.words[i] for i in t) for t in (a, b)))
        first, second = _law_of_user(probabilities, a), _law_of_user(probabilities, b)
        largest = max(
            math.log(chance / second[y]) if y in second else math.inf for y, chance in first.items()
        )
        assert largest <= bound + 1e-9
        assert math.isinf(largest) <= math.isinf(bound)
        if math.isinf(bound):
            assert first.keys() != second.keys()

"""SlotPrivatizer: only slots change, and what it says, shows and stores."""

import json
import logging
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from hf_dxprivacy.errors import (
    ArtifactError,
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
)
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import generator_from_key, keyed_generator
from hf_dxprivacy.slots import (
    ContentWordSelector,
    LowTransitionSelector,
    Selector,
    ShareSelector,
    SpanSelector,
    TagColumnSelector,
    low_transition,
)
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

Make = Callable[..., SlotPrivatizer]

# At so small an ε a word comes out unchanged once in five hundred times; at so large a one, always.
NOISY, NOISELESS = 1e-6, 1e6
# Two slots, an apostrophe, two words out of vocabulary, one of them a slot.
TEXT = "Waaa, waab—waac's  zork; Quux (waad)!"
SLOTS = {"waab", "Quux", "waad"}
TOKENS = ["Waaa", ",", "waab", "zork", None, "waad"]
TAGS = ["O", "O", "B-x", "O", "O", "B-x"]


@pytest.fixture(scope="module")
def make(euclidean_space: EmbeddingSpace) -> Make:
    def make(
        mechanism: Any = "laplace",
        epsilon: float = 2.0,
        selector: Selector | None = None,
        **options: Any,
    ) -> SlotPrivatizer:
        chosen = ~ContentWordSelector(SLOTS) if selector is None else selector
        return SlotPrivatizer(euclidean_space, mechanism, epsilon, selector=chosen, **options)

    return make


def words_of(text: str) -> list[str]:
    return RowReader().read_text(text).words


# What changes


def test_only_slots_change_and_the_carrier_stays_byte_for_byte(make: Make) -> None:
    releases = make(epsilon=NOISY).privatize([TEXT] * 300)
    old = RowReader().read_text(TEXT)
    changed = np.zeros(len(old), dtype=int)
    for release in releases:
        new = RowReader().read_text(str(release))
        assert new.separators == old.separators
        changed += [a != b for a, b in zip(old, new, strict=True)]
    assert dict(zip(old, (changed > 290).tolist(), strict=True)) == {
        "Waaa": False, "waab": True, "waac's": False, "zork": False, "Quux": True, "waad": True,
    }  # fmt: skip
    assert (changed[[0, 2, 3]] == 0).all()


def test_token_lists_keep_their_length(make: Make) -> None:
    privatizer = make(epsilon=NOISY, selector=TagColumnSelector("tags"), text_column="tokens")
    for _ in range(50):
        released = privatizer({"tokens": [TOKENS, None], "tags": [TAGS, None]})["tokens"]
        assert released[1] is None
        same = [a == b for a, b in zip(released[0], TOKENS, strict=True)]
        assert same[:2] == [True, True]
        assert same[3:5] == [True, True]


@pytest.mark.parametrize("mechanism", ["laplace", "tem", "calibrated"])
def test_slots_have_exactly_the_law_of_the_mechanism(
    make: Make, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """With one noise, the slots are what the mechanism makes of their words alone."""
    key = bytes(range(32))
    monkeypatch.setattr(
        "hf_dxprivacy.randomness.process_generator", lambda: generator_from_key(key)
    )
    texts = [TEXT, "waae waab", "waae", "waad waab"] * 20
    privatizer = make(mechanism, 2.0)
    released = [str(text) for text in privatizer.privatize(texts)]
    slots = [word for text in texts for word in words_of(text) if word in SLOTS]
    expected = create_mechanism(mechanism, euclidean_space, 2.0).sample(
        euclidean_space.ids(slots), generator_from_key(key)
    )
    found = [
        new
        for old_text, new_text in zip(texts, released, strict=True)
        for old, new in zip(words_of(old_text), words_of(new_text), strict=True)
        if old in SLOTS
    ]
    assert found == [euclidean_space.words[row] for row in expected]


def test_all_words_are_slots_of_a_selector_that_selects_all(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = make(selector=ContentWordSelector(set()))
    key = bytes(32)
    monkeypatch.setattr(
        "hf_dxprivacy.randomness.process_generator", lambda: generator_from_key(key)
    )
    plain = DxPrivatizer(every.space, "laplace", 2.0)
    assert every.privatize([TEXT] * 9) == plain.privatize([TEXT] * 9)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "Waaa, waab—waac's  zork; {} (waad)!"),
        ({"oov": "keep"}, "Waaa, waab—waac's  zork; Quux (waad)!"),
        ({"oov": "drop"}, "Waaa, waab—waac's  zork;  (waad)!"),
        ({"case": "preserve"}, "Waaa, waab—waac's  zork; {} (waad)!"),
        ({"stopwords": {"quux"}}, "Waaa, waab—waac's  zork; Quux (waad)!"),
    ],
)
def test_options_apply_to_slots_only(make: Make, options: Any, expected: str) -> None:
    released = make(epsilon=NOISELESS, **options).privatize(TEXT)
    centroid = words_of(released)[4] if "{}" in expected else ""
    assert released == expected.format(centroid)
    assert centroid[:1].isupper() == (options.get("case") == "preserve" and bool(centroid))


# Masks and spans


def shown(privatizer: SlotPrivatizer, **row: Any) -> tuple[Any, Any, Any]:
    result = privatizer(row)
    return tuple(result[name] for name in ("text", "mask", "spans"))  # type: ignore[return-value]


@pytest.mark.parametrize("oov", ["centroid", "drop", "keep"])
def test_masks_and_spans_are_those_of_the_released_text(make: Make, oov: str) -> None:
    privatizer = make(epsilon=NOISY, oov=oov, mask_column="mask", spans_column="spans")
    for _ in range(20):
        text, mask, spans = shown(privatizer, text=TEXT, id=1)
        words = words_of(text)
        assert len(mask) == len(words)
        dropped = oov == "drop"
        assert mask == [False, True, False, False, True, True][: 5 if dropped else None]
        assert [text[slice(*span)] for span in spans] == [
            words[1],
            words[-1] if dropped else f"{words[-2]} ({words[-1]}",
        ]


@pytest.mark.parametrize("oov", ["centroid", "drop"])
def test_masks_and_spans_of_token_lists(make: Make, oov: str) -> None:
    privatizer = make(
        oov=oov, selector=~ContentWordSelector(SLOTS), mask_column="mask", spans_column="spans"
    )
    tokens = ["Quux", "waaa", ",", "waab", "!", "waad", None]
    text, mask, spans = shown(privatizer, text=tokens, id=1)
    if oov == "drop":
        assert (len(text), mask) == (6, [False, False, True, False, True, False])
        assert spans == [[2, 5]]
    else:
        assert (len(text), mask) == (7, [True, False, False, True, False, True, False])
        assert spans == [[0, 1], [3, 6]]


def test_missing_and_empty_rows(make: Make) -> None:
    privatizer = make(mask_column="mask", spans_column="spans")
    for row in (None, math.nan):
        assert shown(privatizer, text=row, id=1) == (None, None, None)
    assert shown(privatizer, text="", id=1) == ("", [], [])
    assert shown(privatizer, text=[], id=1) == ([], [], [])
    assert privatizer({"text": []}) == {"text": [], "mask": [], "spans": []}


def test_several_columns(make: Make) -> None:
    privatizer = make(
        epsilon=NOISELESS,
        text_column=["a", "b"],
        output_column=["x", "y"],
        mask_column=["m", "n"],
        selector=TagColumnSelector("tags"),
    )
    row = {"a": ["WAAA", "WAAB"], "b": ["WAAC", "."], "tags": ["O", "B-x"], "id": 1}
    assert privatizer(row) == {
        "x": ["WAAA", "waab"], "m": [False, True], "y": ["WAAC", "."], "n": [False, False],
    }  # fmt: skip


def test_tables_come_back_with_typed_columns(make: Make) -> None:
    privatizer = make(epsilon=NOISELESS, mask_column="mask", spans_column="spans")
    for texts in (["WAAA waab", None], [None, None]):
        result = privatizer(pa.table({"text": pa.array(texts, pa.string()), "n": [1, 2]}))
        assert result.column_names == ["text", "n", "mask", "spans"]
        assert result.schema.field("mask").type == pa.list_(pa.bool_())
        assert result.schema.field("spans").type == pa.list_(pa.list_(pa.int64()))
        assert result.column("mask").to_pylist() == [texts[0] and [False, True], None]
        frame = privatizer(pd.DataFrame({"text": texts}, dtype=object))
        assert frame["spans"].tolist() == [texts[0] and [[5, 9]], None]


# Noise


def test_seeded_noise_belongs_to_the_words_and_the_mask(make: Make) -> None:
    text = " ".join(f"wa{a}{b}" for a in "abcdef" for b in "abcdefgh")
    first = ContentWordSelector({"waaa"})
    second = ContentWordSelector({"waab"})
    releases = [
        words_of(make(selector=selector, seed=5).privatize(text))
        for selector in (first, first, second)
    ]
    assert releases[0] == releases[1]
    same = [a == b for a, b in zip(releases[0][2:], releases[2][2:], strict=True)]
    assert np.mean(same) < 0.5
    everything = words_of(DxPrivatizer(make().space, "laplace", 2.0, seed=5).privatize(text))
    assert np.mean([a == b for a, b in zip(everything, releases[0], strict=True)]) < 0.5


# The guarantee


def test_the_guarantee_says_what_is_released(make: Make) -> None:
    guarantee = make(selector=TagColumnSelector("tags") | ContentWordSelector()).guarantee
    assert guarantee.ldp_epsilon == math.inf
    assert guarantee.epsilon == 2.0
    said = " ".join(guarantee.assumptions)
    for part in ("same other words and the same mask", "column 'tags'", "176 stop words"):
        assert said.count(part) == 1


def test_the_budget_of_a_fitted_selector_is_stated(make: Make) -> None:
    assert "ε_g = 50" in " ".join(make(selector=fitted()).guarantee.assumptions)


def fitted() -> LowTransitionSelector:
    return LowTransitionSelector.fit(
        ["play waab on waac"] * 3000, epsilon=50.0, alphabet=["play", "on"], l_max=4, n_max=2
    )


def test_bounds_of_texts(make: Make, euclidean_space: EmbeddingSpace) -> None:
    bound = make(selector=~ContentWordSelector({"waab", "waac", "quux"})).guarantee.bound
    distance = euclidean_space.distance
    assert bound("waaa waab!", "waaa waac!") == pytest.approx(2 * distance("waab", "waac"))
    both = 2 * (distance("waab", "waac") + distance("waac", "waab"))
    assert bound("waab waaa waac", "waac waaa waab") == pytest.approx(both)
    assert bound("x waab", "x waab") == 0.0
    for other in ("waad waac!", "Waaa waac!", "waaa waac.", "waaa waad!", "waac!", "waaa  waac!"):
        assert bound("waaa waab!", other) == math.inf
    assert math.isfinite(bound("x quux", "x waab"))


def test_a_difference_between_gaps_shows(make: Make) -> None:
    bound = make(selector=ContentWordSelector(set())).guarantee.bound
    assert bound("waaa,  waab waac", "waaa, waab  waac") == math.inf
    assert bound(["waaa", ",", "waab"], ["waaa", "waab", ","]) == math.inf
    assert bound(["waaa"], "waaa") == math.inf
    keep = make(selector=ContentWordSelector(set()), oov="keep").guarantee.bound
    assert keep("waaa zork", "waab zork") < math.inf
    assert keep("waaa zork", "waaa quux") == math.inf


def test_letter_case_shows_if_it_is_preserved(make: Make) -> None:
    words = ~ContentWordSelector({"waab", "waac"})
    assert make(selector=words).guarantee.bound("Waab", "waac") < math.inf
    preserve = make(selector=words, case="preserve").guarantee.bound
    assert preserve("Waab", "waac") == math.inf
    assert preserve("Waab", "Waac") < math.inf


def test_bounds_of_rows(make: Make, euclidean_space: EmbeddingSpace) -> None:
    bound = make(selector=TagColumnSelector("t"), text_column="tokens").guarantee.bound
    one = {"tokens": ["waaa", ".", "waab"], "t": ["O", "O", "B-x"]}
    other = {"tokens": ["waaa", ".", "waac"], "t": ["O", "O", "B-y"]}
    assert bound(one, other) == pytest.approx(2 * euclidean_space.distance("waab", "waac"))
    assert bound(one, other | {"t": ["B-x", "O", "B-x"]}) == math.inf
    assert bound(one, other | {"tokens": ["waad", ".", "waac"]}) == math.inf
    with pytest.raises(InvalidValueError, match="column 't', and there is none"):
        bound(["waaa"], ["waab"])
    with pytest.raises(InvalidTypeError, match="got a missing one"):
        bound({"tokens": None, "t": None}, one)


def test_the_bound_holds_for_the_probabilities_of_releases(
    make: Make, euclidean_space: EmbeddingSpace
) -> None:
    """Over all outputs of a text with two slots, from the exact law of the mechanism."""
    mechanism: Any = create_mechanism("tem", euclidean_space, 2.0)
    pairs = [("waab", "waac"), ("waad", "waae")]
    words = {word for pair in pairs for word in pair}
    guarantee = make("tem", selector=~ContentWordSelector(words)).guarantee

    def log_law(word: str) -> NDArray[np.float64]:
        return np.log(mechanism.probabilities(euclidean_space.ids([word]))[0])  # type: ignore[no-any-return]

    worst = sum(np.abs(log_law(a) - log_law(b)).max() for a, b in pairs)
    (a, b), (c, d) = pairs
    assert 0 < worst <= guarantee.bound(f"x {a} {c}", f"x {b} {d}") * (1 + 1e-9)


def fitted_on(mine: str, key: int, monkeypatch: pytest.MonkeyPatch) -> LowTransitionSelector:
    """A selector fitted on 43 texts of others and on `mine`, at ε_g = 8."""
    monkeypatch.setattr(low_transition, "process_generator", lambda: keyed_generator(key))
    texts = ["waaa"] * 40 + ["waab"] * 3 + [mine]
    words, sizes = ["waaa", "waab", "waac", "waad"], {"n_max": 2, "l_max": 2, "min_count": 3}
    return LowTransitionSelector.fit(texts, epsilon=8.0, alphabet=words, **sizes)


def test_a_bound_covers_what_a_word_does_to_the_masks_of_others(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two data sets that differ in one word of one text: is the text "waab" of another a slot?

    ε·d says that nobody can tell the two words apart; the mask of the other text says more.
    """
    runs = range(600)
    shares = [
        np.mean([fitted_on(mine, key, monkeypatch).masks([["waab"]])[0] for key in runs])
        for mine in ("waab", "waac")
    ]
    shift = math.log(shares[1] / shares[0])
    selector = fitted_on("waac", 1, monkeypatch)
    guarantee = SlotPrivatizer(euclidean_space, "laplace", 0.002, selector=selector).guarantee
    assert selector.masks([["waab"], ["waac"]])[0] == [True]
    near = 0.002 * euclidean_space.distance("waab", "waac")
    assert 100 * near < 1.6 < shift < 2 * 8.0
    assert guarantee.bound("waab", "waac") == pytest.approx(near + 2 * 8.0)
    assert guarantee.bound("waab", "waab") == 0.0
    assert "2·ε_g = 16 for one that is another" in str(guarantee)
    assert "what a text tells through the n-grams" in guarantee.plain[2]


def test_a_bound_counts_every_fit_and_every_text(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (fitted_on("waac", key, monkeypatch) for key in (1, 2))
    public = LowTransitionSelector.fit(["waaa waab"] * 9, epsilon=None, alphabet=["waaa", "waab"],
                                       min_count=2)  # fmt: skip
    both = ShareSelector(one | other | one.replace(threshold=0.5) | ~public, minimum=1.0)
    privatizer = SlotPrivatizer(euclidean_space, "laplace", 1e-9, selector=both)
    assert privatizer.guarantee.bound("waab", "waac") == pytest.approx(32.0)
    chats = SlotPrivatizer(
        euclidean_space, "laplace", 1e-9, selector=both, text_column="messages[].content"
    )
    a, b = (
        {"messages": [{"content": word}, {"content": word}, {"content": "waaa"}]}
        for word in ("waab", "waac")
    )
    assert chats.guarantee.bound(a, b) == pytest.approx(64.0)
    exact = SlotPrivatizer(euclidean_space, "laplace", 1e-9, selector=public)
    assert "through the n-grams" not in str(exact.guarantee)


def test_a_fit_charges_a_budget_before_it_releases(euclidean_space: EmbeddingSpace) -> None:
    budget = PrivacyBudget(20.0)
    texts, words = ["waaa waab"] * 200, ["waaa", "waab"]
    fit = partial(LowTransitionSelector.fit, texts, alphabet=words, budget=budget)
    selector = fit(epsilon=8.0)
    assert budget.spent == 16.0
    privatizer = SlotPrivatizer(euclidean_space, "laplace", 2.0, selector=selector, budget=budget)
    privatizer.privatize("waaa zork")
    assert budget.spent == 18.0
    assert "n-grams, at any distance: 1 × 16 = 16" in str(budget)
    with pytest.raises(BudgetExceededError, match="nothing was released"):
        fit(epsilon=1.1)
    with pytest.raises(InvalidValueError, match="epsilon=None counts exactly, and no budget"):
        fit(epsilon=None)
    with pytest.raises(InvalidValueError, match="budget_unit to be one of 'word'"):
        LowTransitionSelector.fit(
            texts, epsilon=8.0, alphabet=words, budget=PrivacyBudget(20.0, "user")
        )
    assert budget.spent == 18.0


# Arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"selector": "ner"}, InvalidTypeError, "a selector of slots, got a str"),
        ({"mask_column": 5}, InvalidTypeError, "mask_column to be a column name"),
        ({"mask_column": ["a", "b"]}, InvalidValueError, "mask_column to name 1 different"),
        ({"spans_column": ["a", "b"]}, InvalidValueError, "spans_column to name 1 different"),
        (
            {"mask_column": "text"},
            InvalidValueError,
            "name 2 different columns, .*got .'text', 'te",
        ),
        ({"mask_column": "m", "spans_column": "m"}, InvalidValueError, "name 3 different"),
        ({"epsilon": None}, InvalidValueError, "epsilon is missing"),
        ({"oov": "drop", "selector": TagColumnSelector("t")}, InvalidValueError, "column 't'.*fit"),
    ],
)
def test_arguments_are_checked(
    make: Make, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_a_selector_is_required(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(TypeError, match="selector"):
        SlotPrivatizer(euclidean_space, "laplace", 2.0)  # type: ignore[call-arg]


def test_a_missing_tag_column_is_named(make: Make) -> None:
    privatizer = make(selector=TagColumnSelector("tags"))
    with pytest.raises(
        InvalidValueError, match=r"column 'tags' is not in .* with .*TagColumnSelector\('tags'\)"
    ):
        privatizer({"text": [["a"]]})
    with pytest.raises(InvalidValueError, match=r"column 'tags', and there is none; use"):
        privatizer.privatize([["a"]])


def test_labels_that_never_occur_are_reported_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    privatizer = make(selector=TagColumnSelector("tags", ["PERSON"]), text_column="tokens")
    batch = {"tokens": [["waaa", "waab"]] * 10, "tags": [["B-PER", "O"]] * 10}
    with caplog.at_level(logging.WARNING):
        privatizer({name: rows[:9] for name, rows in batch.items()})
        assert "RELEASED AS THEY ARE" not in caplog.text, "there were 9 tags"
        assert privatizer(batch)["tokens"] == batch["tokens"]
        privatizer(batch)
        privatizer(batch | {"tags": [["B-LOC", "B-ORG"]] * 10})
    told = "10 tags and more in column 'tags', none of the labels 'PERSON': all its tokens"
    assert caplog.text.count(f"{told} are RELEASED AS THEY ARE") == 1
    assert "waaa" not in caplog.text
    assert "LOC" not in caplog.text


def test_repr_names_the_selector(make: Make) -> None:
    shown = repr(make(selector=~TagColumnSelector("tags"), seed=987654))
    assert shown.startswith("SlotPrivatizer(EmbeddingSpace(500 words")
    assert shown.endswith("selector=~TagColumnSelector('tags'))")
    assert "987654" not in shown


# Folders


@pytest.fixture
def space(tmp_path: Path, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    euclidean_space.save_pretrained(tmp_path / "space")
    return EmbeddingSpace.from_pretrained(tmp_path / "space")


@pytest.mark.parametrize(
    "selector",
    [
        ContentWordSelector({"waab", "of"}),
        ShareSelector(~ContentWordSelector({"waab"}), minimum=0.25, maximum=0.5),
        ContentWordSelector() & ~(ContentWordSelector({"waaa"}) | ContentWordSelector({"waab"})),
        fitted() | fitted().replace(mode="coverage"),
    ],
    ids=["words", "share", "combined", "fitted"],
)
def test_a_stored_privatizer_comes_back(
    tmp_path: Path, space: EmbeddingSpace, selector: Selector
) -> None:
    privatizer = SlotPrivatizer(space, "tem", 2.0, selector=selector, mask_column="m", seed=5)
    privatizer.save_pretrained(tmp_path / "stored")
    loaded = SlotPrivatizer.from_pretrained(tmp_path / "stored", seed=5)
    assert loaded.config == privatizer.config
    assert loaded.guarantee == privatizer.guarantee
    row = {"text": ["play waab on waac of waad waaa"]}
    assert loaded(row) == privatizer(row)
    card = (tmp_path / "stored" / "README.md").read_text("utf-8")
    assert "SlotPrivatizer.from_pretrained" in card
    assert "All other words are released as they are" in card


def test_tags_are_stored_with_their_names(tmp_path: Path, space: EmbeddingSpace) -> None:
    selector = TagColumnSelector("t", ["x"], names=["O", "B-x", "B-y"])
    SlotPrivatizer(
        space, "laplace", NOISELESS, selector=selector, spans_column="s"
    ).save_pretrained(tmp_path / "stored")
    loaded = SlotPrivatizer.from_pretrained(tmp_path / "stored", mask_column="m")
    row = {"text": ["WAAB", "WAAC", "WAAD"], "t": [1, 2, 0], "id": 5}
    assert loaded(row) == {
        "text": ["waab", "WAAC", "WAAD"], "m": [True, False, False], "s": [[0, 1]],
    }  # fmt: skip


def test_the_two_kinds_are_not_mistaken_for_each_other(
    tmp_path: Path, space: EmbeddingSpace
) -> None:
    SlotPrivatizer(space, "tem", 2.0, selector=ContentWordSelector()).save_pretrained(
        tmp_path / "slots"
    )
    DxPrivatizer(space, "tem", 2.0).save_pretrained(tmp_path / "all")
    with pytest.raises(ArtifactError, match=r"load it with SlotPrivatizer\.from_pretrained"):
        DxPrivatizer.from_pretrained(tmp_path / "slots")
    with pytest.raises(ArtifactError, match=r"load it with DxPrivatizer\.from_pretrained"):
        SlotPrivatizer.from_pretrained(tmp_path / "all")
    with pytest.raises(InvalidTypeError, match="its own settings, got selector"):
        SlotPrivatizer.from_pretrained(tmp_path / "slots", selector=ContentWordSelector())


def test_a_function_of_the_user_is_not_stored(tmp_path: Path, space: EmbeddingSpace) -> None:
    selector = ContentWordSelector() & SpanSelector(lambda _: [])
    privatizer = SlotPrivatizer(space, "tem", 2.0, selector=selector)
    with pytest.raises(InvalidValueError, match="a SpanSelector cannot be stored"):
        privatizer.save_pretrained(tmp_path / "stored")
    assert not (tmp_path / "stored" / "privatizer.json").exists()


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"kind": "all", "parts": []}, "knows no such selector"),
        ({"kind": "content-words", "parts": []}, "knows no such selector"),
        ({"kind": "content-words", "stopwords": [[]], "parts": []}, "a list of strings"),
        ({"kind": "content-words", "stopwords": "the", "parts": []}, "a list of strings"),
        ({"kind": "~", "parts": []}, "knows no such selector"),
        ({"kind": "tag-column", "column": "t", "more": 1, "parts": []}, "knows no such selector"),
        ({"kind": "low-transition", "parts": [], "folder": "../x"}, "expected a folder such as"),
        ({"kind": "low-transition", "parts": [], "folder": "selector/0"}, "which is none of them"),
        ("all", "selector cannot be 'all'"),
    ],
)
def test_an_altered_selector_is_refused(
    tmp_path: Path, space: EmbeddingSpace, selector: Any, message: str
) -> None:
    SlotPrivatizer(space, "tem", 2.0, selector=ContentWordSelector()).save_pretrained(tmp_path)
    path = tmp_path / "privatizer.json"
    path.write_text(json.dumps(bind(json.loads(path.read_text()) | {"selector": selector})))
    with pytest.raises(ArtifactError, match=message):
        SlotPrivatizer.from_pretrained(tmp_path)

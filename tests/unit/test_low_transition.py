"""LowTransitionSelector: what it takes for a slot, what it keeps, what it refuses."""

import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, IterableDataset
from datasets.fingerprint import Hasher

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots import LowTransitionSelector, low_transition
from hf_dxprivacy.spaces import EmbeddingSpace

ALPHABET = ["play", "on", "book", "a", "table", "in", "jazz", "rock", "spotify", "paris"]


def texts(copies: int = 40) -> list[str]:
    """Two carrier phrases whose slots hold a different word each time."""
    named = [f"play artist{i} on service{i}" for i in range(copies)]
    booked = [f"book a table in city{i}" for i in range(copies)]
    return [*named, *booked, "play jazz on spotify"]


@pytest.fixture(scope="module")
def exact() -> LowTransitionSelector:
    """Exact counts, of what occurs five times."""
    return LowTransitionSelector.fit(texts(), epsilon=None, alphabet=ALPHABET, min_count=5)


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> LowTransitionSelector:
    """Counts that are noisy, always in the same way."""
    monkeypatch.setattr(low_transition, "process_generator", lambda: keyed_generator(5))
    return LowTransitionSelector.fit(texts(4000), epsilon=2.0, alphabet=ALPHABET)


def marked(selector: LowTransitionSelector, text: str) -> str:
    words = text.split()
    (mask,) = selector.masks([words])
    assert mask is not None
    return " ".join(w.upper() if slot else w for w, slot in zip(words, mask, strict=True))


@pytest.mark.parametrize("mode", ["transition", "coverage"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("play techno on lastfm", "play TECHNO on LASTFM"),
        ("Play Jazz ON spotify", "Play JAZZ ON SPOTIFY"),
        ("book a table in milladore", "book a table in MILLADORE"),
        ("paris", "PARIS"),
    ],
)
def test_carrier_phrases_stay(
    exact: LowTransitionSelector, mode: Any, text: str, expected: str
) -> None:
    marks = marked(exact.replace(mode=mode), text).split()
    assert [m.isupper() for m in marks if m != "ON"] == [
        m.isupper() for m in expected.split() if m != "ON"
    ]


def test_private_counts_find_the_same_phrases(noisy: LowTransitionSelector) -> None:
    assert marked(noisy, "play techno on lastfm") == "play TECHNO on LASTFM"
    assert marked(noisy, "book a table in milladore") == "book a table in MILLADORE"


def test_the_context_decides(exact: LowTransitionSelector) -> None:
    """The same word is carrier where n-grams lead to it, and a slot where they do not."""
    assert marked(exact, "book a table") == "book a table"
    assert marked(exact, "play a table") == "play A table"


def test_the_threshold_is_a_transition_probability(exact: LowTransitionSelector) -> None:
    """After the start of a record "play" and "book" have one half each."""
    assert marked(exact.replace(threshold=0.45), "play techno on lastfm").startswith("play")
    assert marked(exact.replace(threshold=0.55), "play techno on lastfm").startswith("PLAY")
    assert exact.threshold == 0.01


def test_words_outside_of_the_alphabet_are_slots_however_likely(
    exact: LowTransitionSelector,
) -> None:
    """Nearly every "play" is followed by such a word, none of which is likely itself."""
    for mode in ("transition", "coverage"):
        assert marked(exact.replace(mode=mode), "play artist7").endswith("ARTIST7")


def test_n_grams_that_leave_nearly_all_words_as_slots_are_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(low_transition, "process_generator", lambda: keyed_generator(5))
    rows = [f"on {' '.join(f'word{i} zork' for _ in range(7))}" for i in range(300)]
    few = LowTransitionSelector.fit(rows, epsilon=1.0, alphabet=ALPHABET)
    shares = [np.mean(mask) for mask in few.masks([row.split()[:11] for row in rows])]
    assert np.mean(shares) == pytest.approx(10 / 11)
    (said,) = caplog.messages
    assert said.startswith(f"only {len(few.grams)} n-grams were released, and about 91 % of the")
    assert "ContentWordSelector()" in said
    caplog.clear()
    LowTransitionSelector.fit(texts(4000), epsilon=2.0, alphabet=ALPHABET)
    assert not caplog.messages


def test_rows_keep_their_places(exact: LowTransitionSelector) -> None:
    rows = [["play", "x"], None, [], ["book", "a", "y"]]
    masks = exact.masks(rows, {"other": [1, 2, 3, 4]})
    assert [None if mask is None else mask.tolist() for mask in masks] == [
        [False, True], None, [], [False, False, True],
    ]  # fmt: skip
    assert [len(exact.masks(batch)) for batch in ([], [None], [[]])] == [0, 1, 1]


def test_masks_do_not_depend_on_the_batch(noisy: LowTransitionSelector) -> None:
    rows = [text.split() for text in texts(30)]
    together = noisy.masks(rows)
    for row, mask in zip(rows, together, strict=True):
        assert np.array_equal(noisy.masks([row])[0], mask)


def _token_lists() -> Iterator[list[str | None]]:
    for text in texts():
        yield [*text.split(), "!", None]


def _examples() -> Iterator[dict[str, str]]:
    for text in texts():
        yield {"text": text}


@pytest.mark.parametrize(
    ("source", "column"),
    [
        (iter(texts()), "text"),
        (_token_lists(), "text"),
        ([None, "", *texts()], "text"),
        (Dataset.from_dict({"text": texts()}), "text"),
        (Dataset.from_dict({"words": [t.split() for t in texts()], "n": range(81)}), "words"),
        (Dataset.from_dict({"text": texts()})["text"], "text"),
        (Dataset.from_dict({"q": texts()}).with_format("numpy"), "q"),
        (Dataset.from_dict({"q": texts(), "n": range(81)}).to_iterable_dataset(), "q"),
        (IterableDataset.from_generator(_examples), "text"),
    ],
)
def test_any_source_of_texts(exact: LowTransitionSelector, source: Any, column: str) -> None:
    selector = LowTransitionSelector.fit(
        source, epsilon=None, alphabet=ALPHABET, min_count=5, text_column=column
    )
    assert Hasher.hash(selector) == Hasher.hash(exact)


def test_a_space_is_an_alphabet(euclidean_space: EmbeddingSpace) -> None:
    corpus = ["waab waac"] * 50
    selector = LowTransitionSelector.fit(corpus, epsilon=None, alphabet=euclidean_space)
    assert selector.grams.words == ("waab", "waac")
    assert selector.alphabet_size == len(euclidean_space)


def test_nothing_of_the_corpus_is_kept_but_what_is_released(noisy: LowTransitionSelector) -> None:
    stored = pickle.dumps(noisy)
    for word in (b"artist7", b"service7", b"jazz", b"spotify"):
        assert word not in stored
    assert b"play" in stored


def test_two_fits_have_noise_of_their_own() -> None:
    first, second = (
        LowTransitionSelector.fit(texts(4000), epsilon=2.0, alphabet=ALPHABET) for _ in range(2)
    )
    assert not np.array_equal(first.grams.count, second.grams.count)


def test_the_fingerprint_is_that_of_what_is_released(exact: LowTransitionSelector) -> None:
    copy = pickle.loads(pickle.dumps(exact))
    before = Hasher.hash(copy)
    assert copy.masks([["play", "x"]])[0].tolist() == [False, True]
    assert Hasher.hash(copy) == before == Hasher.hash(exact)
    assert Hasher.hash(exact.replace(threshold=0.3)) != before


def test_the_guarantee_says_what_holds(
    exact: LowTransitionSelector, noisy: LowTransitionSelector
) -> None:
    assert str(noisy.guarantee).startswith(
        "ε_g-differentially private per record of the corpus: ε_g = 2\n"
    )
    assert noisy.guarantee.to_dict()["epsilon"] == 2.0
    assert "ε_g = 2" in noisy.disclosures[0].text
    assert "epsilon=2 per record" in repr(noisy)
    assert exact.guarantee.to_dict()["epsilon"] is None
    assert "no guarantee per record of the corpus" in exact.disclosures[0].text
    assert [each.text.partition(" (")[0] for each in exact.guarantee.disclosures] == [
        "HOLE: the counts of the n-grams are exact"
    ]
    assert {*exact.guarantee.disclosures} <= {*exact.disclosures}
    assert "exact counts of a public corpus" in repr(exact)


def test_a_corpus_that_is_too_small_is_refused_without_a_word_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(low_transition, "process_generator", lambda: keyed_generator(7))
    with pytest.raises(InvalidValueError, match=r"nothing was released.*epsilon=0.01") as caught:
        LowTransitionSelector.fit(["book a table"] * 50, epsilon=0.01, alphabet=ALPHABET)
    message = str(caught.value)
    # Laplace(12·3/0.01) and ln(10/0.2): 14,083; every twentieth word.
    assert "more than 14,083 times" in message
    assert "A corpus of 281,666 words would do" in message
    assert not any(word in message for word in ("book", "table", "50"))
    enough = LowTransitionSelector.fit(["book a table"] * 100_000, epsilon=0.01, alphabet=ALPHABET)
    assert set(enough.grams.words) >= {"book", "a", "table"}


def test_exact_counts_of_too_few_texts_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"no n-gram of two words occurs 20 times"):
        LowTransitionSelector.fit(["play jazz"] * 19, epsilon=None, alphabet=ALPHABET)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -1.0}, InvalidValueError, "expected epsilon > 0"),
        ({"n_max": 1}, InvalidValueError, "expected n_max >= 2.*tells no transition"),
        ({"l_max": 0}, InvalidValueError, "expected l_max >= 2"),
        ({"min_count": 1.5}, InvalidTypeError, "expected min_count to be an integer"),
        ({"threshold": 0.0}, InvalidValueError, "expected 0 < threshold < 1"),
        ({"threshold": 1.0}, InvalidValueError, "it is a probability"),
        ({"mode": "both"}, InvalidValueError, "expected mode to be one of 'transition'"),
        ({"alphabet": []}, InvalidValueError, "no word of the alphabet"),
        ({"texts": "play jazz"}, InvalidTypeError, "expected texts.* got a str"),
        ({"texts": 7}, InvalidTypeError, "got a int"),
        ({"texts": DatasetDict()}, InvalidTypeError, "got a DatasetDict"),
        ({"texts": ["play secret", 7]}, InvalidTypeError, "row 1 of the corpus: .* got an int"),
        ({"texts": [["play", 7]]}, InvalidTypeError, "row 0 .* holds an int"),
        (
            {"texts": Dataset.from_dict({"q": ["a"]})},
            InvalidValueError,
            r"no column 'text' \(it has 'q'\); pass text_column=",
        ),
        (
            {"texts": IterableDataset.from_generator(_examples), "text_column": "q"},
            InvalidValueError,
            "no column 'q'; pass text_column=",
        ),
    ],
)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"texts": texts(), "epsilon": None, "alphabet": ALPHABET}
    given |= {"min_count": 5} | arguments
    with pytest.raises(error, match=message) as caught:
        LowTransitionSelector.fit(given.pop("texts"), **given)
    assert "secret" not in str(caught.value)


def test_epsilon_and_alphabet_are_always_a_decision() -> None:
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments"):
        LowTransitionSelector.fit(texts())  # type: ignore[call-arg]


# To folders and back.


def test_a_stored_selector_comes_back(
    tmp_path: Path, exact: LowTransitionSelector, noisy: LowTransitionSelector
) -> None:
    for selector in (exact, noisy, noisy.replace(mode="coverage"), exact.replace(threshold=0.3)):
        selector.save_pretrained(tmp_path, license="mit")
        loaded = LowTransitionSelector.from_pretrained(tmp_path)
        assert Hasher.hash(loaded) == Hasher.hash(selector)
        assert loaded.guarantee == selector.guarantee


def test_numbers_of_numpy_are_stored_too(tmp_path: Path) -> None:
    selector = LowTransitionSelector.fit(
        texts(4000),
        epsilon=np.float32(2.0),
        alphabet=ALPHABET,
        n_max=np.int64(3),  # type: ignore[arg-type]
        l_max=np.int32(9),  # type: ignore[arg-type]
    )
    selector.save_pretrained(tmp_path)
    assert LowTransitionSelector.from_pretrained(tmp_path).config == selector.config


def test_what_is_stored_is_text_and_says_its_budget(
    tmp_path: Path, noisy: LowTransitionSelector
) -> None:
    noisy.save_pretrained(tmp_path, license="mit")
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md", "grams.jsonl", "selector.json",
    }  # fmt: skip
    settings = json.loads((tmp_path / "selector.json").read_text())
    assert settings["epsilon"] == 2.0
    lines = [json.loads(line) for line in (tmp_path / "grams.jsonl").read_text().splitlines()]
    assert {len(line["gram"]) for line in lines} == {1, 2, 3}
    assert all(set(line) == {"gram", "count", "share"} for line in lines)
    assert ["<start>", "play"] in [line["gram"] for line in lines]


def test_the_card_says_what_holds(
    tmp_path: Path, exact: LowTransitionSelector, noisy: LowTransitionSelector
) -> None:
    noisy.save_pretrained(tmp_path / "noisy", license="mit")
    card = (tmp_path / "noisy" / "README.md").read_text()
    assert "**ε_g = 2**" in card
    assert str(noisy.guarantee) in card
    assert "license: mit" in card
    assert "a word with a transition probability below 0.01 |" in card
    exact.replace(mode="coverage").save_pretrained(tmp_path / "exact", license="mit")
    card = (tmp_path / "exact" / "README.md").read_text()
    assert "**Their counts are exact.**" in card
    assert "HOLE" in card
    assert "| ε_g | none: exact counts |" in card
    assert "that no n-gram of two symbols or more covers |" in card


@pytest.fixture
def folder(tmp_path: Path, exact: LowTransitionSelector) -> Path:
    """A stored selector."""
    exact.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2}, "format_version is 2.*pip install --upgrade"),
        (
            {"format_version": 0},
            r"^\S+selector.json: format_version is 0, and the first format is 1",
        ),
        ({"format_version": -1}, "format_version is -1, and the first format is 1"),
        ({"library_name": "other"}, "not written by hf_dxprivacy"),
        ({"selector": "other"}, "no low-transition selector"),
        ({"epsilon": "1"}, "epsilon cannot be '1'"),
        ({"epsilon": -1.0}, "expected epsilon > 0"),
        ({"epsilon": True}, "epsilon cannot be True"),
        ({"epsilon": 10**400}, "expected epsilon"),
        ({"threshold": 10**400}, "expected threshold"),
        ({"n_max": 2}, "longer, or have spent more"),
        ({"l_max": None}, "l_max cannot be None"),
        ({"threshold": 2}, "expected 0 < threshold < 1"),
        ({"mode": "both"}, "expected mode to be one of"),
        ({"alphabet_size": 0}, "expected alphabet_size >= 1"),
        ({"extra": 1}, "unknown extra"),
        ({"grams_sha256": "0" * 64}, r"grams.jsonl: SHA-256 is .* says 0000"),
    ],
)
def test_settings_that_were_altered_are_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    path = folder / "selector.json"
    path.write_text(json.dumps(bind(json.loads(path.read_text()) | changes)))
    with pytest.raises(ArtifactError, match=message):
        LowTransitionSelector.from_pretrained(folder)


GRAM = '{"gram": ["play"], "count": 9.0, "share": 0.3}\n'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no JSON\n",
        "[1]\n",
        GRAM.replace("9.0", "NaN"),
        GRAM.replace("9.0", "-9.0"),
        GRAM.replace("9.0", '"9.0"x'),
        GRAM.replace("0.3", "0.0"),
        GRAM.replace('["play"]', "[]"),
        GRAM.replace('"play"', "7"),
        GRAM.replace('"play"', '["play"]'),
        GRAM.replace('["play"]', '["play", "jazz"]'),
        GRAM + GRAM,
        GRAM + GRAM.replace('["play"]', '["<start>", "jazz"]'),
        GRAM.replace('["play"]', '["<start>", "<end>"]') + GRAM,
        GRAM + GRAM.replace('["play"]', '["play", "play"]').replace("0.3", "0.8"),
        GRAM.replace("0.3", "1.1"),
    ],
)
def test_grams_that_were_altered_are_refused(folder: Path, content: str) -> None:
    """Even if whoever did so has computed the digest anew."""
    (folder / "grams.jsonl").write_text(content)
    settings = json.loads((folder / "selector.json").read_text())
    settings["grams_sha256"] = hashlib.sha256(content.encode()).hexdigest()
    (folder / "selector.json").write_text(json.dumps(bind(settings)))
    with pytest.raises(ArtifactError, match=r"grams\.jsonl"):
        LowTransitionSelector.from_pretrained(folder)


@pytest.mark.parametrize("name", ["selector.json", "grams.jsonl"])
def test_missing_files_are_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ArtifactError, match=f"{name}: cannot be read"):
        LowTransitionSelector.from_pretrained(folder)


def test_a_selector_is_looked_for_where_it_can_be(folder: Path) -> None:
    with pytest.raises(InvalidValueError, match="expected a local folder that holds a selector"):
        LowTransitionSelector.from_pretrained("nowhere")
    with pytest.raises(InvalidValueError, match="revision='v1' is for repositories on the Hub"):
        LowTransitionSelector.from_pretrained(folder, revision="v1")


def test_publishing_needs_a_licence(exact: LowTransitionSelector) -> None:
    with pytest.raises(InvalidValueError, match="there is no licence"):
        exact.push_to_hub("me/selector")

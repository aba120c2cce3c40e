"""RedactingPrivatizer: what is found becomes a constant, and the rest is perturbed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.integrations.redaction import RedactingPrivatizer
from hf_dxprivacy.randomness import generator_from_key
from hf_dxprivacy.slots import ContentWordSelector, SpanSelector
from hf_dxprivacy.text import RowReader

CARD, OTHER_CARD = "4111 1111 1111 1111", "4012888888881881"
SPACE = EmbeddingSpace.from_vectors(["x", "y"], np.eye(2, dtype=np.float32))


def find(text: str) -> list[tuple[int, int, str]]:
    """Find cards and people, and an entity of another label."""
    patterns = {"CARD": r"\b4[\d ]{14,17}1\b", "PERSON": r"\b(Waab|Zork Waac)\b", "OTHER": "."}
    return [
        (*found.span(), label)
        for label, pattern in patterns.items()
        for found in re.finditer(pattern, text)
    ]


Redacting = Callable[..., RedactingPrivatizer]


@pytest.fixture(scope="module")
def redacting(euclidean_space: EmbeddingSpace) -> Redacting:
    def redacting(epsilon: float = 2.0, redact: Any = None, **options: Any) -> RedactingPrivatizer:
        mechanism = options.pop("mechanism", "laplace")
        found = SpanSelector(find, ["CARD", "PERSON"]) if redact is None else redact
        return RedactingPrivatizer(euclidean_space, mechanism, epsilon, redact=found, **options)

    return redacting


def spans_of(*spans: tuple[int, int, str]) -> SpanSelector:
    return SpanSelector(lambda _: spans, ["A", "B"])


# At so large an ε every known word comes out as it is.
@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 4, "A")], "<A> waab, (waac) waad"),
        ([(1, 2, "A")], "<A> waab, (waac) waad"),
        ([(0, 9, "A")], "<A>, (waac) waad"),
        ([(11, 17, "A")], "waaa waab, <A> waad"),
        ([(12, 16, "A")], "waaa waab, (<A>) waad"),
        ([(5, 9, "B"), (0, 4, "A")], "<A> <B>, (waac) waad"),
        ([(0, 7, "A"), (5, 9, "B")], "<A>, (waac) waad"),
        ([(0, 2, "A"), (1, 9, "B")], "<B>, (waac) waad"),
        ([(0, 2, "A"), (2, 9, "B"), (6, 8, "A")], "<B>, (waac) waad"),
        ([(0, 2, "B"), (2, 4, "A")], "<B> waab, (waac) waad"),
        ([(9, 10, "A")], "waaa waab<A> (waac) waad"),
        ([(4, 5, "A")], "waaa<A>waab, (waac) waad"),
        ([(3, 3, "A"), (5, 1, "B")], "waaa waab, (waac) waad"),
        ([(0, 99, "A")], "<A>"),
        ([(-9, 4, "A"), (99, 120, "B"), (18, 99, "B")], "<A> waab, (waac) <B>"),
        ([(0, 4, "C")], "waaa waab, (waac) waad"),
    ],
)
def test_what_is_found_becomes_a_constant_with_all_words_that_it_touches(
    redacting: Redacting, spans: Any, expected: str
) -> None:
    released = redacting(1e6, spans_of(*spans)).privatize("waaa waab, (waac) waad")
    assert released == expected


def test_the_other_words_have_exactly_the_law_of_the_mechanism(
    redacting: Redacting, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one noise, they are what the mechanism makes of them alone."""
    key = bytes(range(32))
    monkeypatch.setattr(
        "hf_dxprivacy.randomness.process_generator", lambda: generator_from_key(key)
    )
    privatizer = redacting()
    text = f"waaa Waab waad {CARD} waae unknown"
    ids = euclidean_space.ids(["waaa", "waad", "waae", "unknown"])
    drawn = privatizer.mechanism.sample(np.tile(ids, 50), generator_from_key(key)).reshape(50, 4)
    named = [[euclidean_space.words[row] for row in rows] for rows in drawn]
    expected = [f"{a} <PERSON> {b} <CARD> {c} {d}" for a, b, c, d in named]
    assert privatizer.privatize([text] * 50) == expected


def test_what_is_redacted_changes_no_release(redacting: Redacting) -> None:
    """With one seed, texts that differ in it become the same, byte for byte."""
    privatizer = redacting(seed=2**70)
    a, b = f"waaa Waab ({CARD}) waae", f"waaa Zork Waac ({OTHER_CARD}) waae"
    assert privatizer.privatize([a] * 5) == privatizer.privatize([b] * 5)
    assert privatizer.guarantee.bound(a, b) == 0.0
    assert "equal after redaction" in str(privatizer.guarantee)
    assert "equal after redaction" not in str(redacting().guarantee)


@pytest.mark.parametrize(
    "other",
    [
        "waaa waab (waac) waae",  # nothing found
        f"waaa {CARD} (Waab) waae",  # found the other way round
        f"waaa Waab ({CARD[:-1]}2) waae",  # no card, by its last digit
        f"waaa Waab ({CARD}) Waab",
        "waaa <PERSON> (<CARD>) waae",  # the constants themselves are words
        f"waaa Waab {CARD} waae",
    ],
)
def test_the_pattern_of_redaction_is_not_covered(redacting: Redacting, other: str) -> None:
    assert redacting().guarantee.bound(f"waaa Waab ({CARD}) waae", other) == float("inf")


def test_a_constant_in_the_text_is_perturbed(redacting: Redacting) -> None:
    privatizer = redacting(1e-6)
    released = privatizer.privatize(["<PERSON> Waab"] * 50)
    first = {str(text).split(" ")[0] for text in released}
    assert len(first) > 20
    assert all(str(text).endswith(" <PERSON>") for text in released)


@given(st.text("ab ,'’é😀1\u0308@.\n", max_size=40), st.data())
def test_no_character_of_a_span_is_released(text: str, data: st.DataObject) -> None:
    """Whatever the text and the spans: at a large ε too, and what remains is as without them."""
    normal = RowReader.normalize(text)
    place = st.integers(0, len(normal))
    spans = data.draw(st.lists(st.tuples(place, place), max_size=4))
    labelled = [(start, stop, "A") for start, stop in spans]
    kept = RedactingPrivatizer(
        SPACE, "krr", 1.0, oov="keep", redact=SpanSelector(lambda _: labelled, ["A"])
    )
    released = str(kept.privatize(text))
    inside = {at for start, stop in spans for at in range(start, stop)}
    for word, (start, stop) in RowReader().words(normal):
        if inside & {*range(start, stop)}:
            inside |= {*range(start, stop)}
        assert word not in SPACE
    expected = "".join("\0" if at in inside else c for at, c in enumerate(normal))
    assert released.replace("<A>", "") == expected.replace("\0", "")
    merged = sum(a in inside and a - 1 not in inside for a in range(len(normal)))
    assert merged <= released.count("<A>") <= max(merged, len(spans))


def test_options_columns_and_chats(redacting: Redacting) -> None:
    text = f"The WAAA Waab {CARD}"
    assert redacting(1e6, stopwords="english", case="preserve", oov="keep").privatize(text) == (
        "The WAAA <PERSON> <CARD>"
    )
    both = redacting(1e6, text_column=["a", "b"])({"a": "Waab waaa", "b": "waae Waab"})
    assert both == {"a": "<PERSON> waaa", "b": "waae <PERSON>"}
    chat = [
        {"role": "user", "content": f"waaa {CARD}"},
        {"role": "assistant", "content": f"Waab {CARD}"},
        {"role": "user", "content": "Waab"},
    ]
    privatizer = redacting(1e6, text_column="messages[].content", roles=("user",))
    contents = [m["content"] for m in privatizer({"messages": chat})["messages"]]
    assert contents == ["waaa <CARD>", f"Waab {CARD}", "<PERSON>"]


def test_it_says_what_it_does(redacting: Redacting) -> None:
    stated = redacting().guarantee
    assert stated.ldp_epsilon == float("inf")
    for sentence in (
        "Spans that are found as CARD or PERSON are not perturbed",
        "such as <CARD>",
        "Not covered, released: how many spans are redacted, as what, and between which words.",
        "Nothing here bounds how often that happens.",
    ):
        assert sentence in str(stated)


def test_its_release_says_nothing_of_what_a_constant_stood_for(tmp_path: Path) -> None:
    """Nor does a card take it for an original: "person" is a word of the space, "CARD" is none."""
    privatizer = RedactingPrivatizer(
        "english", "hierarchical", 1.5, redact=SpanSelector(find, ["CARD", "PERSON"])
    )
    chances = privatizer.posterior(["soup <PERSON> person", None, "<CARD>"])
    assert [word for word, *_ in chances[0]] == ["soup", "PERSON", "person"]
    assert (chances[0][1].probability, chances[2][0].probability) == (0.0, 0.0)
    assert chances[0][2].probability > 0.2
    rows = Dataset.from_dict({"text": [f"Waab {CARD}"] * 30})
    card = privatizer.dataset_card(rows.map(privatizer, batched=True))
    assert "how many spans are redacted, as what, and between which words" in str(card)
    for said in (
        "Each word outside of redacted entities of column 'text' was replaced by a word of a ",
        "What was found as CARD or PERSON, with all words that it touches, became constants ",
        "| redact | CARD, PERSON |",
        "| redactor | SpanSelector |",
    ):
        assert said in str(card)
    card.save_pretrained(tmp_path)
    stated = json.loads((tmp_path / "guarantee.json").read_text("utf-8"))
    assert stated["options"]["redact"] == ["CARD", "PERSON"]
    assert "What was found as CARD" in (tmp_path / "croissant.json").read_text("utf-8")


def test_counts(redacting: Redacting) -> None:
    counts: list[Any] = []
    redacting(1e6)({"text": [f"waaa zork Waab {CARD}"]}, on_counts=counts.append)
    assert (counts[0].kept, counts[0].unchanged, counts[0].out_of_vocabulary) == (2, 1, 1)


def test_what_it_refuses(redacting: Redacting) -> None:
    with pytest.raises(InvalidTypeError, match="redaction is for texts"):
        redacting()({"text": [["waaa", "Waab"]]})
    with pytest.raises(InvalidValueError, match="redaction is for texts"):
        redacting(is_split_into_words=True)
    with pytest.raises(InvalidValueError, match="expected redact= to name what is redacted"):
        redacting(redact=SpanSelector(find))
    with pytest.raises(InvalidTypeError, match="expected redact= to be a selector"):
        redacting(redact=ContentWordSelector())
    stored = RedactingPrivatizer("english", "krr", 1.0, redact=SpanSelector(find, ["CARD"]))
    with pytest.raises(InvalidValueError, match="a SpanSelector cannot be stored with a priv"):
        stored.config  # noqa: B018


def test_long_rows_take_time_in_proportion(redacting: Redacting) -> None:
    """A hundred thousand words with ten thousand spans: pairs of them would fill the memory."""
    text = "waab waaa waaa waaa waaa " * 20_000
    spans = [(at, at + 4, "A") for at in range(0, len(text), 25)]
    released = str(redacting(1e6, spans_of(*spans)).privatize(text))
    assert released == text.replace("waab", "<A>")

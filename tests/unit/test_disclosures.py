"""What is said beside the numbers: records, printed last, and true of what comes out."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy import DxPrivatizer, SentencePrivatizer, SlotPrivatizer, TokenPrivatizer
from hf_dxprivacy.evaluation.peer_candidates import CusText
from hf_dxprivacy.guarantee import (
    ENTRY,
    TOKEN,
    UNCOVERED,
    Disclosure,
    PrivacyGuarantee,
    marked,
)
from hf_dxprivacy.mechanisms import MECHANISMS, create_mechanism
from hf_dxprivacy.publishing import ReleasedDataset
from hf_dxprivacy.sentences import SentencePool, split_sentences
from hf_dxprivacy.slots import ContentWordSelector, Selector, TagColumnSelector
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader, TextRow

WORDS = ("patient", "soup", "called", "doctor", "visit", "Dr", "Smith", "we", "met")
SEEDS = [(1 << 70) + n for n in range(40)]
KEYS = [bytes((n + k * 7) % 256 for k in range(32)) for n in range(1, 41)]


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    """240 words, so that two draws are seldom equal, some of them of a known text, and shapes."""
    words = [
        *WORDS,
        *(f"w{'abcdefghijklmno'[k // 16]}{'abcdefghijklmnop'[k % 16]}" for k in range(231)),
    ]
    vectors = np.random.default_rng(3).normal(size=(240, 6)).astype(np.float32)
    kin = {"numbers": ["soup"], "times": ["visit"], "codes": ["called"], "names": ["doctor"]}
    return EmbeddingSpace.from_vectors(words, vectors).with_shapes(kin)


@pytest.fixture(scope="module")
def pool(space: EmbeddingSpace) -> SentencePool:
    entries = [f"{a} {b} soup visit." for a in space.words[9:20] for b in space.words[20:40]]
    return SentencePool.from_sentences(entries, space, progress=False)


def tokens(space: EmbeddingSpace, **options: Any) -> TokenPrivatizer:
    vocabulary = {word: at for at, word in enumerate((*space.words, "[UNK]"))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    return TokenPrivatizer(space, tokenizer, "calibrated", 2.0, **options)


# Records


def all_guarantees(space: EmbeddingSpace, pool: SentencePool) -> list[PrivacyGuarantee]:
    key = {"memoize": "row", "key": KEYS[0]}
    chat = {"text_column": "chat[].content", "roles": ("user",)}
    made = [
        DxPrivatizer(space, "tem", 2.0, seed=SEEDS[0], case="preserve", stopwords={"we"}),
        DxPrivatizer(space, "tem", 2.0, oov="keep", **chat),
        DxPrivatizer(space, CusText(space, 2.0), oov="drop", **key),
        SlotPrivatizer(space, "tem", 2.0, selector=TagColumnSelector("tags")),
        SlotPrivatizer(space, "tem", 2.0, selector=~ContentWordSelector()),
        SentencePrivatizer(pool, epsilon=1.0, unit="sentence", **key),
        SentencePrivatizer(pool, epsilon=1.0, seed=SEEDS[0], **chat),
        tokens(space, seed=SEEDS[0]),
    ]
    return [each.guarantee for each in made]


def test_print_and_json_are_made_of_the_records(space: EmbeddingSpace, pool: SentencePool) -> None:
    for guarantee in all_guarantees(space, pool):
        records = guarantee.disclosures
        assert all(isinstance(each, Disclosure) and each.subject in each.text for each in records)
        assert guarantee.assumptions == tuple(each.text for each in records)
        stored = json.loads(json.dumps(guarantee.to_dict()))
        assert tuple(Disclosure(**each) for each in stored["disclosures"]) == records
        assert stored["assumptions"] == [*guarantee.assumptions]
        subjects = [each.subject for each in records if each.kind in UNCOVERED and each.subject]
        assert guarantee.plain[2] == f"Not covered: {'; '.join(subjects)}."
        # No subject is left out: all that a sentence calls not covered is a record of that.
        assert all(("Not covered" in d.text) == (d.kind in UNCOVERED) for d in records)
        for text in guarantee.assumptions:
            assert text in str(guarantee)


COLUMN = "rater's note. v2: 'final'"
PATH = "rater's note. v2: it's[].content"


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda s, p: DxPrivatizer(s, "tem", 2.0, text_column=PATH), repr(PATH)),
        (lambda s, p: SentencePrivatizer(p, epsilon=1.0, text_column=PATH), repr(PATH)),
        (
            lambda s, p: SlotPrivatizer(s, "tem", 2.0, selector=TagColumnSelector(COLUMN)),
            f"the tags in column {COLUMN!r}.",
        ),
        (
            lambda s, p: SentencePrivatizer(p, epsilon=1.0, label_column=COLUMN),
            f"the label of each row in column {COLUMN!r}, one of 2, with 110 entries each;",
        ),
    ],
)
def test_the_name_of_a_column_cuts_no_line(
    make: Callable[..., Any], named: str, space: EmbeddingSpace, pool: SentencePool
) -> None:
    labelled = SentencePool.from_sentences(
        pool.sentences, space, labels=["x", "y"] * 110, progress=False
    )
    assert named in make(space, labelled).guarantee.plain[2]


class Strangers(Selector):
    """Selects all, and says so in bare sentences, as selectors did."""

    def masks(self, words: Any, rows: Any = None) -> list[Any]:
        """See the contract."""
        return [None if row is None else np.ones(len(row), dtype=bool) for row in words]

    @property
    def disclosures(self) -> tuple[str, ...]:
        """One of each kind."""
        return ("All are slots.", "Not covered: moods.", "WARNING: beware.", "HOLE: no noise.")


def test_bare_sentences_of_a_users_selector_are_not_lost(space: EmbeddingSpace) -> None:
    said = SlotPrivatizer(space, "tem", 2.0, selector=Strangers() | TagColumnSelector("t"))
    found = said.guarantee
    assert [each.kind for each in map(marked, Strangers().disclosures)] == [
        *("condition", "in_clear", "warning", "hole")
    ]
    assert "WARNING: beware." in found.plain[1]
    for part in ("; Not covered: moods;", "; HOLE: no noise;", "; the tags in column 't'."):
        assert part in found.plain[2]
    assert "All are slots." in str(found)


def test_cards_of_earlier_reports_sort_the_same_sentences(
    space: EmbeddingSpace, pool: SentencePool
) -> None:
    """Reports of 0.2 and 0.3 have sentences only."""
    made = [
        DxPrivatizer(space, CusText(space, 2.0), oov="keep"),
        DxPrivatizer(space, "tem", 2.0, seed=SEEDS[0]),
        SentencePrivatizer(pool, epsilon=1.0, memoize="row", key=KEYS[0]),
    ]
    for each in made:
        card = each.dataset_card(["text"])
        stated = dict(card.claim["guarantee"])
        assert stated.pop("disclosures")
        older = ReleasedDataset({**card.claim, "guarantee": stated}, card.columns)
        assert str(older) == str(card)


# The noun


@pytest.mark.parametrize("name", sorted({*MECHANISMS} - {"hyperbolic", "syntf"}))
def test_mechanisms_speak_of_what_they_draw(name: str, pool: SentencePool) -> None:
    law = create_mechanism(name, pool.space, 150.0)
    for noun in (ENTRY, TOKEN):
        said = " ".join(each.text for each in law.disclosures(noun)) + law.metric
        assert "word" not in said
        assert ("entr" in said) == (noun is ENTRY) or "oken" not in said
    assert law.disclosures() == law.guarantee.disclosures


def test_token_ids_are_no_words(space: EmbeddingSpace) -> None:
    printed = str(tokens(space, seed=SEEDS[0]).guarantee)
    for part in (
        "The noise of different tokens is independent; bounds of several tokens, columns or",
        "The exact level over all pairs of tokens is ",
        "Rows of a column that have the same tokens, special ones too, and the same index, or none",
    ):
        assert part in printed
    # Words are named where they are meant, and nowhere else.
    meant = ("A word is protected", "one word may be", "for unknown words among them")
    assert printed.count("word") == sum(part.count("word") for part in meant)


# What is equal


def word_lists(text: str) -> list[str]:
    return re.findall(r"[\w']+", text)


def definition(said: str, space: EmbeddingSpace) -> Callable[[str], Any]:
    """Return what has to be equal for two rows to be, as a printed sentence says it."""

    def read(text: str) -> tuple[list[str], list[str], list[int]]:
        row = RowReader().read(text)
        assert isinstance(row, TextRow)
        return row.words, row.separators, look_up_rows([row], space).tolist()

    if said.startswith("Seeded") and "same words, looked up as the same entries" in said:
        return lambda text: (read(text)[0], read(text)[2])
    if said.startswith("Seeded"):
        return lambda text: read(text)[0]
    of_entries = "looked up as" in said
    shown = "all that is released as it is" in said
    return lambda text: (read(text)[2 * of_entries], read(text)[1] if shown else None)


PAIRS = [
    ("patient 123456 called", "patient 987654 called"),
    ("patient 123456 called", "patient 12345 called"),
    ("patient soup called", "patient SOUP called"),
    ("patient zorb called", "patient quux called"),
    ("patient soup called", "patient doctor called"),
    ("we met Zorb", "we met Quux"),
    ("we met Zorb", "we met. Zorb"),
    ("we met Zorb", "we met, Zorb"),
    ("Zorb called", "Quux called"),
    ("called soup", "called, soup"),
]


@pytest.mark.parametrize("unit", ["row", "user", "seed"])
@pytest.mark.parametrize("with_shapes", [True, False])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_rows_come_out_equal_where_the_print_says_so(
    a: str, b: str, with_shapes: bool, unit: str, space: EmbeddingSpace
) -> None:
    """For every key or seed if they are equal by the printed sentence, else for hardly any."""
    plain = EmbeddingSpace.from_vectors(
        space.words[: -len(space.shapes)], space.vectors[: -len(space.shapes)]
    )
    of = space if with_shapes else plain
    user = {"user_column": "who"} if unit == "user" else {}
    options: list[dict[str, Any]] = [{"memoize": unit, "key": key, **user} for key in KEYS]
    if unit == "seed":
        options = [{"seed": seed} for seed in SEEDS]
    law = create_mechanism("krr", of, 1.0)
    made = [DxPrivatizer(of, law, **each) for each in options]
    rows = [each({"text": [a, b], "who": ["x", "x"]})["text"] for each in made]
    equal = sum(word_lists(x) == word_lists(y) for x, y in rows)
    starts = ("Seeded noise", "Memoized noise")
    said = next(s for s in made[0].guarantee.assumptions if s.startswith(starts))
    key = definition(said, of)
    if key(a) == key(b):
        assert equal == len(rows), said
    else:
        assert equal <= 8, said


def test_what_is_looked_up_as_one_entry_is_said(space: EmbeddingSpace) -> None:
    bare = EmbeddingSpace.from_vectors(WORDS, space.vectors[: len(WORDS)])
    for memoize, column in (("row", None), ("user", "who")):
        options: Any = {"memoize": memoize, "key": KEYS[0], "user_column": column}
        plain, shaped, kept = (
            DxPrivatizer(of, "krr", 1.0, oov=oov, **options).guarantee.disclosures[-1]
            for of, oov in ((bare, "centroid"), (space, "centroid"), (bare, "keep"))
        )
        assert "a word in several letter cases, all words out of vocabulary." in plain.text
        assert "of one shape, such as numbers of one length, all other words out of" in shaped.text
        assert "out of vocabulary" not in kept.text
        for each in (plain, shaped, kept):
            assert each.kind == "equality_shows"
            assert "looked up as" in each.text
            assert each.subject.endswith("and everything once the key is known")


@pytest.mark.parametrize("path", [None, "chat[].content"])
@pytest.mark.parametrize("unit", ["text", "sentence"])
@pytest.mark.parametrize("secret", ["row", "user", "seed"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Waa wab. Wac wad.", "Waa wab.  Wac wad."),
        ("Waa wab. Wac wad.", "Wab waa. Wad wac."),
        ("Waa wab. Wac wad.", "Wba wcb. Wac wad."),
    ],
)
def test_texts_come_out_equal_where_the_print_says_so(
    a: str, b: str, secret: str, unit: Any, path: str | None, pool: SentencePool
) -> None:
    user = {"user_column": "who"} if secret == "user" else {}
    options: list[dict[str, Any]] = [{"memoize": secret, "key": key, **user} for key in KEYS]
    if secret == "seed":
        options = [{"seed": seed} for seed in SEEDS]
    law = create_mechanism("krr", pool.space, 1.0)
    column = {"text_column": path} if path else {}
    made = [SentencePrivatizer(pool, law, unit=unit, **column, **each) for each in options]
    cells: Any = [[{"content": a, "n": 1}], [{"content": b, "n": 2}]] if path else [a, b]
    name = "chat" if path else "text"
    rows = [each({name: cells, "who": ["x", "x"]})[name] for each in made]
    texts = [[cell[0]["content"] if path else cell for cell in row] for row in rows]
    equal = sum(x == y for x, y in texts)
    printed = " ".join(made[0].guarantee.assumptions)

    def key(text: str) -> Any:
        pieces = split_sentences(text) if unit == "sentence" else [text]
        if secret == "seed":
            return pieces if f"have the same {unit}s, whatever" in printed else text
        by_text = "Rows are equal here if their perturbed texts are" in printed
        return text if by_text else pool.look_up(pieces).tolist()

    if key(a) == key(b):
        assert equal == len(rows)
    else:
        assert equal <= 8


# Names


def test_capitalized_words_are_inputs_by_their_shape_within_sentences_only(
    space: EmbeddingSpace,
) -> None:
    """The start of a text and "Dr." are named, since there a name is any other unknown word."""
    said = str(DxPrivatizer(space, "tem", 2.0).guarantee)
    exception = (
        "A capitalized word at the start of a text, or after one of . ! ? : ; …, a quotation"
    )
    assert exception in said
    assert "'Dr. Xu'" in said
    bound = DxPrivatizer(space, "tem", 2.0).guarantee.bound
    assert bound("we met Zorb", "we met Quux") == 0.0
    assert bound("we met Zorb", "we met zorb") > 0.0
    for before in ("", "Dr. ", "called! ", "called? ", "called: ", "called; ", "called… ",
                   'called "', "called (", "called\n"):  # fmt: skip
        assert bound(f"{before}Zorb", f"{before}zorb") == 0.0
    numbers = EmbeddingSpace.from_vectors(["one", "two"], np.eye(2)).with_shapes(
        {"numbers": ["one"]}
    )
    assert exception not in str(DxPrivatizer(numbers, "tem", 2.0).guarantee)

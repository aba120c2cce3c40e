"""Shapes: numbers become numbers and names become names, and nothing of them survives."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.artifact import config_sha256
from hf_dxprivacy.mechanisms import Hierarchical
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader, shape_of
from hf_dxprivacy.text.shapes import (
    FAMILIES,
    NUMBERS,
    SHAPES,
    UNIFORMS,
    chances,
    is_rendered,
    public_names,
    render,
)
from hf_dxprivacy.verify import verify_guarantee

WORDS = (
    "one two three four anna peter maria john red green blue soup bread milk the a met and paid "
    "on at"
).split()
KIN = {"numbers": WORDS[:4], "times": WORDS[:4], "codes": WORDS[8:11], "names": WORDS[4:8]}
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def plain() -> EmbeddingSpace:
    rng = np.random.default_rng(0)
    centers = np.repeat(rng.normal(size=(6, 5)) * 4, [4, 4, 3, 3, 4, 3], axis=0)
    vectors = centers + rng.normal(size=(21, 5))
    return EmbeddingSpace.from_vectors(WORDS, vectors).build_hierarchy(progress=False)


@pytest.fixture(scope="module")
def space(plain: EmbeddingSpace) -> EmbeddingSpace:
    return plain.with_shapes(KIN)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("He paid $1,234.50 on 2019-05-01 at 10:30am, the 3rd time.",
         [None, None, "<amount>", None, "<date>", None, "<time>", None, "<ordinal>", None]),
        ("In 1984 or the 1990s, room 7 of 20391 and 0123456789012345.",
         [None, "<year>", None, None, "<year>", None, "<number:1>", None, "<number:5>", None,
          "<number:12>"]),
        ("Lindqvist met McDonald. Zoe said: \"Mira!\"",
         [None, None, "<name>", None, None, None]),
        ("mail j.s@x.org, @some_one, www.a.b/c, first_last, AB12-34X, 555-123-4567, 3.14",
         [None, "<email>", "<handle>", "<url>", "<handle>", "<code>", "<phone>", "<decimal>"]),
        ("٣٤ 12/05/2020 5kg éclair", ["<number:2>", "<date>", "<code>", None]),
    ],
)  # fmt: skip
def test_shape_is_a_function_of_the_word_and_of_what_is_before(
    text: str, shapes: list[str | None]
) -> None:
    row = RowReader().read(text)
    assert row is not None
    found = [shape_of(word, row.before(at), at == 0) for at, word in enumerate(row.words)]
    assert found == shapes


def test_tokens_are_looked_up_by_what_is_before_them_too() -> None:
    row = RowReader().read(["Anna", "met", "Zoe", ".", "Mira", None, "and", "Lena"])
    assert row is not None
    found = [shape_of(word, row.before(at), at == 0) for at, word in enumerate(row.words)]
    assert found == [None, None, "<name>", None, None, "<name>"]


RENDERED = {
    **{shape: rf"\d{{{k}}}" for k, shape in enumerate(NUMBERS, start=1)},
    "<decimal>": r"\d{1,2}\.\d",
    "<amount>": r"\d{1,3},\d{3}",
    "<ordinal>": r"\d{1,2}(st|nd|rd|th)",
    "<year>": r"(19|20)\d\d",
    "<time>": r"\d{1,2}:\d\d",
    "<date>": r"\d\d/\d\d/\d{4}",
    "<phone>": r"\d{3}-\d{3}-\d{4}",
    "<code>": r"[A-Z]{2}\d{4}",
    "<email>": r"[a-z]{6}@example\.com",
    "<url>": r"https://example\.com/[a-z]{6}",
    "<handle>": r"[a-z]{8}",
    "<name>": r"[A-Z][A-Za-z'-]+",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rendered_shape_is_one_word_of_that_shape(shape: str) -> None:
    rng = np.random.default_rng(1)
    rows = [rng.random(UNIFORMS).tolist() for _ in range(300)]
    ends = [[0.0] * UNIFORMS, [float(np.nextafter(1.0, 0.0))] * UNIFORMS]
    words = [render(shape, uniforms) for uniforms in rows + ends]
    assert all(re.fullmatch(RENDERED[shape], word) for word in words)
    assert all(is_rendered(word, [shape]) for word in words)
    assert all(is_rendered(word.upper(), [shape], any_case=True) for word in words)
    assert sum(chances(word, [shape])[shape] for word in set(words)) <= 1.0 + 1e-9
    before = " @" if shape == "<handle>" else " "
    for word in words:
        row = RowReader().read(f"x{before}{word}.")
        assert row is not None
        assert row.words == ["x", word]
        # Four digits may happen to be a year.
        assert shape_of(word, before, first=False) in (shape, "<year>")
    assert len(set(words)) > (5 if shape == "<number:1>" else 25)
    assert not shape.startswith("<number") or shape == "<number:1>" or words[-2][0] == "1"


@pytest.mark.parametrize(
    "word",
    "john@mail.com https://example.com/john www.john.org 078-05-1120 0123 1066-12-31 32nd 24:00 5pm"
    " 31/12/1999 ab1234 B2B 1,234,567 3.14 Zorblax 1234567890123".split(),
)  # fmt: skip
def test_words_of_a_shape_that_are_never_drawn(word: str, space: EmbeddingSpace) -> None:
    assert shape_of(word, " ", first=False) in SHAPES
    assert not is_rendered(word, SHAPES)
    (found,) = DxPrivatizer(space, "hierarchical", 1.0).posterior([f"it {word}"], k=1)[0][1:]
    assert found == (word, None, ())
    (kept,) = DxPrivatizer(space, "hierarchical", 1.0, stopwords={word}).posterior(f"it {word}")[1:]
    assert kept.probability == 1.0


def test_as_many_originals_as_there_are_words(space: EmbeddingSpace) -> None:
    small = EmbeddingSpace.from_vectors(["3", "two"], np.eye(2)).build_hierarchy(progress=False)
    small = small.with_shapes({"numbers": ["two"]})
    (found,) = DxPrivatizer(small, "hierarchical", 1.0).posterior("3", k=10 * len(small))
    assert found.originals[0][0] == "3"
    assert 2 < len(found.originals) <= len(small)


def test_digits_and_names_are_uniform() -> None:
    rng = np.random.default_rng(2)
    drawn = [render("<number:1>", rng.random(UNIFORMS).tolist()) for _ in range(20_000)]
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == 10
    assert chances("7", SHAPES) == {"<number:1>": 0.1}
    assert chances("1987", SHAPES) == {"<number:4>": 1 / 9000, "<year>": 1 / 130}
    # Chi-square with 9 degrees of freedom: 1e-6 beyond 45.
    assert ((counts - 2000) ** 2 / 2000).sum() < 45
    names = public_names()
    assert len(names) == len(set(names)) > 500
    assert {render("<name>", [k / len(names) + 1e-9]) for k in range(len(names))} == set(names)


def test_no_shape_but_the_known_is_rendered() -> None:
    with pytest.raises(
        InvalidValueError, match="there is no shape '<word>'; shapes are <number:1>"
    ):
        render("<word>", [0.5] * UNIFORMS)


def test_entries_lie_among_their_kin(plain: EmbeddingSpace, space: EmbeddingSpace) -> None:
    tree = space.hierarchy
    assert tree is not None
    assert len(space) == len(plain) + len(SHAPES) == len(tree)
    assert space.shapes == SHAPES
    assert space.words[: len(plain)] == plain.words
    name, anna, soup = space.ids(["<name>", "anna", "soup"])
    sizes = tree.common_sizes(np.array([name, name]), np.array([anna, soup]))
    assert sizes[0] < sizes[1]
    numbers = space.ids(NUMBERS)
    near = tree.common_sizes(numbers[:-1], numbers[1:])
    assert near.max() == len(FAMILIES["numbers"])
    assert (space.is_shape == np.isin(space.words, SHAPES)).all()


def test_shapes_are_stored_and_bound(space: EmbeddingSpace, tmp_path: Path) -> None:
    space.save_pretrained(tmp_path)
    loaded = EmbeddingSpace.from_pretrained(tmp_path)
    assert loaded.shapes == SHAPES
    assert loaded.digest == space.digest
    assert loaded.rescale(2.0).shapes == SHAPES
    config = json.loads((tmp_path / "config.json").read_text())
    for shapes, message in (
        (["<name>", "<word>"], "expected shapes to be words of the vocabulary"),
        (["anna"], "expected shapes to be words of the vocabulary, among <number:1>"),
        ("<name>", "expected shapes to be a list of words"),
        # The digest of the space is another one, to which the tree does not belong.
        (["<name>"], "was made for another space"),
    ):
        changed = config | {"shapes": shapes}
        changed["config_sha256"] = config_sha256(changed)
        (tmp_path / "config.json").write_text(json.dumps(changed))
        with pytest.raises(ArtifactError, match=message):
            EmbeddingSpace.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("kin", "message"),
    [
        ({"animals": ["anna"]}, "to be one of 'numbers', 'times', 'codes', 'names'"),
        ({"names": ["zoe"]}, "expected words of the space as kin of names"),
        ({}, "expected words of the space as kin of numbers, times, codes, names"),
    ],
)
def test_families_need_kin(plain: EmbeddingSpace, kin: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plain.with_shapes(kin)


def test_shapes_are_added_once(space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="has shapes already"):
        space.with_shapes(KIN)


def test_numbers_become_numbers_and_names_names(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(space, "hierarchical", 2.5)
    text = "the milk and 20391 met Lindqvist"
    released = [word for word in privatizer.privatize([text] * 400)]
    numbers = [row.split()[3] for row in released]
    names = [row.split()[5] for row in released]
    assert np.mean([word[0].isdigit() or word in KIN["numbers"] for word in numbers]) > 0.7
    assert np.mean([word in public_names() or word in KIN["names"] for word in names]) > 0.6
    # It is drawn anew even where the shape stays.
    assert numbers.count("20391") < 3
    assert sum(word == "Lindqvist" for word in names) < 20
    assert not any("<" in row for row in released)


def test_nothing_of_a_shape_survives_but_by_chance(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(space, "hierarchical", 8.0, seed=2**70)
    first, second = (
        privatizer({"text": [f"the {word}"] * 300}, range(300))["text"]
        for word in ("1111111", "8888888")
    )
    # The two are one input, and noise is bound to the words: the laws must agree.
    counts = [
        np.bincount([int(d) for row in r for d in row if d.isdigit()], minlength=10)
        for r in (first, second)
    ]
    for count in counts:
        share = count / count.sum()
        assert abs(share[1:] - 0.1).max() < 0.06


@pytest.mark.parametrize("options", [{"seed": 2**70}, {"memoize": "row", "key": KEY}])
def test_rendering_comes_back_with_the_noise(
    space: EmbeddingSpace, options: dict[str, object]
) -> None:
    texts = [f"on {k} Zoe paid 77 and {k}.5 at 10:30 Mira" for k in range(40)]
    whole = DxPrivatizer(space, "hierarchical", 6.0, **options)({"text": texts}, range(40))
    parts = DxPrivatizer(space, "hierarchical", 6.0, **options)
    alone = [parts({"text": [text]}, [k])["text"][0] for k, text in enumerate(texts)]
    assert whole["text"] == alone
    # With a key, rows that differ within shapes only are equal inputs.
    assert len(set(alone)) == (40 if "seed" in options else 2)
    other = options | ({"seed": 2**70 + 1} if "seed" in options else {"key": KEY[::-1]})
    assert DxPrivatizer(space, "hierarchical", 6.0, **other)({"text": texts}, range(40)) != whole


def test_a_name_of_a_user_is_one_name(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(
        space, "hierarchical", 9.0, memoize="user", user_column="who", key=KEY
    )
    rows = {"text": ["the Zoe", "a Zoe", "the Zoe"], "who": ["a", "a", "b"]}
    released = [text.split()[1] for text in privatizer(rows)["text"]]
    assert released[0] == released[1]
    many = {"text": ["the Zoe"] * 50, "who": [str(k) for k in range(50)]}
    assert len({text.split()[1] for text in privatizer(many)["text"]}) > 20


def test_fresh_renderings_differ(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(space, "hierarchical", 9.0)
    assert len(set(privatizer.privatize(["the 123456"] * 50))) > 30


def test_bound_knows_shapes(space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(space, "hierarchical", 1.5)
    bound = privatizer.guarantee.bound
    assert bound("the 20391", "the 99999") == 0.0
    assert bound("the Zoe", "the Mira") == 0.0
    to_number = bound("the 20391", "the 203")
    to_soup = bound("the 20391", "the soup")
    assert 0.0 < to_number < to_soup <= privatizer.guarantee.ldp_epsilon
    # At the start of a sentence a capital tells nothing, and the word is unknown.
    assert bound("Zoe", "Qwxz") == 0.0
    assert bound("the Zoe", "the zoe") > 0.0
    assert "inputs by their shape" in str(privatizer.guarantee)
    assert "any word of the space with the same probability" in str(privatizer.guarantee)


def test_the_guarantee_holds_with_shapes(space: EmbeddingSpace) -> None:
    found = verify_guarantee(Hierarchical(space, 1.5))
    assert found.passed
    assert found.inputs == len(space) + 1
    privatizer = DxPrivatizer(space, "hierarchical", 1.5)

    def drawn(words: list[str]) -> list[str]:
        return [text.removeprefix("x ") for text in privatizer.privatize([f"x {w}" for w in words])]

    def bound(a: str, b: str) -> float:
        return privatizer.guarantee.bound(f"x {a}", f"x {b}")

    words = ["77", "78", "777", "Zoe", "Mira", "zoe", "soup", "anna", "10:30"]
    assert verify_guarantee(drawn, words, bound, draws=60_000).passed

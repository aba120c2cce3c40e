"""What a word is, and that nothing with content is left between words."""

import itertools
import random
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_dxprivacy.text.words import Splitter, plain_apostrophes

LENGTH = 200_000
SKIN_TONES = range(0x1F3FB, 0x1F400)
SURROGATES = range(0xD800, 0xE000)

# Pieces that the rules treat specially, for texts that run into as many rules as possible.
PIECES = (
    *("www.", "http://", "https://", "HTTPS://", "@", "a", "b1", "_", "..", "'", "’", "-", " "),
    *("1", ",", ":", "/", "%", "+", "=", "$", "👍🏽", "👩\u200d👧", "🇩🇪", "1️⃣", "é", "e\u0301"),
    *("\u0301", "\u200b", "\ufeff", "\x00", "\x85", "\u2028", "中", "ไ", "नि", "\ud83d", "\udc4d"),
)

TEXTS = st.one_of(
    # Cn: a character that the regex library knows and this Python does not may be punctuation.
    st.text(st.characters(exclude_categories=["Cn"])),
    st.lists(st.sampled_from(PIECES)).map("".join),
)


@pytest.fixture(scope="module")
def splitter() -> Splitter:
    return Splitter()


def words_of(text: str) -> list[str]:
    splitter = Splitter()
    return [word for word, _ in splitter.split(splitter.normalize(text))]


def is_carrier(character: str) -> bool:
    """Tell by Python's own tables whether a character may stand between words."""
    if ord(character) in SKIN_TONES:
        return False
    category = unicodedata.category(character)
    return category in ("Cc", "Sc", "Sm", "Sk") or category[0] in "ZP" or character.isspace()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", ["The", "cat", "sat"]),
        ("", []),
        (" \t\r\n\v\f", []),
        ("... -- !? () \"' ` ^ ~ $ € + = < >", []),
        # numbers, dates, times
        ("3.14 1,000.50 10% $5 €3 -7", ["3.14", "1,000.50", "10", "5", "3", "7"]),
        ("2024-01-31 31/01/2024 12:30:45", ["2024-01-31", "31/01/2024", "12:30:45"]),
        ("1.2.3.4 1..2 5. .5 5,", ["1.2.3.4", "1", "2", "5", "5", "5"]),
        ("½ ² ³ Ⅷ ٣٫٥ 4x4 v2.0", ["½", "²", "³", "Ⅷ", "٣", "٥", "4x4", "v2.0"]),
        ("a.5 5.a", ["a", "5", "5", "a"]),
        # e-mail addresses
        ("a.b+c%d@d-e.co.uk, x@y.z.", ["a.b+c%d@d-e.co.uk", "x@y.z"]),
        ("mailto:jo_doe@ex_ample.org", ["mailto", "jo_doe@ex_ample.org"]),
        ("jörg@müller.de", ["jörg@müller.de"]),
        ("a@b @ a@", ["a", "b", "a"]),
        ("o'neil@x.org's, 1:2@x.y", ["o'neil@x.org's", "1:2@x.y"]),
        ("a@b.c@d.e;jo@x.y/z", ["a@b.c@d.e", "jo@x.y", "z"]),
        # URLs lose what ends a sentence, and nothing else
        (
            "(see https://x.y/z?q=1&r=%20#s).",
            ["see", "https://x.y/z?q=1&r=%20#s"],
        ),
        ("www.foo.com, http://a/b; https://c!", ["www.foo.com", "http://a/b", "https://c"]),
        ("http://user:pw@host:8080/p", ["http://user:pw@host:8080/p"]),
        ("http:// www. https://...", ["http", "www", "https"]),
        # user names and tags
        ("@user #tag @a_b #2024", ["user", "tag", "a_b", "2024"]),
        # apostrophes, underscores, hyphens
        ("It's rock’n’roll, 'tis dogs'", ["It's", "rock’n’roll", "tis", "dogs"]),
        ("O'Neil's a''b a'’b", ["O'Neil's", "a", "b", "a", "b"]),
        ("snake_case __init__ a___b _", ["snake_case", "init", "a___b"]),
        ("well-known e-mail a–b a—b", ["well", "known", "e", "mail", "a", "b", "a", "b"]),
        ("and/or C++ C# AT&T", ["and", "or", "C", "C", "AT", "T"]),
        # other scripts; a run without spaces is one word
        ("日本語のテキスト。東京、大阪", ["日本語のテキスト", "東京", "大阪"]),
        ("مرحبا بالعالم، كيف؟", ["مرحبا", "بالعالم", "كيف"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
        ("สวัสดีชาวโลก ครับ", ["สวัสดีชาวโลก", "ครับ"]),
        ("שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
        ("한국어 ΑΒΓ Привет", ["한국어", "ΑΒΓ", "Привет"]),
        # symbols that carry content
        ("™ © ® °C №5", ["™", "©", "®", "°C", "№5"]),
        # private use, unassigned
        ("\ue000x \U0010ffffy", ["\ue000x", "\U0010ffffy"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words_of(text) == [unicodedata.normalize("NFC", word) for word in expected]


@pytest.mark.parametrize(
    "emoji",
    [
        "😀",
        "👍🏽",  # skin tone
        "🏽",  # a skin tone alone
        "👩\u200d👩\u200d👧\u200d👦",  # joined by ZWJ
        "🏳️\u200d🌈",
        "🇩🇪",  # flag
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # flag of tags
        "1️⃣",  # keycaps
        "❤️",
        "☺",
    ],
)
def test_an_emoji_is_one_word(emoji: str) -> None:
    assert words_of(f"a {emoji}, b {emoji}!") == ["a", emoji, "b", emoji]


def test_a_keycap_of_punctuation_leaves_only_the_punctuation() -> None:
    assert words_of("#️⃣") == ["\ufe0f\u20e3"]


@pytest.mark.parametrize(
    "invisible",
    ["\ufeff", "\u200b", "\u200c", "\u200d", "\u2060", "\u00ad", "\u202e", "\U000e0041"],
)
def test_invisible_characters_are_replaced_too(invisible: str) -> None:
    """Text can be hidden in them, so they must not stay between the words."""
    assert words_of(f"a {invisible} b{invisible}") == ["a", invisible, f"b{invisible}"]


def test_control_characters_separate() -> None:
    assert words_of("a\x00b\x1fc\x7fd\x85e\u2028f\u2029g\u00a0h\u3000i") == list("abcdefghi")


def test_combining_marks_belong_to_words() -> None:
    assert words_of("\u0301abc e\u0301te\u0301 q\u0301") == ["\u0301abc", "été", "q\u0301"]


def test_both_normal_forms_are_the_same_words() -> None:
    text = "Ångström naïve café 한국 ﬁn"
    assert words_of(unicodedata.normalize("NFD", text)) == words_of(text)
    assert words_of(text)[-1] == "ﬁn", "compatibility characters stay as they are"


def test_lone_surrogates_become_replacement_characters() -> None:
    """JSON can hold them; no encoding and no Arrow column can."""
    assert words_of("a\ud800b \udfff \ud83d\ude00") == ["a\ufffdb", "\ufffd", "\ufffd\ufffd"]


def test_ascii_is_not_copied(splitter: Splitter) -> None:
    text = "plain text"
    assert splitter.normalize(text) is text


@given(TEXTS)
@settings(max_examples=500, deadline=None)
@example("a@b.c d@e")
@example("www.a www.")
@example("👍🏽🏽x")
def test_words_cover_everything_with_content_and_never_touch(text: str) -> None:
    splitter = Splitter()
    normal = splitter.normalize(text)
    end = 0
    for position, (word, (start, stop)) in enumerate(splitter.split(normal)):
        assert normal[start:stop] == word, "offsets are in characters of the normalized text"
        assert start > end or position == 0, "two words touch"
        assert all(map(is_carrier, normal[end:start]))
        assert not all(map(is_carrier, word))
        end = stop
    assert all(map(is_carrier, normal[end:]))


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = Splitter.normalize(text)
    assert Splitter.normalize(once) == once
    once.encode()


def test_every_assigned_character_is_a_word_or_may_stand_between(splitter: Splitter) -> None:
    characters = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) not in ("Cn", "Co", "Cs")
    ]
    words = {word for word, _ in splitter.split(" ".join(characters))}
    assert [c for c in characters if c not in words and not is_carrier(c)] == []


# Each of these makes some careless pattern try a number of ways that grows with the square of the
# length or faster; the regex library then gives up with an error. Time is left to the test runner.
@pytest.mark.parametrize(
    "unit",
    [
        *("a", "a.", "a_", "a'", "a’", "a@", "a@b", "a@b.", "a@b-", "a.a.a.a.a.a.a.a.@b"),
        *("1.", "1,2", "1:", "1-", "www.", "www.!", "https://", "https://!", "http:", "://"),
        *(
            "_",
            "'",
            "@",
            "%+-",
            "a%",
            "a+",
            "-_",
            "👍🏽",
            "👩\u200d",
            "\u200d",
            "e\u0301",
            "\u0301",
        ),
        *("é", "中", "5%", "#a", "\x00", "\ufeff", "a" * 64 + "@" + "-" * 64, "a@b" + "-_" * 500),
    ],
)
def test_long_texts_of_one_pattern_are_split(splitter: Splitter, unit: str) -> None:
    text = splitter.normalize((unit * (LENGTH // len(unit) + 1))[:LENGTH])
    for variant in (text, f"a@{text}!"):
        words = splitter.split(variant)
        assert sum(len(word) for word, _ in words) <= len(variant)


def pieces(splitter: Splitter, text: str) -> list[str]:
    """Cut a text at the words that the regex library finds."""
    found, end = [], 0
    for word, (start, stop) in splitter.split(text):
        found += [text[end:start], word]
        end = stop
    return [*found, text[end:]]


@given(st.one_of(TEXTS, st.lists(st.sampled_from([*PIECES, "É", "œ", "«", "…", "“"])).map("".join)))
@settings(max_examples=500, deadline=None)
@example("")
@example("it’s 1,000.50 a_b a__ c")
@example("plain é x@y.z plain, www.a.b 東京 大阪 plain")
@example("a 東京 a\u0301 plain  @")
def test_cutting_finds_the_same_words(text: str) -> None:
    splitter = Splitter()
    normal = splitter.normalize(text)
    assert splitter.cut(normal) == pieces(splitter, normal)


def test_cutting_finds_the_same_words_around_every_character(splitter: Splitter) -> None:
    for frame in ("a{}b", "1{}2", "é{}'{}_{}3", "’{}’é{}", "@{}"):
        text = " plain ".join(frame.replace("{}", chr(code)) for code in range(0x3000))
        assert splitter.cut(text) == pieces(splitter, text)
    text = " a".join(chr(code) for code in range(0x10000) if code not in SURROGATES)
    assert splitter.cut(text) == pieces(splitter, text)


@pytest.mark.parametrize(
    "unit",
    ["a'", "1,2", "_", "a_", "a__", "@", "@ a ", "é", "’", "a’", "中 ", "中 a ", "://", "www", " "],
)
def test_long_texts_of_one_pattern_are_cut(splitter: Splitter, unit: str) -> None:
    text = (unit * LENGTH)[: LENGTH // 4]
    for variant in (text, f"{text}@", f"中{text}"):
        assert splitter.cut(variant) == pieces(splitter, variant)


def test_a_word_of_very_many_parts_is_cut_at_a_joint(splitter: Splitter) -> None:
    """In one match, the regex library takes ten million steps and then aborts."""
    parts = 2_500_000
    words = splitter.split("_".join("a" * parts))
    assert sum(word.count("a") for word, _ in words) == parts
    spans = [span for _, span in words]
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))


def test_random_mixtures_of_pieces_are_split(splitter: Splitter) -> None:
    rng = random.Random(3)
    for _ in range(5):
        text = splitter.normalize("".join(rng.choices(PIECES, k=LENGTH // 10)))
        assert splitter.split(text)


def test_plain_apostrophes() -> None:
    assert plain_apostrophes("DON’T") == "don't"

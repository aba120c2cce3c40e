"""Chinese, German and others: how texts are split and looked up, and what a privatizer says."""

import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SentencePool,
    SentencePrivatizer,
    SlotPrivatizer,
)
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.results import share_interval
from hf_dxprivacy.sentences import WordEncoder
from hf_dxprivacy.slots import ContentWordSelector
from hf_dxprivacy.text import RowReader, segmenters
from hf_dxprivacy.text.segmenters import identity

TEXT = "我在北京学习数学。他在上海学习音乐，你呢？"
SPLIT = "我 在 北京 学习 数学 他 在 上海 学习 音乐 你 呢".split()
WORDS = "我 在 北京 上海 广州 学习 数学 音乐 历史 他 你 老师 学生 喜欢".split()
SURE = 1 - 1e-6


@pytest.fixture(scope="module")
def reader() -> RowReader:
    return RowReader("jieba")


@pytest.fixture(scope="module")
def chinese() -> EmbeddingSpace:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 6))
    return EmbeddingSpace.from_vectors(WORDS, vectors).build_hierarchy(progress=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT, SPLIT),
        ("价格3.14元，2023年", ["价格", "3.14", "元", "2023", "年"]),
        ("用Python编程", ["用", "Python", "编程"]),
        # Of an address, what is before and after it is not a part.
        ("我的邮箱是a.b@c.cn请联系", ["我", "的", "邮箱", "是", "a.b@c.cn", "请", "联系"]),
        ("看 https://x.org/中文?a=b 吧", ["看", "https://x.org/中文?a=b", "吧"]),
        ("老师@中国.cn", ["老师", "@中国.cn"]),
        # Characters that the dictionary lacks are words of their own; so are kana, as a run.
        ("𠀀𠀁好", ["𠀀", "𠀁", "好"]),
        ("学生です", ["学生", "です"]),
        ("สวัสดี 안녕 Häuser", ["สวัสดี", "안녕", "Häuser"]),
    ],
)
def test_chinese_runs_are_split_by_the_dictionary(
    reader: RowReader, text: str, words: list[str]
) -> None:
    assert reader.read_text(text).words == words


PIECES = (
    "北京",
    "我",
    "㐀",
    "𠀀",
    "a",
    "é",
    "1",
    "@",
    "www.",
    "https://",
    "'",
    ".",
    "。",
    " ",
    "の",
)
ANY = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@given(ANY)
@settings(max_examples=300, deadline=None)
def test_the_text_is_that_of_its_words_and_separators(text: str) -> None:
    plain, further = RowReader().read_text(text), RowReader("jieba").read_text(text)
    assert further.detokenize(further.words) == RowReader.normalize(text)
    assert all(further.words)
    # Only what was a word is cut, and nothing between two words is lost.
    assert [s for s in further.separators if s] == [s for s in plain.separators if s]
    assert "".join(further) == "".join(plain)


def test_a_long_run_takes_linear_time_and_memory(
    reader: RowReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = RowReader("jieba").read_text("学习数学" * 25)
    monkeypatch.setattr(segmenters, "LONGEST", 100)
    assert reader.read_text("学习数学" * 50).words == short.words * 2
    monkeypatch.setattr(segmenters, "LONGEST", 3)
    assert RowReader("jieba").read_text("学习数学").words == ["学习", "数", "学"]


def test_a_list_of_tokens_stays_as_it_is(reader: RowReader) -> None:
    row = reader.read(["我在北京", "，", None])
    assert row is not None
    assert list(row) == ["我在北京"]


def test_the_dictionary_is_that_of_the_package_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No word of the user's, no cache where others may write, nothing on standard error."""
    import jieba

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    segmenters._jieba.cache_clear()
    assert RowReader("jieba").read_text("我在北京").words == ["我", "在", "北京"]
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")
    jieba.add_word("我在北京", 10**9)
    try:
        assert jieba.lcut("我在北京", HMM=False) == ["我在北京"]
        assert RowReader("jieba").read_text("我在北京").words == ["我", "在", "北京"]
    finally:
        jieba.del_word("我在北京")


def test_segmenters_are_pinned_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = identity("jieba")
    assert found.startswith("jieba 0.42.1, dictionary ")
    assert (identity(found), identity("words")) == (found, "words")
    with pytest.raises(
        InvalidValueError, match=r"which is installed; run: pip install jieba==0\.9"
    ):
        identity("jieba 0.9, dictionary 000000000000")
    with pytest.raises(InvalidValueError, match="one of 'words', 'jieba', got 'Jieba'; texts that"):
        RowReader("Jieba")
    with pytest.raises(InvalidTypeError, match="to be a name, got a function; texts that other"):
        RowReader(lambda text: text)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "jieba", None)
    segmenters._jieba.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'hf-dxprivacy\[chinese\]'"):
        RowReader("jieba")
    RowReader("words")


def test_a_chinese_release_has_other_words_and_no_spaces(chinese: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(chinese, "hierarchical", 0.5, segmenter="jieba")
    released = privatizer.privatize([TEXT] * 30)
    assert all(" " not in text and text.count("。") == 1 for text in released)
    assert len({*released}) > 25
    everything = "".join(released)
    assert "呢" not in everything
    assert {*everything} <= {*"".join(WORDS), *"。，？"}
    whole = DxPrivatizer(chinese, "hierarchical", 0.5)
    # A clause is one unknown word without it, and the owner of the data is told.
    (text,) = whole.privatize([TEXT])
    assert len(text) <= 9
    assert whole.unknown_share == 1.0
    assert privatizer.unknown_share == pytest.approx(1 / 12)


def test_the_law_of_a_word_does_not_depend_on_its_neighbours(chinese: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(chinese, "krr", 2.0, segmenter="jieba")
    law, count = privatizer.mechanism, 4000
    stays = law.probabilities(chinese.ids(["北京"]))[0, chinese.ids(["北京"])[0]]
    tokens = privatizer.privatize([["在", "北京", "学习"]] * count)
    texts = privatizer.privatize(["北京"] * count)
    kept = privatizer.privatize(["在北京。"] * count)
    for same in (
        sum(row[1] == "北京" for row in tokens),
        sum(text == "北京" for text in texts),
        sum(text.endswith("北京。") for text in kept),
    ):
        interval = share_interval(same, count, SURE)
        assert interval.low < stays < interval.high


def test_the_guarantee_names_the_segmenter_and_bounds_what_it_found(
    chinese: EmbeddingSpace,
) -> None:
    privatizer = DxPrivatizer(chinese, "hierarchical", 1.0, segmenter="jieba")
    stated = str(privatizer.guarantee)
    assert f"split into words by a public segmenter ({identity('jieba')})" in stated
    assert "segmenter" not in str(DxPrivatizer(chinese, "hierarchical", 1.0).guarantee)
    bound, one = privatizer.guarantee.bound, privatizer.mechanism.id_bound
    pair = chinese.ids(["北京", "上海"])
    expected = one(pair[:1], pair[1:])
    assert bound("我在北京", "我在上海") == pytest.approx(expected)
    assert bound("我在北京", "我在") == float("inf")
    assert bound("我在北京", "我 在北京") == float("inf")


def test_it_is_stored_and_travels(chinese: EmbeddingSpace, tmp_path: Path) -> None:
    chinese.save_pretrained(tmp_path / "space")
    space = EmbeddingSpace.from_pretrained(tmp_path / "space")
    privatizer = DxPrivatizer(space, "hierarchical", 1.0, segmenter="jieba", seed=2**70)
    privatizer.save_pretrained(tmp_path / "stored")
    loaded = DxPrivatizer.from_pretrained(tmp_path / "stored", seed=2**70)
    assert loaded.segmenter == privatizer.segmenter == identity("jieba")
    assert loaded.privatize([TEXT]) == privatizer.privatize([TEXT])
    assert identity("jieba") in (tmp_path / "stored" / "README.md").read_text("utf-8")
    sent: DxPrivatizer = pickle.loads(pickle.dumps(privatizer))
    assert sent.privatize([TEXT]) == privatizer.privatize([TEXT])
    plain = DxPrivatizer(space, "hierarchical", 1.0, seed=2**70)
    assert pickle.dumps(plain) != pickle.dumps(privatizer)
    assert "segmenter" not in plain.config.to_dict()
    path = tmp_path / "stored" / "privatizer.json"
    stored = json.loads(path.read_text())
    other = {"segmenter": "jieba 0.1, dictionary 0123456789ab"}
    path.write_text(json.dumps(bind(stored | other)))
    with pytest.raises(ArtifactError, match=r"expected the segmenter 'jieba 0\.1, dictionary 01"):
        DxPrivatizer.from_pretrained(tmp_path / "stored")


def test_options_that_do_not_go_with_it(chinese: EmbeddingSpace) -> None:
    def made(**options: Any) -> DxPrivatizer:
        return DxPrivatizer(chinese, "krr", 1.0, segmenter="jieba", **options)

    with pytest.raises(InvalidValueError, match="there are none; leave one of them out"):
        made(is_split_into_words=True)
    with pytest.raises(InvalidValueError, match="'学习数学'; texts are split"):
        made(stopwords=["学习数学"])
    assert "在" in made(stopwords=["在"]).privatize(TEXT)
    with pytest.raises(InvalidValueError, match="does not show which they are; release lists of"):
        made().posterior("我在上海")
    (row,) = made().posterior([["我", "在"]])
    assert [each.word for each in row] == ["我", "在"]


def test_maps_slots_and_files(chinese: EmbeddingSpace, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict({"text": [TEXT, None, ""], "n": [1, 2, 3]})
    privatizer = DxPrivatizer(chinese, "hierarchical", 1.0, segmenter="jieba", seed=2**70)
    one, two = (
        rows.map(privatizer, batched=True, batch_size=size, num_proc=count, with_indices=True)
        for size, count in ((1, None), (2, 2))
    )
    assert one["text"][:] == two["text"][:]
    selector = ContentWordSelector(["我", "在", "学习"])
    slots = SlotPrivatizer(
        *(chinese, "krr", 0.1), selector=selector, segmenter="jieba", spans_column="spans"
    )
    released = slots({"text": ["我在北京学习"]})
    (text,), (((start, stop),),) = released["text"], released["spans"]
    assert text.startswith("我在")
    assert text.endswith("学习")
    assert text[start:stop] in WORDS
    chinese.save_pretrained(tmp_path / "space")
    (tmp_path / "in.txt").write_text(f"{TEXT}\n", "utf-8")
    run = ["privatize", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    run += ["--space", str(tmp_path / "space"), "--mechanism", "krr", "--epsilon", "1"]
    assert main([*run, "--segmenter", "jieba", "--report"]) == 0
    released_text = (tmp_path / "out.txt").read_text("utf-8")
    assert {*released_text.strip()} <= {*"".join(WORDS), *"。，？"}
    report = json.loads((tmp_path / "out.txt.report.json").read_text("utf-8"))
    assert report["options"]["segmenter"] == identity("jieba")
    assert main([*run, "--overwrite", "--segmenter", "icu"]) == 2


def test_a_pool_of_chinese_sentences(chinese: EmbeddingSpace, tmp_path: Path) -> None:
    chinese.save_pretrained(tmp_path / "space")
    encoder = WordEncoder(tmp_path / "space", segmenter="jieba")
    sentences = [
        f"{a}在{b}学习{c}。" for a in "我他" for b in ("北京", "上海") for c in ("数学", "音乐")
    ]
    with pytest.raises(InvalidValueError, match="no sentence is left"):
        SentencePool.from_sentences(sentences, encoder.space, progress=False)
    pool = SentencePool.from_sentences(sentences, encoder, progress=False)
    assert len(pool) == 8
    assert pool.look_up(["我在北京学习数学！"]).tolist() == pool.look_up([sentences[0]]).tolist()
    pool.save_pretrained(tmp_path / "pool")
    loaded = SentencePool.from_pretrained(tmp_path / "pool")
    assert loaded.encoder.digest == encoder.digest != encoder.space.digest
    assert loaded.look_up(sentences).tolist() == pool.look_up(sentences).tolist()
    privatizer = SentencePrivatizer(loaded, epsilon=1.0, language="zh", unit="sentence")
    released = privatizer.privatize("我在北京学习历史。他喜欢音乐。")
    assert released.count("。") == 2


GERMAN = ("haus", "häuser", "straße", "Apfel", "EU", "grüße", "geht", "schön", "strasse")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        *(("Häuser", "häuser"), ("HÄUSER", "häuser"), ("Ha\u0308user", "häuser")),
        # A vocabulary with capitals has its nouns written small and large.
        *(("apfel", "Apfel"), ("APFEL", "Apfel"), ("EU", "EU")),
        # Written otherwise in Switzerland, and in capitals.
        *(("STRASSE", "strasse"), ("STRAẞE", "straße"), ("Grüsse", None), ("geht’s", "geht")),
        *(("Haustür", None), ("schon", None)),
    ],
)
def test_german_words_are_looked_up_in_their_forms(word: str, found: str | None) -> None:
    space = EmbeddingSpace.from_vectors(GERMAN, np.eye(len(GERMAN)))
    privatizer = DxPrivatizer(space, "krr", 50.0, oov="drop")
    assert privatizer.privatize(RowReader.normalize(word)) == (found or "")
    other = EmbeddingSpace.from_vectors(["strasse", "a"], np.eye(2))
    assert DxPrivatizer(other, "krr", 50.0).privatize("Straße") == "strasse"


def test_nouns_are_no_names_without_the_family_of_names() -> None:
    words = ["eins", "zwei", "Montag", "Netz", "und"]
    space = EmbeddingSpace.from_vectors(words, np.random.default_rng(0).normal(size=(5, 3)))
    kin = {"numbers": ["eins", "zwei"], "codes": ["Netz"]}
    german = space.with_shapes(kin)
    assert "<name>" not in german.shapes
    privatizer = DxPrivatizer(german, "krr", 40.0, oov="drop")
    found = privatizer.privatize("und Kreuzfahrtschiff 123456 und 10:30 x1")
    assert found.startswith("und  ")
    assert not any(name in found for name in ("123456", "Kreuz", "10:30"))
    stated = str(privatizer.guarantee)
    assert "Numbers and codes, addresses out of vocabulary are inputs by their shape" in stated

"""What the card of a released dataset says, and leaves unsaid."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import datasets
import numpy as np
import pytest
import yaml
from datasets import Dataset, DatasetDict
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SentencePool,
    SentencePrivatizer,
    SlotPrivatizer,
    TokenPrivatizer,
)
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.evaluation.peer_candidates import CusText
from hf_dxprivacy.integrations.redaction import RedactingPrivatizer
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.publishing import ReleasedDataset
from hf_dxprivacy.publishing.released_dataset import Part
from hf_dxprivacy.slots import ContentWordSelector, SpanSelector

WORDS = ["soup", "stew", "cold", "warm", "rude", "kind"]
POINTS = np.array([[0, 0], [0, 1], [3, 0], [3, 1], [6, 0], [6, 1]], dtype=np.float32)


def space(**provenance: Any) -> EmbeddingSpace:
    return EmbeddingSpace.from_vectors(WORDS, POINTS, provenance=provenance)


def header(card: ReleasedDataset) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(str(card).split("---\n")[1])
    return found


def saved(card: ReleasedDataset, folder: Path) -> dict[str, Any]:
    """Return ``croissant.json`` of a card that is saved."""
    card.save_pretrained(folder / "released")
    found: dict[str, Any] = json.loads((folder / "released" / "croissant.json").read_text("utf-8"))
    return found


def of_tokens() -> TokenPrivatizer:
    vocabulary = {word: at for at, word in enumerate((*WORDS, "[UNK]"))}
    return TokenPrivatizer(space(), Tokenizer(WordLevel(vocabulary, unk_token="[UNK]")), "krr", 1.0)


def of_slots() -> SlotPrivatizer:
    return SlotPrivatizer(space(), "tem", 1.0, selector=ContentWordSelector())


def of_sentences() -> SentencePrivatizer:
    return SentencePrivatizer("wordnet-sentences", epsilon=1.0)


def of_words() -> DxPrivatizer:
    return DxPrivatizer(space(), "tem", 1.0)


CASES: list[tuple[Callable[[], Privatizer], str]] = [
    (of_words, "Each word of column 'text' was replaced by a word of a "),
    (of_slots, "Each word of a slot of column 'text' was replaced by a word of a public space, "),
    (of_tokens, "Each token of column 'input_ids' was replaced by a token of a public space, the "
     "same one or another, drawn at random and all others alike."),
    (of_sentences, "Each text of column 'text' was replaced by a sentence of a public pool, dr"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), CASES)
def test_every_privatizer_has_a_card(
    make: Callable[[], Privatizer], said: str, tmp_path: Path
) -> None:
    privatizer = make()
    column = "input_ids" if isinstance(privatizer, TokenPrivatizer) else "text"
    cells: list[Any] = [[0, 1]] * 3 if column == "input_ids" else ["soup and stew"] * 3
    data = Dataset.from_dict({column: cells, "label": [0, 1, 0]})
    released = data.map(privatizer, batched=True)
    card = privatizer.dataset_card(released, license="cc-by-4.0")
    assert said in str(card)
    guarantee = privatizer.guarantee
    for line in guarantee.plain[:2]:
        assert f"- {line}" in str(card)
    found = header(card)
    assert found["license"] == "cc-by-4.0"
    assert {"differential-privacy", "dx-privacy", "metric-dp"} <= {*found["tags"]}
    assert found["dx_privacy"]["unit"] == guarantee.unit
    bounded = math.isfinite(guarantee.ldp_epsilon)
    assert found["dx_privacy"]["ldp_epsilon"] == (guarantee.ldp_epsilon if bounded else None)
    assert "| `label` | in clear: no guarantee holds for it |" in str(card)
    croissant = saved(card, tmp_path)
    assert croissant["conformsTo"][1] == "http://mlcommons.org/croissant/RAI/1.0"
    assert said in croissant["rai:dataManipulationProtocol"]
    sensitive = croissant["rai:personalSensitiveInformation"]
    assert sensitive[0] == "Privatized under ε·d (metric differential privacy), not anonymous."
    assert sensitive[-1] == "In clear, without any guarantee: column 'label'."
    uncovered = [s for s in guarantee.assumptions if "Not covered" in s and "publish" not in s]
    assert {*uncovered} <= {*croissant["rai:dataLimitations"]}
    stated = json.loads((tmp_path / "released" / "guarantee.json").read_text("utf-8"))
    assert stated["guarantee"] == guarantee.to_dict()
    assert stated["privatizer"] == type(privatizer).__name__
    for name in ("README.md", "guarantee.json", "croissant.json"):
        text = (tmp_path / "released" / name).read_text("utf-8")
        assert str(tmp_path) not in text
        assert "anonymized" not in text


def test_what_is_released_as_it_is_is_said() -> None:
    kept = DxPrivatizer(space(), "tem", 1.0, oov="keep", stopwords={"and", "the"})
    card = str(kept.dataset_card(["text"]))
    assert "But 2 stop words are in clear. But words out of vocabulary are in clear." in card
    assert "\n> **HOLE" in card
    assert "- HOLE" in card.partition("## Not covered")[2]
    assert header(kept.dataset_card(["text"]))["dx_privacy"]["ldp_epsilon"] is None
    dropped = DxPrivatizer(space(), "tem", 1.0, oov="drop")
    assert "But words out of vocabulary were removed." in str(dropped.dataset_card(["text"]))
    memoized = DxPrivatizer(space(), "tem", 1.0, memoize="row", key=bytes(range(40)))
    assert "| memoize | row |" in str(memoized.dataset_card(["text"]))
    slots = str(of_slots().dataset_card(["text"]))
    assert "| `text` | words of slots: privatized; all others: in clear |" in slots
    assert "Every other word is in clear." in slots


def test_labels_bound_what_holds() -> None:
    pool = SentencePool.from_sentences(
        ["A soup that is cold.", "A stew that is warm."] * 3 + ["He was rude.", "She was kind."],
        "english",
        labels=["food"] * 6 + ["people"] * 2,
    )
    made = SentencePrivatizer(pool, epsilon=1.0, label_column="topic")
    card = str(made.dataset_card(["text", "topic"]))
    assert (
        "at most exp(ε·d) times as likely if the text was w as if it was any other text w′ of the "
        "same label at a distance d from w, where"
    ) in card
    assert header(made.dataset_card(["text"]))["dx_privacy"]["among"] == "one label"
    assert made.guarantee.to_dict()["among"] == "one label"
    assert "among" not in header(of_sentences().dataset_card(["text"]))["dx_privacy"]
    assert "| `topic` | in clear" in card


@pytest.mark.parametrize(
    ("licence", "forbids"),
    [("CC BY-NC 4.0", True), ("cc-by-nc-sa-3.0", True), ("pddl", False), ("Non-Commercial", True)],
)
def test_the_licence_of_the_space_is_named(
    licence: str, forbids: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released = Dataset.from_dict({"text": ["soup and"]})
    privatizer = DxPrivatizer(space(licence=licence), "tem", 1.0)
    card = privatizer.dataset_card(released, license="mit")
    assert f"is from a space under: {licence}." in str(card)
    assert ("forbids commercial use" in str(card)) == forbids == card.non_commercial
    card.save_pretrained(tmp_path / "a")
    said = "which forbids commercial use, and the licence 'mit' does not"
    assert (said in caplog.text) == forbids
    caplog.clear()
    card.save_pretrained(tmp_path / "b", license="cc-by-nc-4.0")
    assert not caplog.records
    assert json.loads((tmp_path / "a" / "guarantee.json").read_text())["space"]["licences"] == [
        licence
    ]


def test_all_licences_of_a_pool_that_was_joined_are_named() -> None:
    texts = ["A soup that is cold.", "A stew that is warm."], ["He was rude.", "She was kind."]
    provenance = {"licence": "cc-by-nc-4.0"}
    first = SentencePool.from_sentences(texts[0], "english", provenance=provenance)
    second = SentencePool.from_sentences(texts[1], first, provenance={"licence": "mit"})
    made = SentencePrivatizer(SentencePool.union([first, second]), epsilon=1.0)
    card = made.dataset_card(["text"])
    assert card.space_licences == ["cc-by-nc-4.0", "mit"]
    assert card.non_commercial
    assert "states no licence" not in str(card)
    third = SentencePool.from_sentences(["It was a long day."], first)
    two = SentencePool.union([first, third])
    for pool, more in ((two, []), (SentencePool.union([two, second]), ["mit"])):
        card = SentencePrivatizer(pool, epsilon=1.0).dataset_card(["text"])
        assert card.space_licences == ["cc-by-nc-4.0", *more, "unknown"]
        assert "unknown. **A part of it states no licence: ask who made it.** **That" in str(card)
    none = SentencePrivatizer(SentencePool.union([third, third]), epsilon=1.0)
    assert "is from a pool whose licence is not known." in str(none.dataset_card(["text"]))


def test_sentences_of_a_pool_that_ships_bear_its_licence(tmp_path: Path) -> None:
    made = of_sentences()
    texts = Dataset.from_dict({"text": ["It was cold."]})
    made.dataset_card(texts.map(made, batched=True)).save_pretrained(tmp_path / "released")
    assert "Princeton" in (tmp_path / "released" / "LICENSE-WordNet.txt").read_text()


def test_an_unknown_licence_of_a_space_is_said() -> None:
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(["text"])
    assert "is from a space whose licence is not known." in str(card)
    assert header(card)["license"] == "unknown"
    with pytest.raises(InvalidValueError, match=r"there is no licence.*pass license="):
        ReleasedDataset(card.claim, ("text",), {"train": _part(1)}).push_to_hub("me/x")
    named = DxPrivatizer(space(licence="CC BY-NC 4.0"), "tem", 1.0).dataset_card(["text"])
    of_it = ReleasedDataset(named.claim, ("text",), {"train": _part(1)})
    with pytest.raises(InvalidValueError, match="all in it comes from is under CC BY-NC"):
        of_it.push_to_hub("me/x")


def _part(rows: int) -> Part:
    return Part(rows, ("data/train.csv",), lambda folder: None)


@pytest.mark.parametrize(
    ("rows", "category"),
    [(1, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**9, "n>1B")],
)
def test_size_category(rows: int, category: str) -> None:
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(["text"])
    sized = ReleasedDataset(card.claim, card.columns, {"train": _part(rows)})
    assert header(sized)["size_categories"] == [category]


def test_the_space_of_a_folder_has_no_name(tmp_path: Path) -> None:
    space().save_pretrained(tmp_path / "of-patients")
    made = DxPrivatizer.from_pretrained(tmp_path / "of-patients", mechanism="tem", epsilon=1.0)
    card = made.dataset_card(["text"])
    card.save_pretrained(tmp_path / "released")
    for path in (tmp_path / "released").iterdir():
        assert "patients" not in path.read_text("utf-8")
    assert "| space | not published |" in str(card)


def test_rows_that_are_shown_are_cut_and_stay_in_their_block() -> None:
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(["text", "a|b"])
    row = {"text": "soup " * 99, "a|b": "```\n# <b>\ud83d", "parts": [b"\0"] * 9, "n": 1.5}
    shown = str(ReleasedDataset(card.claim, card.columns, {}, [row]))
    block = shown.partition("```json\n")[2].partition("\n```")[0]
    read = json.loads(block)
    assert read["text"] == f"{'soup ' * 40}…"
    assert read["a|b"] == "```\n# <b>?"
    assert read["parts"] == ["bytes"] * 6 + ["…"]
    assert "| `a\\|b` | in clear" in shown


def test_what_a_column_is_called_steers_no_terminal() -> None:
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(["text", "\x1b[2Ja\x9b\u202eb"])
    shown = str(card)
    assert r"| `\u001b[2Ja\u009b\u202eb` | in clear" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)


def test_no_field_of_a_claim_ends_its_code() -> None:
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(["text"])
    evil = "`<script>"
    claim = card.claim | {
        "privatizer": evil,
        "mechanism": {"mechanism": evil, evil: evil},
        "options": {evil: evil},
        "space": card.claim["space"] | {"digest": evil},
    }
    shown = str(ReleasedDataset(claim, card.columns)).partition("---\n\n# ")[2]
    outside = re.sub("`[^`\n]*`", "", shown)
    assert "<script>" not in outside
    assert "| mechanism | `'<script>` |" in shown


def test_a_claim_chooses_no_folder(tmp_path: Path) -> None:
    card = of_pool().dataset_card(["text"])
    for name in ("LICENSE", "LICENSE.txt"):
        (tmp_path / name).write_text("of someone else")
    for name in (str(tmp_path), "../builtin/wordnet-sentences", ["english"]):
        space = card.claim["space"] | {"ships": True, "name": name}
        altered = ReleasedDataset(card.claim | {"space": space}, card.columns)
        altered._save(folder := Path(mkdtemp(dir=tmp_path)))
        assert [path.name for path in folder.iterdir()] == ["guarantee.json"]


def test_files_of_this_machine_are_not_published() -> None:
    rows = Dataset.from_dict({"text": ["soup"], "scan": ["/home/anna/scan.png"]})
    rows = rows.cast_column("scan", datasets.Image())
    with pytest.raises(InvalidValueError, match="column 'scan' may refer to files of this") as e:
        DxPrivatizer(space(), "tem", 1.0).dataset_card(rows)
    assert "anna" not in str(e.value)


def test_large_data_are_cut_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hf_dxprivacy.publishing.claim.SHARD_BYTES", 400)
    rows = Dataset.from_dict({"text": ["soup stew"] * 100})
    card = DxPrivatizer(space(), "tem", 1.0).dataset_card(rows)
    card.save_pretrained(tmp_path / "released")
    files = sorted((tmp_path / "released" / "data").iterdir())
    assert len(files) > 2
    (config,) = header(card)["configs"]
    assert config["data_files"][0]["path"] == [f"data/{path.name}" for path in files]
    read = Dataset.from_parquet([str(path) for path in files], cache_dir=str(tmp_path / "cache"))
    assert read["text"][:] == rows["text"][:]


def test_words_that_read_as_others_are_no_originals() -> None:
    """A word that the segmenter cuts, as phrases of word2vec, is unknown in its own release."""
    words = [f"new_{word}" for word in WORDS]
    privatizer = DxPrivatizer(EmbeddingSpace.from_vectors(words, POINTS), "tem", 1.0)
    rows = Dataset.from_dict({"text": [" ".join(words)] * 9})
    assert privatizer.dataset_card(rows).parts["train"].rows == 9
    with pytest.raises(InvalidValueError, match="54 of 54 words in column 'text' cannot have"):
        DxPrivatizer(space(), "tem", 1.0).dataset_card(
            Dataset.from_dict({"text": ["a b c d e f"] * 9})
        )


@pytest.mark.parametrize("options", [{}, {"case": "preserve"}, {"stopwords": "english"}])
def test_releases_of_built_in_spaces_are_taken(options: dict[str, Any]) -> None:
    texts = ["Someone in Ohio used my credit card 1234 to buy, for Anna, a TV!", "It's 3 o'clock."]
    privatizer = DxPrivatizer.from_pretrained(
        "english", mechanism="hierarchical", epsilon=1.0, **options
    )
    rows = Dataset.from_dict({"text": texts * 500})
    card = privatizer.dataset_card(rows.map(privatizer, batched=True))
    assert len(card.examples) == 3
    if not options:
        with pytest.raises(InvalidValueError, match="cannot have come out of this privatizer"):
            privatizer.dataset_card(rows)


ORIGINAL = "My name is Siobhan Kowalczyk, SSN 078-05-1120, mail sk@x.org: Dr Zorblax saw me in 2099"
FOOD = [f"Susan ate {k} cold soups in 1999, and {what}." for k, what in enumerate(WORDS, 3)]
PEOPLE = [f"Kevin met {k} of them in 2001, and was {what}." for k, what in enumerate(WORDS, 3)]


def of_pool(**options: Any) -> SentencePrivatizer:
    labels = ["food"] * len(FOOD) + ["people"] * len(PEOPLE)
    pool = SentencePool.from_sentences(FOOD + PEOPLE, "english", labels=labels, progress=False)
    return SentencePrivatizer(pool, epsilon=1.0, **options)


def of_entities() -> RedactingPrivatizer:
    found = SpanSelector(lambda text: [(0, 2, "PRONOUN")], ["PRONOUN"])
    return RedactingPrivatizer("english", "hierarchical", 1.0, redact=found)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DxPrivatizer("english", "hierarchical", 1.0, case="preserve"),
        lambda: DxPrivatizer("english", "hierarchical", 1.0, stopwords="english"),
        lambda: DxPrivatizer("english", "hierarchical", 1.0, oov="keep"),
        of_entities,
        lambda: of_pool(label_column="topic"),
        lambda: of_pool(refill=True),
        lambda: of_pool(refill=True, label_column="topic"),
        lambda: of_pool(unit="sentence", label_column="topic"),
    ],
)
def test_originals_are_refused_whatever_the_options(make: Callable[[], Privatizer]) -> None:
    privatizer = make()
    rows = Dataset.from_dict({"text": [ORIGINAL] * 60, "topic": ["food", "people"] * 30})
    released = rows.map(privatizer, batched=True)
    assert privatizer.dataset_card(released).parts["train"].rows == 60
    with pytest.raises(InvalidValueError, match="in column 'text' cannot have come out"):
        privatizer.dataset_card(rows)


def test_numbers_and_addresses_of_originals_are_refused() -> None:
    privatizer = DxPrivatizer("english", "hierarchical", 1.0)
    rows = Dataset.from_dict({"text": ["of the 078-05-1120 and jo@x.org on 31/12/1999"] * 9})
    with pytest.raises(InvalidValueError, match="27 of 63 words in column 'text' cannot have"):
        privatizer.dataset_card(rows)
    drawn = ["of the 212-555-0187 and abcdef@example.com on 28/12/1999"] * 9
    assert privatizer.dataset_card(Dataset.from_dict({"text": drawn})).examples


def test_sentences_of_another_label_are_refused() -> None:
    privatizer = of_pool(label_column="topic", text_column="chat[].text")
    chats = [[{"text": text}, {"text": text}] for text in FOOD]
    rows = Dataset.from_dict({"chat": chats, "topic": ["food"] * 6})
    assert privatizer.dataset_card(rows).examples
    for topic in ("people", "music"):
        wrong = rows.remove_columns("topic").add_column("topic", [topic] * 6)
        with pytest.raises(InvalidValueError, match="12 of 12 texts in column 'chat' cannot have"):
            privatizer.dataset_card(wrong)
    # Without the labels, any sentence of the pool may be one.
    assert privatizer.dataset_card(rows.remove_columns("topic")).examples


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_originals_are_found_wherever_they_stand(order: slice) -> None:
    privatizer = DxPrivatizer("english", "hierarchical", 1.0)
    texts = (["a fine day"] * 3000 + [ORIGINAL] * 60)[order]
    with pytest.raises(InvalidValueError, match="cannot have come out of this privatizer"):
        privatizer.dataset_card(Dataset.from_dict({"text": texts}))
    # Every other row, so that those that are evenly spaced are all of one kind.
    texts = (["a fine day", ORIGINAL] * 1000)[order]
    with pytest.raises(InvalidValueError, match="cannot have come out of this privatizer"):
        privatizer.dataset_card(Dataset.from_dict({"text": texts}))


def test_the_card_says_that_texts_with_slots_are_not_checked() -> None:
    said = "Nor were these searched for originals: with slots any text may come out."
    assert said in str(of_slots().dataset_card(Dataset.from_dict({"text": [ORIGINAL] * 9})))
    assert said not in str(of_words().dataset_card(["text"]))


def test_texts_of_another_segmenter_have_a_card() -> None:
    """Their words touch, so that a release does not show which they are."""
    chinese = EmbeddingSpace.from_vectors(["湖", "水", "大", "山", "火", "风"], POINTS)
    privatizer = DxPrivatizer(chinese, "tem", 1.0, segmenter="jieba")
    rows = Dataset.from_dict({"text": ["湖水很大。"] * 3})
    assert privatizer.dataset_card(rows.map(privatizer, batched=True)).parts["train"].rows == 3
    with pytest.raises(InvalidValueError, match="6 of 6 words in column 'text' cannot have come"):
        privatizer.dataset_card(Dataset.from_dict({"text": [["soup", "stew"]] * 3}))


def test_chats_and_tokens_of_a_data_set() -> None:
    turns = [{"role": "user", "content": "soup, stew"}, {"role": "assistant", "content": "Noted!"}]
    chats = Dataset.from_dict({"messages": [turns] * 3})
    of_users = DxPrivatizer(space(), "tem", 1.0, text_column="messages[].content", roles=("user",))
    card = of_users.dataset_card(DatasetDict(train=chats, test=chats), license="mit")
    assert "of the role user only: privatized; everything else in it: in clear" in str(card)
    assert "Splits: `train`, `test`." in str(card)
    of_none = DxPrivatizer(space(), "tem", 1.0, text_column="messages[].content", roles="customer")
    with pytest.raises(InvalidValueError, match="of the roles 'customer', in 6 texts that were"):
        of_none.dataset_card(chats)
    of_all = DxPrivatizer(space(), "tem", 1.0, text_column="messages[].content")
    with pytest.raises(InvalidValueError, match="3 of 9 words in column 'messages' cannot have"):
        of_all.dataset_card(chats)
    lists = Dataset.from_dict({"text": [["soup", "stew"], None, []]})
    assert DxPrivatizer(space(), "tem", 1.0).dataset_card(lists).original_columns == []


def test_a_mechanism_without_a_finite_guarantee_is_said_first() -> None:
    words = space()
    card = DxPrivatizer(words, CusText(words, 1.0, k=3)).dataset_card(["text"])
    first = str(card).partition("## Load")[0]
    assert "\n> **WARNING: no finite guarantee between words of different clusters" in first
    assert header(card)["dx_privacy"]["ldp_epsilon"] is None

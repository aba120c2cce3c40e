"""Pools of sentences, and privatizers that release whole sentences."""

import errno
import gzip
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from safetensors.numpy import load_file, save_file
from scipy.stats import chi2
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from hf_dxprivacy import EmbeddingSpace, PrivacyBudget, SentencePool, SentencePrivatizer
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import (
    ArtifactError,
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from hf_dxprivacy.hub.artifact import bind
from hf_dxprivacy.mechanisms import ExactMechanism
from hf_dxprivacy.sentences import (
    StaticEncoder,
    TransformersEncoder,
    WordEncoder,
    clean_sentences,
    cleaning,
    split_sentences,
)
from hf_dxprivacy.sentences import pool as pool_module
from hf_dxprivacy.sentences.projection import projected
from machine import PATIENCE
from small_pools import SENTENCES, small_words

SEED = 314159265358979323846264338327950288
KEY = bytes(range(40))
TEXTS = [
    "The soup was cold. The waiter was rude!",
    "A film about a garden",
    "",
    " \n",
    "日本語だけ",
    "x",
    "doctor " * 20_000,
    *SENTENCES[::4],
]


@pytest.fixture(scope="module")
def words() -> EmbeddingSpace:
    return small_words()


@pytest.fixture(scope="module")
def pool(words: EmbeddingSpace) -> SentencePool:
    return SentencePool.from_sentences(SENTENCES, words, dimensions=6, progress=False)


def test_what_a_pool_leaves_out() -> None:
    sentences = [
        "a b",
        "A good \n day.",
        "A good day.",
        "w " * 41,
        "write to jo@example.org please",
    ]
    kept, left_out = clean_sentences([*sentences, "what a fucking mess this is"])
    assert kept == ["A good day."]
    assert left_out == {"length": 2, "duplicates": 1, "personal data": 1, "slurs": 1}
    with pytest.raises(InvalidTypeError, match="got one string; pass a list"):
        clean_sentences("one string")
    with pytest.raises(InvalidTypeError, match="expected sentences, got a NoneType"):
        clean_sentences(["this is fine", None])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('Dr. Smith left. He said "no"!', ["Dr. Smith left.", 'He said "no"!']),
        ("1. Bring it.\n2. Go.", ["1. Bring it.", "2. Go."]),
        ("今天天气很好。我们去公园吧。", ["今天天气很好。", "我们去公园吧。"]),
        ("It is late. 5", ["It is late. 5"]),
        ("7", ["7"]),
        ("Half \ud83d of it. Go.", ["Half ? of it.", "Go."]),
        (" \n ", []),
    ],
)
def test_sentences_of_a_text(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_long_text_has_the_sentences_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [f"This is number {k} of them." for k in range(200)]
    monkeypatch.setattr(cleaning, "LONGEST", 50)
    assert split_sentences(" ".join(sentences)) == sentences
    # One that is too long is cut at a space, and nothing of it is lost.
    found = split_sentences("word " * 100)
    assert len(found) > 1
    assert " ".join(found) == " ".join(["word"] * 100)


def test_a_vector_depends_on_its_text_alone(pool: SentencePool) -> None:
    together = pool.encoder.encode(TEXTS)
    alone = np.concatenate([pool.encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(pool.look_up(TEXTS), [pool.look_up([t])[0] for t in TEXTS])
    lengths = np.linalg.norm(together, axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0, 0, 0, 0, *[1] * (len(TEXTS) - 6)])


def test_no_bit_of_a_point_depends_on_the_texts_beside_it() -> None:
    # Sums that nearly cancel show the last bit of each product.
    rng = np.random.default_rng(7)
    half, axes = rng.normal(size=(300, 50)), rng.normal(size=(50, 8)).astype(np.float32)
    vectors = np.hstack([half, half + 1e-9 * rng.normal(size=half.shape)])
    projection = np.vstack([axes, -axes])
    offset = np.zeros(100, dtype=np.float32)
    together = projected(vectors, offset, projection)
    for size in (1, 7):
        parts = [projected(vectors[k : k + size], offset, projection) for k in range(0, 300, size)]
        np.testing.assert_array_equal(np.concatenate(parts), together)


def test_a_sentence_of_the_pool_is_its_own_entry(pool: SentencePool) -> None:
    assert pool.look_up(SENTENCES).tolist() == list(range(len(SENTENCES)))
    assert pool.look_up(["", "日本語だけ"]).tolist() == [-1, -1]
    assert pool.sentences == tuple(SENTENCES)
    assert pool.coverage([*SENTENCES, ""])["50%"] == pytest.approx(1)
    assert pool.coverage([*SENTENCES, ""])["unknown"] == pytest.approx(1 / 31)


def test_rare_words_weigh_more(words: EmbeddingSpace) -> None:
    encoder = WordEncoder(words).fitted(SENTENCES)
    (the, city) = words.ids(["the", "city"])
    weights = encoder.tensors["weights"]
    assert 0 < weights[the] < weights[city] < 1
    assert encoder.fitted(["the the the"]) is encoder


def test_labels_of_public_texts_direct_a_pool(words: EmbeddingSpace) -> None:
    labels = [text.split()[1] == "soup" for text in SENTENCES[:12]]
    labelled = (SENTENCES[:12], labels)
    pool = SentencePool.from_sentences(
        SENTENCES, words, labelled=labelled, dimensions=2, progress=False
    )
    assert pool.space.dim == 2
    with pytest.raises(InvalidValueError, match="two different ones at least; got 12 labels, 1"):
        SentencePool.from_sentences(SENTENCES, words, labelled=(SENTENCES[:12], [1] * 12))


def test_a_pool_of_a_dataset(words: EmbeddingSpace) -> None:
    rows = Dataset.from_dict({"text": ["I liked the soup a lot. I liked the film a lot.", None]})
    pool = SentencePool.from_dataset(rows, encoder=words, progress=False)
    assert pool.sentences == ("I liked the soup a lot.", "I liked the film a lot.")
    with pytest.raises(InvalidValueError, match="no column 'body'; columns are 'text'"):
        SentencePool.from_dataset(rows, "body", encoder=words)


def test_cells_that_are_no_texts_are_named(words: EmbeddingSpace) -> None:
    rows = [{"text": float("nan")}, {"text": "I liked the soup a lot."}]
    assert len(SentencePool.from_dataset(iter(rows), encoder=words, progress=False)) == 1
    with pytest.raises(InvalidTypeError, match="row 1, column 'text': expected a text, got a list"):
        SentencePool.from_dataset([{"text": "a b c"}, {"text": ["d"]}], encoder=words)
    with pytest.raises(InvalidTypeError, match="expected rows with columns, got a str; pass one"):
        SentencePool.from_dataset({"train": rows}, encoder=words)  # type: ignore[arg-type]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pool_of_a_file(
    words: EmbeddingSpace, tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    text = "I liked the soup a lot. I liked the film a lot.\r\n\n the train was cold and late"
    (tmp_path / "reviews").write_bytes(pack(("\ufeff" + text).encode()))
    pool = SentencePool.from_file(tmp_path / "reviews", encoder=words, progress=False)
    assert pool.sentences == (
        *("I liked the soup a lot.", "I liked the film a lot."),
        "the train was cold and late",
    )


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "reviews: cannot be read"),
        (b"", "no sentence is left for a pool: there is none"),
        (
            b"the soup was cold\ncaf\xe9 was late",
            "line 2: expected text in UTF-8, got the byte 0xe9",
        ),
        # Without the time, which would give the test another name in each process.
        (gzip.compress(b"the soup " * 99, mtime=0)[:-12], "reviews: truncated or damaged after"),
    ],
)
def test_files_that_are_no_texts(
    words: EmbeddingSpace, tmp_path: Path, content: bytes | None, match: str
) -> None:
    if content is not None:
        (tmp_path / "reviews").write_bytes(content)
    with pytest.raises(InvalidValueError, match=match):
        SentencePool.from_file(tmp_path / "reviews", encoder=words)


def test_sentences_in_another_language_are_left_out() -> None:
    sentences = [
        "The soup was cold and the waiter was rude.",
        "Das Wetter ist heute sehr schön, und wir gehen aus.",
        "Le film était vraiment ennuyeux et trop long.",
        "Фильм был очень скучным.",
    ]
    pool = SentencePool.from_sentences(sentences, "english", progress=False)
    assert pool.sentences == tuple(sentences[:1])
    assert pool.space.provenance["left_out"] == {"language": 3}


def test_personal_data_is_left_out_loudly(
    words: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    private = ["the doctor is jo@example.org now", "please bring the soup to +49 30 1234567"]
    with caplog.at_level("WARNING"):
        pool = SentencePool.from_sentences([*SENTENCES, *private], words, progress=False)
    assert pool.space.provenance["left_out"] == {"personal data": 2}
    assert "left 2 sentences with an e-mail address, handle or long number" in caplog.text
    assert "example" not in caplog.text


def test_a_pool_says_how_near_texts_are_to_it(words: EmbeddingSpace) -> None:
    pool = SentencePool.from_sentences(SENTENCES, words, progress=False)
    found = pool.space.provenance["coverage"]
    assert (found["of"], found["texts"]) == ("its own sentences, each held back in turn", 30)
    cosines = pool.space.vectors @ pool.space.vectors.T
    np.fill_diagonal(cosines, -1)
    assert found["50%"] == pytest.approx(np.median(cosines.max(axis=1)), abs=6e-5)
    texts = ["the soup was late", "日本語だけ"]
    told = SentencePool.from_sentences(SENTENCES, words, held_back=texts, progress=False)
    assert told.space.provenance["coverage"] == {
        "of": "public texts held back",
        "texts": 2,
        **told.coverage(texts),
    }
    assert told.digest == pool.digest


@pytest.mark.parametrize("sentences", [[], ["日本 語 だけ です"], ["a b"]])
def test_nothing_is_left_for_a_pool(words: EmbeddingSpace, sentences: list[str]) -> None:
    with pytest.raises(InvalidValueError, match="no sentence is left for a pool"):
        SentencePool.from_sentences(sentences, words)


def test_a_pool_of_one_sentence(words: EmbeddingSpace) -> None:
    pool = SentencePool.from_sentences(SENTENCES[:1], words, progress=False)
    privatizer = SentencePrivatizer(pool, epsilon=1.0)
    assert privatizer.privatize(["the soup", "", None]) == [SENTENCES[0], SENTENCES[0], None]


# The guarantee


@pytest.mark.parametrize("mechanism", ["hierarchical", "tem", "krr"])
def test_no_log_ratio_is_above_the_bound(pool: SentencePool, mechanism: str) -> None:
    privatizer = SentencePrivatizer(pool, mechanism, 1.3)
    law = privatizer.mechanism
    assert isinstance(law, ExactMechanism)
    logs = np.log(law.probabilities(pool.look_up(TEXTS)))
    largest = np.abs(logs[:, None] - logs[None]).max(axis=2)
    bound = privatizer.guarantee.bound
    bounds = np.array([[bound(a, b) for b in TEXTS] for a in TEXTS])
    assert (largest <= bounds + 1e-9).all()
    assert bounds.max() <= privatizer.guarantee.ldp_epsilon * (1 + 1e-12)
    assert largest.max() > 0.5 * bounds.max()


def test_released_sentences_have_the_law(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=1.5)
    law = privatizer.mechanism
    assert isinstance(law, ExactMechanism)
    text, draws = "the soup was hot", 20_000
    expected = law.probabilities(pool.look_up([text]))[0] * draws
    released = privatizer.privatize([text] * draws)
    found = np.bincount([SENTENCES.index(str(r)) for r in released], minlength=len(SENTENCES))
    statistic = ((found - expected) ** 2 / expected).sum()
    # Exceeded by honest draws with a probability of 1e-6.
    assert statistic < chi2.isf(1e-6, len(SENTENCES) - 1)


def test_the_guarantee_says_what_is_protected(pool: SentencePool) -> None:
    text = str(SentencePrivatizer(pool, epsilon=1.0).guarantee)
    assert "ε·d-private per text" in text
    assert "the nearest of 30 public sentences" in text
    by_sentence = SentencePrivatizer(pool, epsilon=1.0, unit="sentence").guarantee
    assert "the number of sentences of each text" in str(by_sentence)
    assert by_sentence.bound("I left. You left.", "I left.") == np.inf
    two, one = ("The soup. The film.", "A train. A train."), ("The soup.", "A train.")
    second = ("The film.", "A train.")
    assert by_sentence.bound(*two) == pytest.approx(
        by_sentence.bound(*one) + by_sentence.bound(*second)
    )
    with pytest.raises(InvalidTypeError, match="expected two texts, got a missing one"):
        by_sentence.bound("a", None)


# Rows in, rows out


def test_rows_batches_workers_and_tables_agree(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=2.0, seed=SEED, unit="sentence")
    texts = [None, "The soup was cold. I liked the film!", *SENTENCES[:6]]
    dataset = Dataset.from_dict({"text": texts, "stars": list(range(8))})
    arguments = {"with_indices": True, "load_from_cache_file": False}
    released = [
        dataset.map(privatizer, **arguments),
        dataset.map(privatizer, batched=True, batch_size=3, **arguments),
        dataset.map(privatizer, batched=True, num_proc=2, **arguments),
        dataset.with_format("arrow").map(privatizer, batched=True, **arguments),
        dataset.with_format("pandas").map(privatizer, batched=True, **arguments),
    ]
    first = released[0]["text"][:]
    assert first[0] is None
    assert all(other.with_format(None)["text"][:] == first for other in released)
    assert released[0]["stars"][:] == list(range(8))
    frame = privatizer(pd.DataFrame({"text": texts}), indices=range(8))
    assert frame["text"].isna()[0]
    assert frame["text"].tolist()[1:] == first[1:]


def test_a_user_always_gets_the_same_sentence_for_a_text(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(
        pool, epsilon=0.3, memoize="user", user_column="who", key=KEY, output_column="said"
    )
    rows = {"text": ["the soup"] * 40, "who": ["a", "b"] * 20}
    said = privatizer(rows)["said"]
    assert set(said[::2]) == {said[0]}
    assert privatizer(rows)["said"] == said
    many = privatizer({"text": ["the soup"] * 40, "who": list(range(40))})["said"]
    assert len(set(many)) > 5
    assert privatizer.guarantee.ldp_epsilon == np.inf
    with pytest.raises(InvalidValueError, match="call the privatizer on rows"):
        privatizer.privatize("the soup")


@pytest.mark.parametrize("more", [{}, {"stars": [1]}, {"tags": [["a"]]}])
def test_one_short_text_is_a_batch(pool: SentencePool, more: dict[str, object]) -> None:
    """As `with_transform` hands it over."""
    privatizer = SentencePrivatizer(pool, epsilon=2.0, seed=SEED)
    released = privatizer({"text": ["soup"], **more})["text"]
    assert released == [privatizer({"text": "soup"})["text"]]


def test_tokens_of_a_row_are_not_taken_for_texts(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=2.0)
    with pytest.raises(InvalidTypeError, match="expected a text, got a list; join tokens"):
        privatizer({"text": ["the", "soup"], "id": 7})


def test_a_budget_is_charged_first(pool: SentencePool) -> None:
    privatizer = SentencePrivatizer(pool, epsilon=1.0, budget=PrivacyBudget(1.0))
    privatizer({"text": SENTENCES[:3]}, indices=[0, 1, 2])
    with pytest.raises(BudgetExceededError, match="text"):
        privatizer({"text": SENTENCES[:3]}, indices=[2, 3, 4])


def test_texts_and_sentences_do_not_share_a_budget(pool: SentencePool) -> None:
    """Their neighbours differ: one entry for a whole text is none for each of its sentences."""
    budget = PrivacyBudget(9.0)
    SentencePrivatizer(pool, epsilon=1.0, budget=budget).privatize("the doctor")
    with pytest.raises(InvalidValueError, match="ε of different distances do not add up"):
        SentencePrivatizer(pool, epsilon=1.0, unit="sentence", budget=budget).privatize("the city")
    assert budget.spent == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"epsilon": None}, InvalidValueError, "epsilon"),
        ({"unit": "word"}, InvalidValueError, "unit='word'"),
        ({"memoize": "user", "key": KEY}, InvalidValueError, "need user_column="),
        ({"user_column": "who"}, InvalidValueError, "need user_column="),
        ({"epsilom": 2.0}, InvalidTypeError, "did you mean epsilon="),
    ],
)
def test_arguments_that_are_refused(
    pool: SentencePool, arguments: dict[str, object], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        SentencePrivatizer(pool, **{"epsilon": 1.0, **arguments})  # type: ignore[arg-type]


def test_what_is_no_pool_or_no_text(pool: SentencePool, words: EmbeddingSpace) -> None:
    with pytest.raises(InvalidTypeError, match="expected pool to be a SentencePool"):
        SentencePrivatizer(words, epsilon=1.0)  # type: ignore[arg-type]
    privatizer = SentencePrivatizer(pool, epsilon=1.0)
    with pytest.raises(InvalidTypeError, match=r"column 'text', row 1 of the batch: .* got a list"):
        privatizer({"text": ["a", ["b"]]})
    with pytest.raises(
        InvalidTypeError, match="expected a text or a sequence of texts, got an int"
    ):
        privatizer.privatize(7)  # type: ignore[call-overload]
    with pytest.raises(InvalidValueError, match="body"):
        SentencePrivatizer(pool, epsilon=1.0, text_column="body")({"text": ["a"]})


# Folders


@pytest.fixture
def stored(words: EmbeddingSpace, tmp_path: Path) -> Path:
    """The folder of a pool whose encoder is stored beside it."""
    words.save_pretrained(tmp_path / "words")
    encoder = EmbeddingSpace.from_pretrained(tmp_path / "words")
    pool = SentencePool.from_sentences(SENTENCES, encoder, progress=False)
    pool.save_pretrained(tmp_path / "pool", license="mit")
    return tmp_path / "pool"


def test_a_stored_pool_comes_back(stored: Path) -> None:
    pool = SentencePool.from_pretrained(stored)
    assert (
        pool.look_up(TEXTS[:2]).tolist()
        == SentencePool.from_pretrained(stored).look_up(TEXTS[:2]).tolist()
    )
    again = pickle.loads(pickle.dumps(pool))
    assert again.digest == pool.digest
    card = (stored / "README.md").read_text("utf-8")
    assert "30 public sentences" in card
    assert pool.digest in card
    assert "| cosine to the nearest sentence | quartiles 0." in card
    assert str(stored.parent) not in card
    privatizer = SentencePrivatizer(pool, epsilon=1.5, unit="sentence", seed=SEED)
    privatizer.save_pretrained(stored.parent / "privatizer", license="mit")
    loaded = SentencePrivatizer.from_pretrained(stored.parent / "privatizer", seed=SEED)
    assert loaded.unit == "sentence"
    assert loaded.privatize(TEXTS) == privatizer.privatize(TEXTS)
    assert SentencePrivatizer.from_pretrained(stored, epsilon=1.5).pool.digest == pool.digest
    card = (stored.parent / "privatizer" / "README.md").read_text("utf-8")
    assert "Each sentence of a text is replaced" in card


def test_the_command_line_makes_cards_of_pools_and_their_privatizers(stored: Path) -> None:
    pool = SentencePool.from_pretrained(stored)
    SentencePrivatizer(pool, epsilon=1.5).save_pretrained(stored.parent / "privatizer")
    for folder, shown in (
        (stored, "30 public sentences"),
        (stored.parent / "privatizer", "Each text"),
    ):
        (folder / "README.md").write_text("stale")
        assert main(["card", str(folder), "--license", "mit"]) == 0
        assert shown in (folder / "README.md").read_text("utf-8")
    assert SentencePool.from_pretrained(stored).digest == pool.digest


def test_a_pool_with_an_encoder_in_a_folder_is_not_pushed(stored: Path) -> None:
    pool = SentencePool.from_pretrained(stored)
    with pytest.raises(InvalidValueError, match="the encoder is in the local folder"):
        pool.push_to_hub("me/pool", license="mit")


def test_a_pool_in_memory_says_how_to_be_saved(pool: SentencePool, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="the space is in memory only"):
        pool.save_pretrained(tmp_path / "pool")


def test_an_encoder_that_has_changed_is_refused(stored: Path, words: EmbeddingSpace) -> None:
    words.rescale(2.0).save_pretrained(stored.parent / "words")
    with pytest.raises(ArtifactError, match="the space was changed since"):
        SentencePool.from_pretrained(stored)


@pytest.mark.parametrize(
    ("entry", "value", "match"),
    [
        ("sha256", "0" * 64, "encoder.safetensors"),
        ("space", "0" * 64, "made for other sentences"),
        ("kind", "tarot", "there is no encoder 'tarot'; encoders are words, transformers"),
        ("encoder", {"name": "words"}, "the reference to the encoder is damaged"),
        ("more", 1, "unknown more"),
    ],
)
def test_damaged_pools_are_refused(stored: Path, entry: str, value: object, match: str) -> None:
    path = stored / "encoder.json"
    record = json.loads(path.read_text("utf-8")) | {entry: value}
    path.write_text(json.dumps(bind(record)), "utf-8")
    with pytest.raises(ArtifactError, match=match):
        SentencePool.from_pretrained(stored)


def test_a_space_is_no_pool(stored: Path) -> None:
    with pytest.raises(ArtifactError, match="expected a pool of sentences, got a space of words"):
        SentencePool.from_pretrained(stored.parent / "words")


def test_a_privatizer_whose_pool_has_changed_is_refused(stored: Path) -> None:
    pool = SentencePool.from_pretrained(stored)
    SentencePrivatizer(pool, epsilon=1.0).save_pretrained(stored.parent / "privatizer")
    other = SentencePool.from_sentences(SENTENCES[:9], pool.encoder, progress=False)
    other.save_pretrained(stored)
    with pytest.raises(ArtifactError, match="the space was changed since"):
        SentencePrivatizer.from_pretrained(stored.parent / "privatizer")


# Where something is missing or broken


@pytest.mark.parametrize(
    ("package", "work"),
    [
        ("torch", lambda: TransformersEncoder("anywhere")),
        ("model2vec", lambda: StaticEncoder("anywhere")),
        ("sentencex", lambda: split_sentences("One. Two.")),
    ],
)
def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, work: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*hf-dxprivacy\["):
        work()


def test_without_torch_pools_of_words_work(pool: SentencePool) -> None:
    program = "import sys; sys.modules.update(dict.fromkeys(('torch', 'sentencex', 'model2vec')))\n"
    program += "from hf_dxprivacy import SentencePrivatizer as P\n"
    program += "print(P('wordnet-sentences', epsilon=1.3).privatize('The soup was cold.'))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.strip(), done.stderr


def test_a_pool_of_one_sentence_many_times(words: EmbeddingSpace) -> None:
    given = ["the soup\nwas  cold and late"] * 5 + ["The soup was cold and late!"]
    pool = SentencePool.from_sentences(given, words, progress=False)
    assert pool.sentences == ("the soup was cold and late", "The soup was cold and late!")
    # At one place, where the first is taken.
    assert pool.look_up(["soup was late and cold, the", "the train"]).tolist() == [0, 0]
    assert pool.space.provenance["left_out"] == {"duplicates": 4}
    assert SentencePrivatizer(pool, epsilon=1.0).privatize("the soup") in pool.sentences


@pytest.mark.parametrize("name", ["encoder.safetensors", "vectors.safetensors", "vocabulary.txt"])
def test_truncated_files_are_named(stored: Path, name: str) -> None:
    content = (stored / name).read_bytes()
    (stored / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match=name):
        SentencePool.from_pretrained(stored)


def test_a_full_disk_leaves_the_pool_as_it_was(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = SentencePool.from_pretrained(stored)
    before = {path.name: path.read_bytes() for path in stored.iterdir()}

    def full(path: Path, entries: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pool_module, "write_record", full)
    other = SentencePool.from_sentences(SENTENCES[:9], pool.encoder, progress=False)
    with pytest.raises(OSError, match="No space left"):
        other.save_pretrained(stored)
    assert {path.name: path.read_bytes() for path in stored.iterdir()} == before


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A model in the format of model2vec, written by that package."""
    model2vec = pytest.importorskip("model2vec")
    known = sorted({word for sentence in SENTENCES for word in sentence.split()})
    tokenizer = Tokenizer(
        WordLevel({"[UNK]": 0, **{word: at for at, word in enumerate(known, 1)}}, "[UNK]")
    )
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(5).normal(size=(len(known) + 1, 8)).astype(np.float32)
    model2vec.StaticModel(vectors, tokenizer).save_pretrained(tmp_path / "static")
    return tmp_path / "static"


def test_a_pool_over_a_static_model(static: Path) -> None:
    encoder = StaticEncoder(static)
    texts = ["the soup was late", "", "doctor " * 100_000, "日本語だけ"]
    together = encoder.encode(texts)
    np.testing.assert_array_equal(together, np.concatenate([encoder.encode([t]) for t in texts]))
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), [1, 0, 1, 0], atol=1e-6)
    pool = SentencePool.from_sentences(SENTENCES, encoder, progress=False)
    assert pool.look_up(SENTENCES).tolist() == list(range(len(SENTENCES)))
    folder = static.parent / "pool"
    pool.save_pretrained(folder)
    again = SentencePool.from_pretrained(folder)
    assert again.digest == pickle.loads(pickle.dumps(pool)).digest == pool.digest
    assert "`static`: `static`" in (folder / "README.md").read_text("utf-8")
    weights = load_file(static / "model.safetensors")
    save_file({**weights, "embeddings": weights["embeddings"] * 2}, static / "model.safetensors")
    with pytest.raises(ArtifactError, match="has changed since the pool was made"):
        SentencePool.from_pretrained(folder)
    with pytest.raises(InvalidValueError, match="model2vec cannot load it"):
        StaticEncoder(folder)

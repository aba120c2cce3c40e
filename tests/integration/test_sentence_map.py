"""SentencePrivatizer inside the real `datasets`, and to and from a Hub."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Value
from datasets.fingerprint import Hasher

from hf_dxprivacy import EmbeddingSpace, PrivacyBudget, SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from hub_server import HubServer
from machine import PATIENCE
from small_pools import LABELS, SENTENCES, SUBJECTS, small_pool, small_words

SEED = 314159265358979323846264338327950288
KEY = bytes(range(7, 39))
TEXTS = [
    *("It was cold. I liked it!", None, "", " \n", "日本語だけ 🎉", "the soup"),
    *("x", "nobody knew\nwhere it went", "doctor " * 3000, "Dr. Smith liked the film. He left."),
    *SENTENCES[:8],
]
FEATURES = Features(
    {
        "text": Value("string"),
        "title": Value("large_string"),
        "topic": ClassLabel(names=list(SUBJECTS)),
        "who": Value("string"),
        "score": Value("float32"),
    }
)
MODES: dict[str, dict[str, Any]] = {
    "seed": {"seed": SEED},
    "sentences": {"seed": SEED, "unit": "sentence"},
    "labels": {"seed": SEED, "label_column": "topic"},
    "labels of sentences": {"seed": SEED, "label_column": "topic", "unit": "sentence"},
    "refill": {"seed": SEED, "refill": True},
    "row": {"memoize": "row", "key": KEY},
    "user": {"memoize": "user", "key": KEY, "user_column": "who", "label_column": "topic"},
}

Make = Callable[..., SentencePrivatizer]


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    # Numbers and names, for refilling.
    sentences = [f"{s} and {s}, said Susan, {k} times" for k, s in enumerate(SENTENCES, 10)]
    labels = [SUBJECTS.index(label) for label in LABELS]
    return SentencePool.from_sentences(sentences, small_words(), labels=labels, progress=False)


@pytest.fixture(scope="module")
def make(pool: SentencePool) -> Make:
    def make(**arguments: Any) -> SentencePrivatizer:
        return SentencePrivatizer(pool, **{"epsilon": 0.7, **arguments})

    return make


@pytest.fixture
def rows(tmp_path: Path) -> Dataset:
    """Rows in files, so that `map` caches."""
    count = len(TEXTS)
    columns = {
        "text": TEXTS,
        "title": TEXTS[::-1],
        "topic": [k % len(SUBJECTS) for k in range(count)],
        "who": ["ab"[k % 2] for k in range(count)],
        "score": [0.5] * count,
    }
    Dataset.from_dict(columns, features=FEATURES).save_to_disk(tmp_path / "rows")
    return datasets.load_from_disk(tmp_path / "rows")


def texts(data: Any, name: str = "text") -> list[str | None]:
    return [row[name] for row in data]


@pytest.mark.parametrize("mode", MODES)
def test_one_release_whatever_the_batches_processes_and_formats(
    make: Make, rows: Dataset, pool: SentencePool, mode: str
) -> None:
    privatizer = make(**MODES[mode])
    options: dict[str, Any] = {"with_indices": "seed" in MODES[mode], "load_from_cache_file": False}
    whole = rows.map(privatizer, batched=True, **options)
    expected = texts(whole)
    assert whole.features == FEATURES
    assert [text is None for text in expected] == [text is None for text in TEXTS]
    assert not set(expected) - {None} & set(TEXTS)
    for more in ({"batched": True, "batch_size": 4}, {"batched": True, "num_proc": 2}, {}):
        assert texts(rows.map(privatizer, **options, **more)) == expected
    for form in ("numpy", "pandas", "arrow", "polars"):
        formatted = rows.with_format(form).map(privatizer, batched=True, batch_size=5, **options)
        assert texts(formatted.with_format(None)) == expected
    if pd.__version__ >= "3":  # Of a row without a text pandas 2 tells `datasets` no type.
        one = rows.select_columns([*rows.column_names]).with_format("pandas")
        assert texts(one.map(privatizer, **options).with_format(None)) == expected
    stream = {"batched": True, "batch_size": 5, "with_indices": options["with_indices"]}
    shards = rows.to_iterable_dataset()
    assert texts(shards.map(privatizer, **stream)) == expected
    plain = IterableDataset.from_generator(lambda: iter(list(rows)))
    assert texts(plain.map(privatizer, with_indices=options["with_indices"])) == expected
    for row, text in zip(rows, expected, strict=True):
        if text is not None and privatizer.label_column and privatizer.unit == "text":
            assert SUBJECTS[row["topic"]] in text


def test_several_columns_and_new_ones(make: Make, rows: Dataset) -> None:
    columns = {"text_column": ["text", "title"], "output_column": ["a", "b"]}
    privatizer = make(seed=SEED, **columns)
    result = rows.map(privatizer, batched=True, with_indices=True)
    assert result.column_names == [*rows.column_names, "a", "b"]
    assert result.features["a"] == Value("string")
    assert texts(result, "title") == TEXTS[::-1]
    # One text at the same index of two columns has noise of its own.
    same = rows.remove_columns("title").add_column("title", TEXTS)
    twice = same.map(privatizer, batched=True, with_indices=True)
    assert texts(twice, "a") != texts(twice, "b")


def test_splits_and_workers_have_noise_of_their_own(make: Make) -> None:
    same = Dataset.from_dict({"text": ["the soup was cold"] * 60})
    parts = DatasetDict({"train": same, "test": same}).map(make(), batched=True, num_proc=2)
    halves = [texts(parts[name])[start : start + 30] for name in parts for start in (0, 30)]
    assert len({tuple(half) for half in halves}) == 4
    seeded = same.map(make(seed=SEED), batched=True, with_indices=True)
    assert len(set(texts(seeded))) > 10


def test_a_second_map_returns_the_same_release(make: Make, rows: Dataset) -> None:
    release = rows.map(make(), batched=True)
    again = rows.map(make(), batched=True)
    assert (again.cache_files, texts(again)) == (release.cache_files, texts(release))
    assert texts(rows.map(make(), batched=True, load_from_cache_file=False)) != texts(release)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.8},
        {"mechanism": "krr"},
        {"unit": "sentence"},
        {"refill": True},
        {"label_column": "topic"},
        {"language": "de"},
        {"seed": SEED},
        {"output_column": "private"},
    ],
)
def test_other_settings_make_another_release(make: Make, options: dict[str, Any]) -> None:
    plain, other = make(), make(**options)
    before = Hasher.hash(plain), Hasher.hash(other)
    assert before[0] != before[1]
    # What was computed in between is no part of it.
    other({"text": ["soup", "film"], "topic": [0, 1]}, [0, 1])
    assert str(other.guarantee)
    assert (Hasher.hash(plain), Hasher.hash(other)) == before


def test_the_fingerprint_changes_with_labels_encoder_and_pool(make: Make) -> None:
    others = [
        small_pool(),
        small_pool(labels=LABELS[::-1]),
        small_pool(labels=None),
        small_pool(dimensions=5),
        small_pool(small_words().rescale(2.0)),
    ]
    hashes = {Hasher.hash(SentencePrivatizer(other, epsilon=0.7)) for other in others}
    assert len(hashes | {Hasher.hash(make())}) == 6


SCRIPT = """
import sys
import datasets
from hf_dxprivacy import SentencePool, SentencePrivatizer
pool = SentencePool.from_pretrained(sys.argv[1])
privatizer = SentencePrivatizer(pool, epsilon=0.7, label_column="topic", refill=True)
if sys.argv[3] == "used":
    privatizer({"text": ["a"], "topic": [pool.labels[0]]})
    str(privatizer.guarantee)
rows = datasets.load_from_disk(sys.argv[2])
print(rows.map(privatizer, batched=True)["text"][:])
"""


def test_a_release_is_found_by_another_process(rows: Dataset, tmp_path: Path) -> None:
    labels = [str(SUBJECTS.index(label)) for label in LABELS]
    pool = small_pool(small_words(tmp_path / "words"), labels=labels)
    pool.save_pretrained(tmp_path / "pool", license="mit")
    found = []
    for seed, used in (("1", "fresh"), ("2", "used")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "HF_DXPRIVACY_CACHE": str(tmp_path / "cache"),
        }
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "pool"), str(tmp_path / "rows"), used],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        found.append(run.stdout)
    assert found[0] == found[1]
    assert "soup" in found[0]


def test_budgets(make: Make, rows: Dataset) -> None:
    budget = PrivacyBudget(1.5)
    options: dict[str, Any] = {"batched": True, "batch_size": 5, "with_indices": True}
    for spent in (0.7, 1.4):
        labelled = make(budget=budget, label_column="topic")
        rows.map(labelled, load_from_cache_file=False, **options)
        assert budget.spent == spent
    with pytest.raises(BudgetExceededError, match="nothing was released"):
        rows.map(make(budget=budget, label_column="topic"), load_from_cache_file=False, **options)
    with pytest.raises(InvalidValueError, match="ε of different distances do not add up"):
        rows.map(make(budget=budget), load_from_cache_file=False, **options)
    by_user = PrivacyBudget(0.7 * len(TEXTS), "user")
    rows.map(make(budget=by_user, user_column="who"), batched=True)
    assert 0 < by_user.spent <= 0.7 * len(TEXTS) / 2


def test_a_label_that_the_pool_lacks(make: Make, rows: Dataset) -> None:
    privatizer = make(label_column="who")
    with pytest.raises(InvalidValueError, match=r"'who', row 0 .* its labels are '0'"):
        rows.map(privatizer, batched=True)
    with pytest.raises(InvalidValueError, match=r"'topic' is not in the data.*with label_column="):
        rows.remove_columns("topic").map(make(label_column="topic"), batched=True)
    missing = Dataset.from_dict({"text": ["a", "b"], "topic": [1, None]})
    with pytest.raises(InvalidTypeError, match=r"'topic', row 1 .* got a NoneType"):
        missing.map(make(label_column="topic"), batched=True)


@pytest.mark.parametrize("batched", [False, True])
def test_lists_of_texts_and_chats_are_refused(make: Make, batched: bool) -> None:
    chat = [{"role": "user", "content": "hi"}]
    for cell in (["a text", "another text"], chat, {"content": "hi"}):
        rows = Dataset.from_dict({"text": [cell] * 2, "id": [1, 2]})
        with pytest.raises(InvalidTypeError, match="each text of a list, or message of a chat"):
            rows.map(make(), batched=batched)


# The Hub


def test_a_labelled_pool_and_its_privatizer_go_to_the_hub_and_back(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    small_words().push_to_hub("me/words", license="mit")
    words = EmbeddingSpace.from_pretrained("me/words")
    pool = small_pool(words)
    pool.push_to_hub("me/pool", license="mit")
    pool = SentencePool.from_pretrained("me/pool")
    assert pool.labels == tuple(LABELS)
    settings = {"epsilon": 0.7, "label_column": "topic", "refill": True, "unit": "sentence"}
    privatizer = SentencePrivatizer(pool, seed=SEED, **settings)  # type: ignore[arg-type]
    privatizer.push_to_hub("me/privatizer", license="mit")
    loaded = SentencePrivatizer.from_pretrained("me/privatizer", seed=SEED)
    assert (loaded.label_column, loaded.refill, loaded.unit) == ("topic", True, "sentence")
    batch = {"text": SENTENCES[:6], "topic": LABELS[:6]}
    assert loaded(batch, range(6)) == privatizer(batch, range(6))
    card = hub.repo("me/privatizer").files()["README.md"].decode()
    assert "| label of a text, released as it is | column `topic` |" in card
    assert "nothing is promised between labels" in card
    assert "| numbers, dates and names | drawn afresh |" in card
    assert "'secret'" not in card

"""SlotPrivatizer inside the real `datasets`, with tags beside tokens and with texts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value
from datasets.fingerprint import Hasher

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.slots import ContentWordSelector, TagColumnSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

TAGS = ["O", "B-x", "I-x"]
TOKENS = [["Waaa", ",", "waab", "waac"], None, [], ["Zork", None, "waad"], ["waae"], ["."]] * 3
CLASSES = [[0, 0, 1, 2], None, [], [0, 0, 1], [0], [0]] * 3
FEATURES = Features(
    {
        "id": Value("int32"),
        "tokens": Sequence(Value("string")),
        "tags": Sequence(Value("string")),
        "classes": Sequence(ClassLabel(names=TAGS)),
        "text": Value("string"),
    }
)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def rows() -> Dataset:
    names = [None if row is None else [TAGS[tag] for tag in row] for row in CLASSES]
    texts = [None if row is None else " ".join(token or "" for token in row) for row in TOKENS]
    columns = {"id": [*range(18)], "tokens": TOKENS, "tags": names}
    return Dataset.from_dict(columns | {"classes": CLASSES, "text": texts}, features=FEATURES)


def by_tags(space: EmbeddingSpace, **options: Any) -> SlotPrivatizer:
    arguments: dict[str, Any] = {
        "selector": TagColumnSelector("tags"),
        "text_column": "tokens",
        "mask_column": "mask",
        "spans_column": "spans",
    }
    return SlotPrivatizer(space, "laplace", 0.01, **(arguments | options))


def check(before: Any, after: Any, space: EmbeddingSpace) -> None:
    """Check that slots alone were replaced, and that all else is as it was."""
    changed = 0
    for old, new in zip(before, after, strict=True):
        for name in ("id", "tags", "classes", "text"):
            assert new[name] == old[name]
        if old["tokens"] is None:
            assert (new["tokens"], new["mask"], new["spans"]) == (None, None, None)
            continue
        assert new["mask"] == [tag != "O" for tag in old["tags"]]
        cells = zip(old["tokens"], new["tokens"], new["mask"], strict=True)
        for token, released, slot in cells:
            assert released in space if slot else released == token
            changed += released != token
        assert sum(stop - start for start, stop in new["spans"]) == sum(new["mask"])
    assert changed > 0


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fmt", [None, "arrow"])
def test_formats(
    rows: Dataset,
    euclidean_space: EmbeddingSpace,
    fmt: str | None,
    batched: bool,
    with_indices: bool,
) -> None:
    mapped = rows.with_format(fmt).map(
        by_tags(euclidean_space), batched=batched, with_indices=with_indices, batch_size=4
    )
    result = mapped.with_format(None)
    check(rows, result, euclidean_space)
    assert {name: result.features[name] for name in FEATURES} == FEATURES
    assert result.features["mask"].feature == Value("bool")


@pytest.mark.parametrize("fmt", ["numpy", "pandas"])
def test_formats_that_know_no_missing_list(
    rows: Dataset, euclidean_space: EmbeddingSpace, fmt: str
) -> None:
    rows = rows.filter(lambda row: row["tokens"] is not None and None not in row["tokens"])
    mapped = rows.with_format(fmt).map(by_tags(euclidean_space), batched=True, batch_size=3)
    check(rows, mapped.with_format(None), euclidean_space)


@pytest.mark.parametrize("batched", [False, True])
def test_several_processes_splits_and_streams(
    rows: Dataset, euclidean_space: EmbeddingSpace, batched: bool
) -> None:
    privatizer = by_tags(euclidean_space)
    check(rows, rows.map(privatizer, batched=batched, num_proc=2), euclidean_space)
    splits = DatasetDict({"train": rows, "test": rows.select(range(6))})
    for name, part in splits.map(privatizer, batched=batched).items():
        check(splits[name], part, euclidean_space)
    stream = rows.to_iterable_dataset(num_shards=2).map(privatizer, batched=batched)
    check(rows, list(stream), euclidean_space)


def test_class_labels_and_texts(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    names = rows.features["classes"].feature.names
    selector = TagColumnSelector("classes", names=names)
    check(
        rows, rows.map(by_tags(euclidean_space, selector=selector), batched=True), euclidean_space
    )
    with pytest.raises(InvalidTypeError, match="tags are integers"):
        rows.map(by_tags(euclidean_space, selector=TagColumnSelector("classes")))
    with pytest.raises(InvalidTypeError, match="the text column holds a text"):
        rows.map(by_tags(euclidean_space, text_column="text"), batched=True)


def test_tags_of_another_length(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    short = rows.map(lambda row: {"tags": row["tags"] and row["tags"][:2]})
    with pytest.raises(InvalidValueError, match="one tag for each of 4 tokens, got 2 tags"):
        short.map(by_tags(euclidean_space), batched=True)


def test_a_seed_gives_one_release_whatever_the_batches_and_processes(
    rows: Dataset, euclidean_space: EmbeddingSpace
) -> None:
    privatizer = by_tags(euclidean_space, seed=2**70)
    for with_indices in (False, True):
        options: dict[str, Any] = {"with_indices": with_indices, "load_from_cache_file": False}
        expected = rows.map(privatizer, **options)["tokens"][:]
        for batch_size, num_proc in ((1, None), (5, 2)):
            again = rows.map(
                privatizer, batched=True, batch_size=batch_size, num_proc=num_proc, **options
            )
            assert again["tokens"][:] == expected


def test_a_second_map_is_cached_and_the_fingerprint_that_of_the_settings(
    euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    # What is in memory only is never cached.
    Dataset.from_dict({"text": ["the waab waac"] * 5}).save_to_disk(tmp_path)
    rows = datasets.load_from_disk(tmp_path)
    selectors = [ContentWordSelector(), ~ContentWordSelector()]
    hashes = [
        Hasher.hash(SlotPrivatizer(euclidean_space, "laplace", 2.0, selector=selector))
        for selector in (*selectors, ContentWordSelector())
    ]
    assert hashes[0] == hashes[2] != hashes[1]
    first, second = (
        rows.map(SlotPrivatizer(euclidean_space, "laplace", 2.0, selector=selectors[0]))
        for _ in range(2)
    )
    assert first["text"][:] == second["text"][:]
    code = (
        "from datasets.fingerprint import Hasher\n"
        "from hf_dxprivacy import SlotPrivatizer\n"
        "from hf_dxprivacy import slots\n"
        "both = slots.ContentWordSelector() & ~slots.TagColumnSelector('t', {'a', 'b', 'c'})\n"
        "selector = slots.ShareSelector(both, maximum=0.5)\n"
        "print(Hasher.hash(SlotPrivatizer('wordnet-gloss', 'tem', 2.0, selector=selector)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1

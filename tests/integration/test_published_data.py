"""Saved and pushed releases are a function of the released rows, and of nothing else."""

import gzip
import io
import json
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, load_dataset
from datasets.fingerprint import Hasher
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SlotPrivatizer,
    TokenPrivatizer,
    publishable,
    strip_traces,
)
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers import fingerprint
from hf_dxprivacy.slots import ContentWordSelector
from hub_server.server import HubServer

SECRET = "Patient Anna Kowalska has leukemia"


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes the process that of a user, by the cache folder."""

    def become(name: str) -> Path:
        monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path / name))
        return tmp_path / name

    return become


def of_words(space: EmbeddingSpace) -> Any:
    return DxPrivatizer(space, "tem", 0.01)


def of_slots(space: EmbeddingSpace) -> Any:
    return SlotPrivatizer(space, "tem", 0.01, selector=ContentWordSelector())


def of_tokens(space: EmbeddingSpace) -> Any:
    vocabulary = {word: at for at, word in enumerate((*space.words, "[UNK]"))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    return TokenPrivatizer(space, tokenizer, "tem", 0.01)


def method(space: EmbeddingSpace) -> Any:
    return DxPrivatizer(space, "tem", 0.01).privatize


def closure(space: EmbeddingSpace) -> Any:
    privatizer = DxPrivatizer(space, "tem", 0.01)
    return lambda batch: {"text": privatizer.privatize(batch["text"])}


def partially(space: EmbeddingSpace) -> Any:
    return partial(DxPrivatizer(space, "tem", 0.01), rank=0)


def seeded(space: EmbeddingSpace) -> Any:
    return DxPrivatizer(space, "tem", 0.01, seed=7)


MAKERS = [of_words, of_slots, of_tokens, method, closure, partially, seeded]


@pytest.fixture
def stored(euclidean_space: EmbeddingSpace, tmp_path: Path) -> EmbeddingSpace:
    """A space that every user finds at one place."""
    euclidean_space.save_pretrained(tmp_path / "space")
    return EmbeddingSpace.from_pretrained(tmp_path / "space")


@pytest.mark.parametrize("make", MAKERS)
def test_fingerprints_are_salted_for_each_user(
    make: Callable[[EmbeddingSpace], Any],
    stored: EmbeddingSpace,
    as_user: Callable[[str], Path],
) -> None:
    as_user("victim")
    first = Hasher.hash(make(stored))
    assert Hasher.hash(make(stored)) == first, "a second map finds the cached release"
    as_user("attacker")
    assert Hasher.hash(make(stored)) != first
    as_user("victim")
    assert Hasher.hash(make(stored)) == first


def test_guesses_cannot_be_tested_against_the_fingerprint(
    stored: EmbeddingSpace, as_user: Callable[[str], Path], tmp_path: Path
) -> None:
    """The attack of a reader of ``state.json`` who knows ε and the versions."""

    def release(text: str) -> Dataset:
        return Dataset.from_dict({"text": [text]}).map(of_words(stored), batched=True)

    as_user("victim")
    release(SECRET).save_to_disk(tmp_path / "released")
    target = json.loads((tmp_path / "released" / "state.json").read_text())["_fingerprint"]
    assert release(SECRET)._fingerprint == target
    as_user("attacker")
    assert release(SECRET)._fingerprint != target


def test_the_secret_is_kept_for_its_user_only(
    stored: EmbeddingSpace, as_user: Callable[[str], Path], tmp_path: Path
) -> None:
    cache = as_user("victim")
    privatizer = of_words(stored)
    pickled = pickle.dumps(privatizer)
    (file,) = cache.glob("fingerprint-*.key")
    secret = file.read_bytes()
    assert len(secret) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    privatizer.save_pretrained(tmp_path / "stored")
    saved = [path.read_bytes() for path in (tmp_path / "stored").rglob("*") if path.is_file()]
    for content in (pickled, *saved, repr(vars(privatizer)).encode()):
        assert secret not in content
        assert secret.hex().encode() not in content
    tag = privatizer.__getstate__()["fingerprint_tag"]
    as_user("other")
    assert pickle.loads(pickled).__getstate__()["fingerprint_tag"] != tag, "it does not travel"


def _tag(space: EmbeddingSpace) -> str:
    return str(of_words(space).__getstate__()["fingerprint_tag"])


def test_processes_that_start_together_make_one_secret(
    stored: EmbeddingSpace, as_user: Callable[[str], Path]
) -> None:
    cache = as_user("victim")
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        tags = pool.map(_tag, [stored] * 8, chunksize=1)
    assert set(tags) == {_tag(stored)}
    assert len(list(cache.glob("*fingerprint*"))) == 1


def test_a_secret_that_others_may_know_is_replaced(
    stored: EmbeddingSpace, as_user: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = as_user("victim")
    first = _tag(stored)
    (file,) = cache.glob("fingerprint-*.key")
    for damage in (lambda: file.chmod(0o644), lambda: file.write_bytes(b"short")):
        damage()
        monkeypatch.setattr(fingerprint, "_secrets", {})
        second = _tag(stored)
        assert second != first
        assert file.stat().st_mode & 0o777 == 0o600
        first = second


def test_without_a_place_for_the_secret_the_fingerprint_is_random(
    stored: EmbeddingSpace,
    as_user: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    as_user("file").write_text("no folder")
    first = _tag(stored)
    assert _tag(stored) == first
    assert "set HF_DXPRIVACY_CACHE to a folder" in caplog.text
    monkeypatch.setattr(fingerprint, "_secrets", {})
    assert _tag(stored) != first


PROGRAM = """
import sys
from datasets import load_dataset
from hf_dxprivacy import DxPrivatizer
data = load_dataset("csv", data_files=sys.argv[1], split="train", cache_dir=sys.argv[3])
print(data.map(DxPrivatizer(sys.argv[2], "tem", 0.01), batched=True)["text"][:])
"""


def test_another_process_finds_the_cached_release(stored: EmbeddingSpace, tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_text("text\n" + f"{SECRET}\n" * 20)
    arguments = [str(file), str(stored.location), str(tmp_path / "cache")]
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, check=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1]
    assert "leukemia" not in printed[0]


# Releases of different originals


@pytest.fixture
def one_word(tmp_path: Path) -> EmbeddingSpace:
    """A space of a single word, so that every release of one shape is the same."""
    EmbeddingSpace.from_vectors(["word"], np.ones((1, 3), np.float32)).save_pretrained(
        tmp_path / "one"
    )
    return EmbeddingSpace.from_pretrained(tmp_path / "one")


ROWS = 1234


def _texts(words: tuple[str, str, str]) -> list[str]:
    a, b, c = words
    return [f"{a} {b}, {c}!" if row % 3 else f"({c})" for row in range(ROWS)]


ORIGINALS = {
    "short": ("it", "is", "a"),
    "long": ("Patient", "Kowalska" * 9, "leukemia"),
    "capitals": ("LUNG", "CANCER", "STAGE"),
}


def _in_memory(words: tuple[str, str, str], folder: Path) -> Dataset:
    return Dataset.from_dict({"text": _texts(words), "n": list(range(ROWS))})


def _from_csv(words: tuple[str, str, str], folder: Path) -> Dataset:
    pd.DataFrame({"text": _texts(words), "n": range(ROWS)}).to_csv(folder / "x.csv", index=False)
    return load_dataset("csv", data_files=str(folder / "x.csv"), split="train").cast_column(
        "text", Value("string")
    )


def _from_parquet(words: tuple[str, str, str], folder: Path) -> Dataset:
    table = pa.table({"text": _texts(words), "n": range(ROWS)})
    about = {"about": words[0], "huggingface": json.dumps({"fingerprint": words[1], "info": {}})}
    field = table.schema.field("text").with_metadata({"note": words[2]})
    schema = pa.schema([field, table.schema.field("n")], about)
    pq.write_table(table.cast(schema), folder / "x.parquet", row_group_size=17)
    return load_dataset("parquet", data_files=str(folder / "x.parquet"), split="train")


def _from_frame(words: tuple[str, str, str], folder: Path) -> Dataset:
    frame = pd.DataFrame({"text": pd.Series(_texts(words), dtype=object), "n": range(ROWS)})
    frame.attrs = {"about": words[0]}
    return Dataset.from_pandas(frame).cast_column("text", Value("string"))


def _of_some_rows(words: tuple[str, str, str], folder: Path) -> Dataset:
    more = _texts((words[1] * 3, words[2], words[0])) + _texts(words)
    data = Dataset.from_dict({"text": more, "n": [*range(ROWS), *range(ROWS)]})
    return data.select(range(ROWS, 2 * ROWS))


SOURCES = [_in_memory, _from_csv, _from_parquet, _from_frame, _of_some_rows]


def _files(folder: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
             if p.is_file()}  # fmt: skip
    assert found
    return found


def _saved(released: Dataset, privatizer: DxPrivatizer, folder: Path) -> dict[str, bytes]:
    """Save a release in every documented way."""
    released.to_parquet(folder / "released.parquet")
    released.to_csv(folder / "released.csv")
    released.to_json(folder / "released.jsonl")
    published = publishable(released, privatizer)
    published.to_parquet(folder / "published.parquet")
    published.save_to_disk(folder / "published")
    both = publishable(DatasetDict(train=released, test=released), privatizer)
    both.save_to_disk(folder / "both")
    return _files(folder)


@pytest.mark.parametrize("way", ["map", "arrow", "pandas"])
@pytest.mark.parametrize("source", SOURCES)
def test_releases_of_other_originals_are_equal_byte_for_byte(
    source: Callable[[tuple[str, str, str], Path], Dataset],
    way: str,
    one_word: EmbeddingSpace,
    as_user: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    saved = []
    for name, words in ORIGINALS.items():
        as_user(name)
        folder = tmp_path / f"{way}-{name}"
        (folder / "out").mkdir(parents=True)
        originals = source(words, folder)
        if way != "map":
            originals = originals.with_format(way)
        privatizer = DxPrivatizer(one_word, "tem", 0.01)
        released = originals.map(privatizer, batched=True)
        saved.append(_saved(released.with_format(None), privatizer, folder / "out"))
    first = saved[0]
    for other in saved[1:]:
        assert other.keys() == first.keys()
        assert [name for name in first if first[name] != other[name]] == []


def test_pushed_releases_of_other_originals_are_equal(
    one_word: EmbeddingSpace, as_user: Callable[[str], Path], hub: HubServer, tmp_path: Path
) -> None:
    pushed = []
    for name, words in ORIGINALS.items():
        as_user(name)
        (tmp_path / "x").mkdir(exist_ok=True)
        data = DatasetDict(train=_from_csv(words, tmp_path / "x"))
        privatizer = DxPrivatizer(one_word, "tem", 0.01)
        released = data.map(privatizer, batched=True)
        publishable(released, privatizer).push_to_hub(f"me/{name}", token=hub.token)
        pushed.append(hub.repo(f"datasets/me/{name}").files())
    assert pushed[0] == pushed[1] == pushed[2]
    assert any(path.endswith(".parquet") for path in pushed[0])


def test_the_folder_of_an_unpublished_release_does_differ(
    one_word: EmbeddingSpace, tmp_path: Path
) -> None:
    """Otherwise the test above would see nothing."""
    infos = []
    for name in ("short", "long"):
        (tmp_path / name).mkdir()
        released = _from_csv(ORIGINALS[name], tmp_path / name).map(of_words(one_word), batched=True)
        infos.append(released.info.download_size)
    assert infos[0] != infos[1]


def test_what_stays_are_rows_columns_features_and_format() -> None:
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    data = Dataset.from_dict({"text": ["a", None, "b"], "label": [1, 0, 1]}, features=features)
    data = datasets.concatenate_datasets([data, data]).shuffle(seed=1).with_format("numpy")
    given = data._fingerprint
    result = strip_traces(data)
    assert result.features == features
    assert result.format == data.format
    assert result.with_format(None)[:] == data.with_format(None)[:]
    assert data._fingerprint == given != result._fingerprint
    assert result.data.schema.metadata.keys() == {b"huggingface"}
    assert strip_traces(result)._fingerprint == result._fingerprint
    empty = strip_traces(data.select([]))
    assert (len(empty), empty.features) == (0, features)


def test_rows_that_were_filtered_out_are_not_there() -> None:
    data = Dataset.from_dict({"text": ["zebrafish", "soup"], "name": ["anna", "eva"]})
    result = strip_traces(data.select([1]).remove_columns("name"))
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, result.data.table.schema) as writer:
        writer.write_table(result.data.table)
    assert b"soup" in buffer.getvalue()
    assert b"zebrafish" not in pickle.dumps(result.data.table)
    assert b"eva" not in gzip.decompress(gzip.compress(buffer.getvalue()))


def test_what_has_no_stored_release_is_refused(one_word: EmbeddingSpace) -> None:
    data = Dataset.from_dict({"text": ["a"]})
    with pytest.raises(InvalidTypeError, match="every pass over it is a new release"):
        strip_traces(data.to_iterable_dataset())  # type: ignore[type-var]
    with pytest.raises(InvalidTypeError, match="expected a Dataset or a DatasetDict"):
        strip_traces({"text": ["a"]})  # type: ignore[type-var]
    with pytest.raises(InvalidValueError, match=r"privatize them with Dataset\.map"):
        strip_traces(data.with_transform(of_words(one_word)))

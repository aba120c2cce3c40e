"""DxPrivatizer inside the real `datasets`: every way a data set is mapped."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Sequence, Value
from datasets.fingerprint import Hasher

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader
from machine import PATIENCE

MEMOIZED = {"memoize": "row", "key": bytes(range(32))}
TEXTS = ["Waaa, waab!", None, "", "Zürich  42", " \n", "waac", "waad waae waaf. Waag?"] * 3
TOKENS = [["Waaa", ",", "waab"], None, [], ["Zürich", None], ["."], ["waac"], ["New York"]] * 3
FEATURES = Features(
    {
        "id": Value("int32"),
        "text": Value("string"),
        "tokens": Sequence(Value("string")),
        "label": ClassLabel(names=["neg", "pos"]),
        "score": Value("float32"),
    }
)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def rows() -> Dataset:
    count = len(TEXTS)
    columns = {
        "id": list(range(count)),
        "text": TEXTS,
        "tokens": TOKENS,
        "label": [None, *([0, 1] * count)][:count],
        "score": [None, *([0.1] * count)][:count],
    }
    return Dataset.from_dict(columns, features=FEATURES)


@pytest.fixture
def privatizer(euclidean_space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(euclidean_space, "laplace", 2.0)


def check_text(old: str | None, new: str | None, space: EmbeddingSpace) -> None:
    """Check that one text was released and that only its words were replaced."""
    if old is None:
        assert new is None
        return
    assert isinstance(new, str)
    before, after = RowReader().read_text(old), RowReader().read_text(new)
    assert after.separators == before.separators
    assert all(word in space for word in after.words)


def check_tokens(old: list[str] | None, new: list[str] | None, space: EmbeddingSpace) -> None:
    if old is None:
        assert new is None
        return
    assert new is not None
    for token, released in zip(old, new, strict=True):
        assert released == token if token in (None, ".", ",") else released in space


def without_missing_numbers(rows: Dataset) -> Dataset:
    """Leave out what NumPy and pandas turn into NaN, whatever is mapped."""
    return rows.select(range(1, len(rows))).remove_columns("tokens")


def check(rows: Any, result: Any, space: EmbeddingSpace, out: str = "text") -> None:
    """Check the released texts, and that everything else is as it was."""
    old, new = list(rows), list(result)
    assert len(old) == len(new)
    for before, after in zip(old, new, strict=True):
        check_text(before["text"], after[out], space)
        others = set(before) - {out}
        assert {name: after[name] for name in others} == {name: before[name] for name in others}
    assert any(a[out] != b["text"] for a, b in zip(new, old, strict=True)), "nothing was replaced"


def needs_typed_strings(fmt: str | None) -> None:
    if fmt == "pandas" and pd.__version__ < "3":
        pytest.skip("of rows without a text pandas 2 tells `datasets` no type")


# Dataset


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fmt", [None, "numpy", "pandas", "polars", "arrow"])
def test_formats(
    rows: Dataset, privatizer: DxPrivatizer, fmt: str | None, batched: bool, with_indices: bool
) -> None:
    if not batched:
        needs_typed_strings(fmt)
    rows = without_missing_numbers(rows) if fmt in ("numpy", "pandas") else rows
    mapped = rows.with_format(fmt).map(
        privatizer, batched=batched, with_indices=with_indices, batch_size=4
    )
    result = mapped.with_format(None)
    if fmt in ("pandas", "polars"):
        # What comes back has the types of the library: other strings, and no classes.
        assert result.column_names == rows.column_names
    else:
        assert result.features == rows.features
        assert mapped.format["type"] == fmt
    check(rows, result, privatizer.space)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fmt", [None, "numpy", "pandas", "polars", "arrow"])
def test_a_new_column(
    rows: Dataset, euclidean_space: EmbeddingSpace, fmt: str | None, batched: bool
) -> None:
    """Rows without any text come first: no type can be inferred from them."""
    needs_typed_strings(fmt)
    rows = rows.select_columns(["id", "text"]).select([1, 1, 1, 1, 0, 3, 1])
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, output_column="private")
    # A dict of lists has no types, so here `datasets` needs to be told, and says so.
    told = (
        Features({**rows.features, "private": Value("string")}) if fmt in (None, "numpy") else None
    )
    mapped = rows.with_format(fmt).map(privatizer, batched=batched, batch_size=2, features=told)
    result = mapped.with_format(None)
    assert result.column_names == ["id", "text", "private"]
    assert result["text"][:] == rows["text"][:]
    check(rows, result, euclidean_space, "private")
    assert result.features["private"] == result.features["text"]


@pytest.mark.parametrize("batched", [False, True])
def test_token_lists_in_polars(
    rows: Dataset, euclidean_space: EmbeddingSpace, batched: bool
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="tokens")
    result = rows.with_format("polars").map(privatizer, batched=batched, batch_size=4)
    for old, new in zip(rows, result.with_format(None), strict=True):
        check_tokens(old["tokens"], new["tokens"], euclidean_space)
        assert new["text"] == old["text"]


@pytest.mark.parametrize("num_proc", [1, 2, 4])
@pytest.mark.parametrize("batched", [False, True])
def test_several_processes(
    rows: Dataset, privatizer: DxPrivatizer, num_proc: int, batched: bool
) -> None:
    result = rows.map(privatizer, batched=batched, num_proc=num_proc, batch_size=3)
    assert result.features == FEATURES
    check(rows, result, privatizer.space)


@pytest.mark.parametrize("fmt", [None, "numpy", "arrow"])
@pytest.mark.parametrize("batched", [False, True])
def test_a_column_of_token_lists(
    rows: Dataset, euclidean_space: EmbeddingSpace, fmt: str | None, batched: bool
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="tokens")
    result = rows.with_format(fmt).map(privatizer, batched=batched, batch_size=4)
    result = result.with_format(None)
    assert result.features == FEATURES
    for old, new in zip(rows, result, strict=True):
        check_tokens(old["tokens"], new["tokens"], euclidean_space)
        assert new["text"] == old["text"]


@pytest.mark.parametrize("batched", [False, True])
def test_token_lists_alone_of_one_length(euclidean_space: EmbeddingSpace, batched: bool) -> None:
    """No other column tells a row from a batch, and NumPy makes a matrix of such a batch."""
    rows = Dataset.from_dict({"t": [["New York", "waaa"]] * 2})
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="t", seed=1)
    expected = rows.map(privatizer, batched=True, with_indices=True)["t"][:]
    assert [[word in euclidean_space for word in row] for row in expected] == [[True] * 2] * 2
    for fmt in (None, "numpy", "arrow"):
        formatted = rows.with_format(fmt)
        result = formatted.map(privatizer, batched=batched, with_indices=True)
        assert result.with_format(None)["t"][:] == expected


def test_several_columns(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    both = {"text_column": ["text", "tokens"], "output_column": ["x", "y"]}
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, **both)
    for batched in (False, True):
        result = rows.map(privatizer, batched=batched)
        assert result.column_names == [*rows.column_names, "x", "y"]
        assert (result.features["x"], result.features["y"]) == (
            FEATURES["text"],
            FEATURES["tokens"],
        )
        for old, new in zip(rows, result, strict=True):
            assert {name: new[name] for name in old} == old
            check_text(old["text"], new["x"], euclidean_space)
            check_tokens(old["tokens"], new["y"], euclidean_space)


def test_the_original_can_be_removed(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, output_column="private")
    result = rows.map(privatizer, batched=True, remove_columns=["text", "tokens"])
    assert result.column_names == ["id", "label", "score", "private"]
    for old, new in zip(rows["text"], result["private"], strict=True):
        check_text(old, new, euclidean_space)


def test_other_columns_are_not_even_read(euclidean_space: EmbeddingSpace) -> None:
    """Decoding the images or audio of a data set takes far longer than replacing its words."""
    broken = [{"path": None, "bytes": b"no image"}] * 3
    rows = Dataset.from_dict({"text": TEXTS[:3], "image": broken})
    rows = rows.cast_column("image", datasets.Image())
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0)
    for batched in (False, True):
        for with_indices in (False, True):
            result = rows.map(privatizer, batched=batched, with_indices=with_indices)
            assert result.features == rows.features
    with pytest.raises((ImportError, OSError), match=r"Pillow|cannot identify image"):
        rows[0]


def test_dataset_dict(rows: Dataset, privatizer: DxPrivatizer) -> None:
    splits = DatasetDict({"train": rows, "test": rows.select(range(5))})
    for options in ({"batched": True, "num_proc": 2}, {"with_indices": True}):
        result = splits.map(privatizer, **options)
        for name in splits:
            assert result[name].features == FEATURES
            check(splits[name], result[name], privatizer.space)


def test_no_rows(rows: Dataset, privatizer: DxPrivatizer) -> None:
    result = rows.select([]).map(privatizer, batched=True)
    assert (len(result), result.features) == (0, FEATURES)


@pytest.mark.parametrize("fmt", [None, "pandas", "arrow"])
def test_a_rank_alone_is_refused(rows: Dataset, privatizer: DxPrivatizer, fmt: str | None) -> None:
    """It would be taken for row indices."""
    rows = rows.with_format(fmt)
    with pytest.raises(InvalidTypeError, match=r"got a int; use with_indices=True, and with_rank"):
        rows.map(privatizer, batched=True, with_rank=True, num_proc=2)


@pytest.mark.parametrize("batched", [False, True])
def test_a_rank_beside_indices_is_not_used(
    rows: Dataset, euclidean_space: EmbeddingSpace, batched: bool
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, seed=1)
    plain = rows.map(privatizer, batched=batched, with_indices=True)
    ranked = rows.map(privatizer, batched=batched, with_indices=True, with_rank=True, num_proc=2)
    assert ranked["text"][:] == plain["text"][:]


def test_errors_reach_the_caller_from_a_worker(rows: Dataset, privatizer: DxPrivatizer) -> None:
    with pytest.raises(InvalidValueError, match="column 'text' is not in the data"):
        rows.rename_column("text", "review").map(privatizer, batched=True, num_proc=2)
    numbers = rows.remove_columns("text").rename_column("score", "text")
    with pytest.raises(
        InvalidTypeError, match=r"column 'text', row 1 .* got a float; name a column of texts"
    ):
        numbers.map(privatizer, batched=True, num_proc=2)


# IterableDataset


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fmt", [None, "numpy", "arrow"])
def test_streams(
    rows: Dataset, privatizer: DxPrivatizer, fmt: str | None, batched: bool, with_indices: bool
) -> None:
    rows = without_missing_numbers(rows)
    stream = rows.to_iterable_dataset(num_shards=3).with_format(fmt)
    mapped = stream.map(privatizer, batched=batched, with_indices=with_indices, batch_size=4)
    check(rows, mapped.with_format(None), privatizer.space)


def plain_stream(rows: Dataset) -> IterableDataset:
    """Rows as a generator gives them: plain dicts."""
    return IterableDataset.from_generator(lambda: iter(list(rows)))


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_streams_of_token_lists(
    rows: Dataset, euclidean_space: EmbeddingSpace, batched: bool, with_indices: bool
) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="tokens")
    stream = plain_stream(rows)
    result = list(stream.map(privatizer, batched=batched, with_indices=with_indices, batch_size=4))
    for old, new in zip(rows, result, strict=True):
        check_tokens(old["tokens"], new["tokens"], euclidean_space)
        assert new["text"] == old["text"]


def test_a_stream_of_token_lists_alone_needs_indices_where_it_matters(
    euclidean_space: EmbeddingSpace,
) -> None:
    """As in a corpus with tags: every column is a list, in a row as in a batch."""
    rows = Dataset.from_dict({"tokens": [["waaa"] * 40] * 2, "tags": [[0] * 40] * 2})
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column="tokens", seed=1)
    with pytest.raises(InvalidValueError, match=r"column 'tokens' may hold .* with_indices=True"):
        list(plain_stream(rows).map(privatizer))
    for batched in (False, True):
        result = list(plain_stream(rows).map(privatizer, batched=batched, with_indices=True))
        assert [len(set(row["tokens"])) > 10 for row in result] == [True, True]


def test_tokens_in_a_stream_that_is_told_so(euclidean_space: EmbeddingSpace) -> None:
    rows = Dataset.from_dict({"tokens": [["waaa"] * 40, [], ["waab", None]], "tags": [[0]] * 3})
    options: dict[str, Any] = {"text_column": "tokens", "seed": 1, "is_split_into_words": True}
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, **options)
    expected = rows.map(privatizer, batched=True)["tokens"][:]
    assert len(set(expected[0])) > 10
    for batched in (False, True):
        result = plain_stream(rows).map(privatizer, batched=batched, batch_size=1)
        assert [row["tokens"] for row in result] == expected


@pytest.mark.parametrize("options", [{"seed": 1}, {"seed": 1, "oov": "drop"}, MEMOIZED], ids=str)
def test_short_texts_that_are_told_to_be_texts(
    euclidean_space: EmbeddingSpace, options: dict[str, Any]
) -> None:
    """As ``with_transform``, streams and formats hand them over: nothing else tells."""
    rows = Dataset.from_dict({"text": ["waaa", "", "waab waac", "Zürich", None], "label": [0] * 5})
    unclear = DxPrivatizer(euclidean_space, "laplace", 0.5, **options)
    with pytest.raises(InvalidValueError, match="is_split_into_words=False for texts"):
        rows.with_transform(unclear)[0]
    privatizer = DxPrivatizer(euclidean_space, "laplace", 0.5, is_split_into_words=False, **options)
    expected = rows.map(privatizer, batched=True)["text"][:]
    lazy = rows.with_transform(privatizer)
    assert lazy[:]["text"] == [row["text"] for row in lazy] == expected
    for batched in (False, True):
        stream = plain_stream(rows).map(privatizer, batched=batched, batch_size=1)
        assert [row["text"] for row in stream] == expected
        mapped = rows.with_format("numpy").map(privatizer, batched=batched, batch_size=1)
        assert mapped.with_format(None)["text"][:] == expected


def test_streams_are_seeded_like_data_sets(rows: Dataset, euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, seed=1)
    expected = rows.map(privatizer, batched=True, with_indices=True)["text"][:]
    for batched in (False, True):
        stream = plain_stream(rows).map(privatizer, batched=batched, with_indices=True)
        assert [row["text"] for row in stream] == expected


# Fingerprints


@pytest.fixture
def stored(rows: Dataset, tmp_path: Path) -> Dataset:
    """The rows in files, as `load_dataset` has them; a result is cached beside them."""
    rows.save_to_disk(tmp_path / "rows")
    return datasets.load_from_disk(tmp_path / "rows")


def test_a_second_map_returns_the_same_release(
    stored: Dataset, euclidean_space: EmbeddingSpace
) -> None:
    options: dict[str, Any] = {"stopwords": {"waaa", "waab", "waac"}, "text_column": ["text"]}
    first = DxPrivatizer(euclidean_space, "laplace", 2.0, **options)
    release = stored.map(first, batched=True)
    again = stored.map(first, batched=True)
    equal = stored.map(DxPrivatizer(euclidean_space, "laplace", 2, **options), batched=True)
    for other in (again, equal):
        assert other._fingerprint == release._fingerprint
        assert other["text"][:] == release["text"][:]
        assert other.cache_files == release.cache_files
    fresh = stored.map(first, batched=True, load_from_cache_file=False)
    assert fresh["text"][:] != release["text"][:]


def test_workers_share_the_fingerprint_of_the_release(
    stored: Dataset, privatizer: DxPrivatizer
) -> None:
    release = stored.map(privatizer, batched=True, num_proc=2)
    assert stored.map(privatizer, batched=True, num_proc=2)["text"][:] == release["text"][:]


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 2.5},
        {"mechanism": "tem"},
        {"mechanism": "mahalanobis", "lam": 0.0},
        {"oov": "drop"},
        {"case": "preserve"},
        {"stopwords": {"never"}},
        {"seed": 0},
        {"output_column": "private"},
        {"text_column": "other"},
    ],
)
def test_other_settings_make_another_release(
    euclidean_space: EmbeddingSpace, options: dict[str, Any]
) -> None:
    settings = {"mechanism": "laplace", "epsilon": 2.0}
    plain = Hasher.hash(DxPrivatizer(euclidean_space, **settings))
    assert Hasher.hash(DxPrivatizer(euclidean_space, **settings)) == plain
    assert Hasher.hash(DxPrivatizer(euclidean_space, **{**settings, **options})) != plain


def test_another_space_makes_another_release(euclidean_space: EmbeddingSpace) -> None:
    moved = euclidean_space.rescale(1.5)
    hashes = {Hasher.hash(DxPrivatizer(s, "laplace", 2.0)) for s in (euclidean_space, moved)}
    assert len(hashes) == 2


HASH_SCRIPT = """
import sys
from datasets.fingerprint import Hasher
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
for mechanism in ("laplace", "calibrated", "mahalanobis"):
    privatizer = DxPrivatizer.from_pretrained(
        sys.argv[1], mechanism=mechanism, epsilon=2.0, stopwords="english", text_column=["a", "b"]
    )
    if sys.argv[2] == "used":
        privatizer({"a": ["waaa"], "b": ["waab"]})
        str(privatizer.guarantee)
    print(Hasher.hash(privatizer))
"""


def test_the_fingerprint_is_the_same_in_every_process(
    euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    """Whatever sets iterate like, however many threads calibrate, and used before or not."""
    euclidean_space.save_pretrained(tmp_path / "space")
    hashes = []
    for seed, threads, used in (("1", "1", "fresh"), ("2", "2", "used")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "HF_DXPRIVACY_CACHE": str(tmp_path / "cache"),
        }
        run = subprocess.run(
            [sys.executable, "-c", HASH_SCRIPT, str(tmp_path / "space"), used],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        hashes.append(run.stdout.split())
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 3


def test_it_pickles_to_kilobytes_whatever_the_size_of_the_space() -> None:
    import dill

    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20_000, 300)).astype(np.float32)
    space = EmbeddingSpace.from_vectors([f"word{i}" for i in range(20_000)], vectors)
    for mechanism in ("laplace", "mahalanobis", "tem"):
        privatizer = DxPrivatizer(space, mechanism, 5.0, stopwords="english", seed=1)
        privatizer.privatize("word1 word2 unknown")
        assert len(dill.dumps(privatizer)) < 10_000


# Randomness


def space_and_arguments(
    name: str, euclidean: EmbeddingSpace, poincare: EmbeddingSpace
) -> tuple[EmbeddingSpace, str, float]:
    return (poincare, name, 8.0) if name == "hyperbolic" else (euclidean, name, 2.0)


@pytest.mark.parametrize("mechanism", ["laplace", "calibrated", "hyperbolic"])
def test_a_seed_gives_one_release_whatever_the_batches_and_processes(
    euclidean_space: EmbeddingSpace, poincare_space: EmbeddingSpace, mechanism: str
) -> None:
    rng = random.Random(5)
    words = euclidean_space.words
    texts = [" ".join(rng.choices(words, k=rng.randrange(12))) for _ in range(60)]
    rows = Dataset.from_dict({"text": [*texts, None, "Zürich 42"]})
    arguments = space_and_arguments(mechanism, euclidean_space, poincare_space)
    privatizer = DxPrivatizer(*arguments, seed=2**70)
    for with_indices in (False, True):
        options: dict[str, Any] = {"with_indices": with_indices, "load_from_cache_file": False}
        expected = rows.map(privatizer, batched=True, **options)["text"][:]
        assert sum(a != b for a, b in zip(expected, texts, strict=False)) > 5
        assert rows.map(privatizer, **options)["text"][:] == expected
        for batch_size, num_proc in ((1, None), (7, 2), (1000, 4)):
            again = rows.map(
                privatizer, batched=True, batch_size=batch_size, num_proc=num_proc, **options
            )
            assert again["text"][:] == expected
    turned = rows.select(range(len(rows) - 1, -1, -1)).map(privatizer, batched=True)
    assert turned["text"][:] == rows.map(privatizer, batched=True)["text"][::-1]


def overlap(a: str, b: str) -> float:
    return float(np.mean([x == y for x, y in zip(a.split(), b.split(), strict=False)]))


def test_one_seed_gives_independent_noise_everywhere(euclidean_space: EmbeddingSpace) -> None:
    """To equal words of other rows, columns and data sets. Equal words agree by chance at times."""
    text = " ".join(euclidean_space.words[:80])
    both = Dataset.from_dict({"a": [text] * 3, "b": [text] * 3})
    # The first row of another data set, all but equal to the first of this one.
    other = Dataset.from_dict({"a": ["watf" + text[4:]], "b": ["wate" + text[4:]]})
    privatizer = DxPrivatizer(euclidean_space, "laplace", 2.0, text_column=["a", "b"], seed=9)
    releases = []
    for rows in (both, other):
        mapped = rows.map(privatizer, batched=True, with_indices=True)
        releases += [*mapped["a"], *mapped["b"]]
    pairs = [(a, b) for i, a in enumerate(releases) for b in releases[:i]]
    assert len(pairs) == 28
    assert max(overlap(a, b) for a, b in pairs) < 0.5
    # Without indices, rows with equal text are one and the same: the guarantee says so.
    mapped = both.map(privatizer, batched=True)
    assert len(set(mapped["a"])) == 1
    assert any(
        "Not covered: which rows are equal" in s and "get equal noise" in s
        for s in privatizer.guarantee.assumptions
    )


def test_seeding_the_usual_generators_changes_nothing(
    euclidean_space: EmbeddingSpace, privatizer: DxPrivatizer
) -> None:
    """What transformers.set_seed does, before each of two releases."""
    rows = Dataset.from_dict({"text": [" ".join(euclidean_space.words[:80])]})
    draws = []
    python, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for _ in range(2):
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            mapped = rows.map(privatizer, batched=True, load_from_cache_file=False)
            draws.append(mapped["text"][0])
    finally:
        random.setstate(python)
        np.random.set_state(numpy_state)  # noqa: NPY002
    assert overlap(*draws) < 0.5


def test_equal_rows_of_one_release_are_drawn_independently(privatizer: DxPrivatizer) -> None:
    text = " ".join(privatizer.space.words[:80])
    rows = Dataset.from_dict({"text": [text] * 4, "b": [text] * 4})
    for batched in (False, True):
        mapped = rows.map(privatizer, batched=batched)["text"][:]
        assert max(overlap(a, b) for i, a in enumerate(mapped) for b in mapped[:i]) < 0.5

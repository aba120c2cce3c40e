"""TokenPrivatizer inside the real `datasets`, over the output of a real tokenizer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import tiny_models
import transformers
from datasets import Dataset
from datasets.fingerprint import Hasher

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

TEXTS = [
    "The doctor treated unbelievably many patients.",
    "The doctor treated unbelievably many patients.",
    "",
    "A snowman ☃ and a 🧿 are unknown; Paris is not!",
    "[MASK] is a special token, and so is [SEP].",
    "yes",
] * 3
KEPT = {0, 101, 102, 103}
UNKNOWN = 100


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(tiny_models.minilm())


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    return EmbeddingSpace.from_transformers(tiny_models.minilm(), subwords=True)


@pytest.fixture(scope="module")
def privatizer(space: EmbeddingSpace, tokenizer: Any) -> TokenPrivatizer:
    return TokenPrivatizer(space, tokenizer, "tem", 10.0)


def tokenize(tokenizer: Any, **options: Any) -> Dataset:
    """Return the texts as a data set for training, as the usual first `map` makes it."""
    rows = Dataset.from_dict({"text": TEXTS, "label": [0, 1] * (len(TEXTS) // 2)})
    return rows.map(lambda batch: tokenizer(batch["text"], **options), batched=True)


def check(rows: Dataset, result: Dataset) -> None:
    """Check the released ids, and that everything else is as it was."""
    rows, result = rows.with_format(None), result.with_format(None)
    assert result.column_names == rows.column_names
    changed = 0
    for before, after in zip(rows, result, strict=True):
        old, new = before.pop("input_ids"), after.pop("input_ids")
        assert before == after
        for a, b in zip(old, new, strict=True):
            assert b == a if a in KEPT else b not in KEPT and b != UNKNOWN and 0 <= b < 30522
            changed += a != b
    assert changed > 30


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("form", [None, "numpy", "torch", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("padding", [False, True])
def test_formats(
    privatizer: TokenPrivatizer, tokenizer: Any, form: str | None, batched: bool, padding: bool
) -> None:
    rows = tokenize(tokenizer, padding=padding)
    columns = ["input_ids", "attention_mask", "label"] if form == "torch" else None
    mapped = rows.with_format(form, columns=columns, output_all_columns=columns is not None).map(
        privatizer, batched=batched, batch_size=5
    )
    if form in ("pandas", "polars"):
        rows = rows.cast(mapped.features)
    assert mapped.features == rows.features
    check(rows, mapped)


@pytest.mark.parametrize("options", [{}, {"batched": True, "batch_size": 2}])
def test_worker_processes(
    privatizer: TokenPrivatizer, tokenizer: Any, options: dict[str, Any]
) -> None:
    rows = tokenize(tokenizer)
    mapped = rows.map(privatizer, num_proc=2, **options)
    check(rows, mapped)
    # Equal rows, of which one half falls to each worker: no noise is repeated.
    long = [row for row, text in zip(mapped["input_ids"], TEXTS, strict=True) if "doctor" in text]
    assert len({tuple(row) for row in long}) == len(long)


def test_a_seed_does_not_depend_on_batches_and_workers(
    space: EmbeddingSpace, tokenizer: Any
) -> None:
    seeded = TokenPrivatizer(space, tokenizer, "tem", 10.0, seed=2**100)
    rows = tokenize(tokenizer)
    settings: list[dict[str, Any]] = [
        {},
        {"batched": True},
        {"batched": True, "batch_size": 5},
        {"batched": True, "num_proc": 2},
        {"num_proc": 2},
    ]
    released = [
        rows.map(seeded, with_indices=True, load_from_cache_file=False, **setting)["input_ids"][:]
        for setting in settings
    ]
    assert all(release == released[0] for release in released)
    assert released[0][0] != released[0][1]
    formatted = rows.with_format("numpy").map(seeded, with_indices=True, batched=True)
    assert formatted.with_format(None)["input_ids"][:] == released[0]


def test_what_is_released_decodes_to_words(privatizer: TokenPrivatizer, tokenizer: Any) -> None:
    released = privatizer(tokenizer(TEXTS))["input_ids"]
    for text, ids in zip(TEXTS, released, strict=True):
        decoded = tokenizer.decode(ids)
        assert "[UNK]" not in decoded
        assert decoded.count("[MASK]") == text.count("[MASK]")
        assert bool(tokenizer.decode(ids, skip_special_tokens=True)) == bool(text)


def test_whole_words_only_come_out_of_a_space_of_whole_words(tokenizer: Any) -> None:
    space = EmbeddingSpace.from_transformers(tiny_models.minilm())
    privatizer = TokenPrivatizer(space, tokenizer, "tem", 10.0)
    ids = tokenizer("unbelievably misbehaving snowmen!", add_special_tokens=False)["input_ids"]
    assert any(tokenizer.decode([token]).startswith("##") for token in ids)
    assert all(tokenizer.decode([token]) in space for token in privatizer.privatize_ids(ids * 20))


def test_words_of_a_byte_level_tokenizer_are_not_its_tokens(tmp_path: Path) -> None:
    tokenizer = tiny_models.byte_level()
    tiny_models.save(tokenizer, tmp_path)
    words = EmbeddingSpace.from_transformers(tmp_path)
    with pytest.raises(InvalidValueError, match=r"are not; make the space with .* subwords=True"):
        TokenPrivatizer(words, tokenizer, "laplace", 1.0)
    tokens = EmbeddingSpace.from_transformers(tmp_path, subwords=True)
    privatizer = TokenPrivatizer(tokens, tokenizer, "laplace", 1e6)
    ids = tokenizer.encode("The quick brown fox, naïve <|endoftext|>").ids
    assert privatizer.privatize_ids(ids) == ids


HASH_SCRIPT = """
import sys
from datasets.fingerprint import Hasher
from tokenizers import Tokenizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
tokenizer = Tokenizer.from_file(sys.argv[1])
privatizer = TokenPrivatizer(sys.argv[2], tokenizer, "laplace", 2.0)
tokenizer.enable_truncation(3)
privatizer({"input_ids": tokenizer.encode("the doctor").ids})
print(Hasher.hash(privatizer))
"""


def test_the_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Whatever sets iterate like, and whatever the tokenizer and the privatizer were used for."""
    tokenizer = tiny_models.word_pieces()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tiny_models.save(tokenizer, tmp_path / "model")
    folder = str(tmp_path / "space")
    EmbeddingSpace.from_transformers(tmp_path / "model", subwords=True).save_pretrained(folder)
    hashes = {Hasher.hash(TokenPrivatizer(folder, tokenizer, "laplace", 2.0))}
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", HASH_SCRIPT, str(tmp_path / "tokenizer.json"), folder],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(run.stdout.strip())
    assert len(hashes) == 1
    assert Hasher.hash(TokenPrivatizer(folder, tokenizer, "laplace", 2.1)) not in hashes


def test_ids_that_are_no_ids_stop_a_map(privatizer: TokenPrivatizer, tokenizer: Any) -> None:
    rows = tokenize(tokenizer).add_column("other", [[30522]] * len(TEXTS))
    wrong = TokenPrivatizer(privatizer.space, tokenizer, "tem", 10.0, ids_column="other")
    with pytest.raises(InvalidValueError, match="column 'other', row 0 of the batch: expected tok"):
        rows.map(wrong, batched=True)
    assert np.array_equal(rows["other"][0], [30522])

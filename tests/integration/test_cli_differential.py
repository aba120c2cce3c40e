"""Releases of different originals of one shape are equal byte for byte, names of files included.

In a space of a single word every text with as many words and the same separators is released as the
same text, so that any difference between two outputs shows something of the originals.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.spaces import EmbeddingSpace

# Enough for several batches, whose bounds follow from the bytes of the originals.
ROWS = 3000
SHORT = ["a", "Ox", "it"]
LONG = ["Hypertension" * 20, "ÉTÉ" * 100, "\u65e5\u672c"]


def _texts(words: list[str]) -> list[str]:
    return [f"{words[i % 3]}, {words[(i + 1) % 3]} ({words[2]})!" for i in range(ROWS)]


def _csv(path: Path, texts: list[str]) -> None:
    path.write_text("id,text\n" + "".join(f'{i},"{t}"\n' for i, t in enumerate(texts)))


def _packed(path: Path, texts: list[str]) -> None:
    plain = path.with_name("plain")
    _csv(plain, texts)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def _jsonl(path: Path, texts: list[str]) -> None:
    escaped = len(texts[0]) > 50  # the same value may be written in two ways
    rows = ({"id": i, "text": text} for i, text in enumerate(texts))
    path.write_text("".join(json.dumps(row, ensure_ascii=escaped) + "\n" for row in rows))


def _txt(path: Path, texts: list[str]) -> None:
    path.write_text("".join(f"{text}\n" for text in texts))


def _parquet(path: Path, texts: list[str]) -> None:
    frame = pd.DataFrame({"text": pd.Categorical(texts), "id": range(len(texts))})
    frame.attrs = {"about": texts[0]}
    table = pa.Table.from_pandas(frame)
    described = table.schema.field("text").with_metadata({"longest": max(texts, key=len)})
    schema = table.schema.set(0, described).with_metadata(
        {**table.schema.metadata, "first": texts[0]}
    )
    # Pages and row groups of the original may lie elsewhere.
    pq.write_table(table.cast(schema), path, row_group_size=len(texts[0]) * 10)


@pytest.mark.parametrize(
    ("source", "write", "targets"),
    [
        ("in.csv", _csv, ["out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.csv.gz"]),
        ("in.csv.gz", _packed, ["out.csv.gz"]),
        ("in.jsonl", _jsonl, ["out.jsonl", "out.jsonl.gz"]),
        ("in.txt", _txt, ["out.txt", "out.parquet"]),
        ("in.parquet", _parquet, ["out.parquet", "out.csv", "out.jsonl"]),
    ],
)
def test_outputs_of_different_originals_are_equal(
    tmp_path: Path, source: str, write: Callable[[Path, list[str]], None], targets: list[str]
) -> None:
    EmbeddingSpace.from_vectors(["soup"], [[1.0, 0.0]]).save_pretrained(tmp_path / "space")
    settings = ["--space", str(tmp_path / "space"), "--mechanism", "laplace", "--epsilon", "1"]
    found = []
    for folder, words in ((tmp_path / "a", SHORT), (tmp_path / "b", LONG)):
        folder.mkdir()
        write(folder / source, _texts(words))
        for target in targets:
            arguments = [str(folder / source), "--output", str(folder / target), *settings]
            assert main(["privatize", *arguments]) == 0
        (folder / source).unlink()
        found.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert sorted(found[0]) == sorted(targets)
    assert found[0] == found[1]
    assert all(found[0].values())


def test_bounds_of_row_groups_do_not_follow_from_the_originals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hf_dxprivacy.files.writers.ROW_GROUP_BYTES", 10_000)
    EmbeddingSpace.from_vectors(["soup"], [[1.0, 0.0]]).save_pretrained(tmp_path / "space")
    settings = ["--space", str(tmp_path / "space"), "--mechanism", "laplace", "--epsilon", "1"]
    groups = []
    for words in (SHORT, LONG):
        _txt(tmp_path / "in.txt", _texts(words))
        arguments = [str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.parquet")]
        assert main(["privatize", *arguments, *settings, "--overwrite"]) == 0
        metadata = pq.read_metadata(tmp_path / "out.parquet")
        groups.append([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
    assert groups[0] == groups[1]
    assert len(groups[0]) > 3

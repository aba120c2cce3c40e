"""The artifact's folder: what is written can be read, and nothing else can."""

import hashlib
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.hub import artifact as folder
from hf_dxprivacy.hub import cache_dir, read_artifact, update_config, write_artifact
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

WORDS = ["the", "naïve", "a b", "no\u00a0break", "\u0085", "日本"]
FILES = ["config.json", "vectors.safetensors", "vocabulary.txt"]


def matrix(dtype: str = "float32") -> np.ndarray:
    return np.arange(18, dtype=dtype).reshape(6, 3) / 7


def written(path: Path, dtype: str = "float32") -> Path:
    config = {"metric": "euclidean", "scale": 1.0}
    write_artifact(path, vectors=matrix(dtype), words=WORDS, config=config)
    return path


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    return written(tmp_path / "artifact")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_written_is_read(tmp_path: Path, dtype: str) -> None:
    found = read_artifact(written(tmp_path / "new" / "folder", dtype))
    assert found.words == tuple(WORDS)
    assert found.vectors.dtype == dtype
    np.testing.assert_array_equal(found.vectors, matrix(dtype).astype(dtype))
    assert found.config["metric"] == "euclidean"
    assert found.config["format_version"] == 1
    assert found.config["library_name"] == "hf_dxprivacy"
    assert (found.config["size"], found.config["dim"], found.config["dtype"]) == (6, 3, dtype)


def test_vectors_are_mapped_and_read_only(artifact: Path) -> None:
    vectors = read_artifact(artifact).vectors
    base = vectors.base
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        vectors[0, 0] = 1.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_file_is_what_the_safetensors_library_writes_and_reads(
    tmp_path: Path, dtype: str
) -> None:
    path = written(tmp_path / "a", dtype) / "vectors.safetensors"
    vectors = matrix(dtype).astype(dtype)
    assert path.read_bytes() == safetensors.numpy.save({"vectors": vectors})
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["vectors"], vectors)


def test_vectors_in_any_memory_layout_are_written_the_same(tmp_path: Path, artifact: Path) -> None:
    strange = np.asfortranarray(matrix()).astype(">f4")
    write_artifact(tmp_path / "b", vectors=strange, words=WORDS, config={"metric": "euclidean"})
    for name in FILES[1:]:
        assert (tmp_path / "b" / name).read_bytes() == (artifact / name).read_bytes()


def test_nothing_else_is_left_in_the_folder(artifact: Path) -> None:
    write_artifact(artifact, vectors=matrix(), words=WORDS, config={})
    assert sorted(path.name for path in artifact.iterdir()) == FILES


def test_others_may_read_the_files(artifact: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    for name in FILES:
        assert (artifact / name).stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(artifact: Path, name: str) -> None:
    (artifact / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{name}: cannot be read \(No such file"):
        read_artifact(artifact)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_named_wherever_it_ends(artifact: Path, name: str) -> None:
    path = artifact / name
    content = path.read_bytes()
    for length in range(len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ArtifactError, match=name):
            read_artifact(artifact)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_changed_byte_anywhere_is_noticed(artifact: Path, name: str) -> None:
    path = artifact / name
    content = bytearray(path.read_bytes())
    for position in range(len(content)):
        content[position] ^= 1
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match=name):
            read_artifact(artifact)
        content[position] ^= 1
    path.write_bytes(content)
    assert read_artifact(artifact).words == tuple(WORDS)


@pytest.mark.parametrize("name", FILES[1:])
def test_something_appended_is_noticed(artifact: Path, name: str) -> None:
    with (artifact / name).open("ab") as file:
        file.write(b"x\n")
    with pytest.raises(ArtifactError, match=name):
        read_artifact(artifact)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_of_another_artifact_is_noticed(tmp_path: Path, artifact: Path, name: str) -> None:
    other = tmp_path / "other"
    write_artifact(other, vectors=matrix() + 1, words=WORDS[::-1], config={})
    (artifact / name).write_bytes((other / name).read_bytes())
    with pytest.raises(ArtifactError, match=rf"{name}: SHA-256 is .* another artifact"):
        read_artifact(artifact)


def test_a_pickle_in_place_of_the_vectors_is_refused_and_not_run(artifact: Path) -> None:
    class Poison:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return os.mkdir, (str(artifact / "executed"),)

    (artifact / "vectors.safetensors").write_bytes(pickle.dumps(Poison()))
    with pytest.raises(ArtifactError, match=r"vectors\.safetensors: SHA-256 is"):
        read_artifact(artifact)
    edit_config(artifact, vectors_sha256=sha256(artifact / "vectors.safetensors"))
    with pytest.raises(ArtifactError, match=r"vectors\.safetensors: not a safetensors file"):
        read_artifact(artifact)
    assert not (artifact / "executed").exists()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def edit_config(path: Path, **changes: object) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(folder.bind(config | changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2}, r"config\.json: format_version is 2, .* up to 1; run: pip"),
        ({"format_version": 0}, r"config\.json: format_version is 0, and the first format is 1"),
        ({"format_version": -1}, r"config\.json: format_version is -1, and the first"),
        ({"format_version": "1"}, r"config\.json: not written by hf_dxprivacy"),
        ({"format_version": True}, r"config\.json: not written by hf_dxprivacy"),
        ({"library_name": "other"}, r"config\.json: not written by hf_dxprivacy"),
        ({"dim": 4}, r"vectors\.safetensors: dim is 3, not 4"),
        ({"dtype": "float64"}, r"vectors\.safetensors: dtype is float32, not float64"),
        ({"size": 5}, r"config\.json: expected 5 words and vectors, got 6 words and 6 vectors"),
        ({"vectors_sha256": "0" * 64}, r"vectors\.safetensors: SHA-256 is"),
        ({"vocabulary_sha256": None}, r"vocabulary\.txt: SHA-256 is"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(
    artifact: Path, changes: dict[str, object], message: str
) -> None:
    edit_config(artifact, **changes)
    with pytest.raises(ArtifactError, match=message):
        read_artifact(artifact)


@pytest.mark.parametrize("name", sorted(folder.DERIVED - {"format_version", "library_name"}))
def test_a_config_without_a_needed_entry_is_refused(artifact: Path, name: str) -> None:
    config = json.loads((artifact / "config.json").read_text())
    del config[name]
    (artifact / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArtifactError, match=rf"config\.json: missing {name}"):
        read_artifact(artifact)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", "expected a JSON object, got list"),
        (b"{", "truncated or not JSON"),
        (b"\xff\xfe{}", "truncated or not JSON"),
        (b"[" * 100_000, "truncated or not JSON"),
    ],
)
def test_a_config_that_is_no_json_object_is_refused(
    artifact: Path, content: bytes, message: str
) -> None:
    (artifact / "config.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=rf"config\.json: {message}"):
        read_artifact(artifact)


def entry(**changes: object) -> dict[str, object]:
    return {"dtype": "F32", "shape": [6, 3], "data_offsets": [0, 72]} | changes


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"other": entry()}, "with one two-dimensional"),
        ({"vectors": entry(), "more": entry()}, "contradicts itself"),
        ({"vectors": entry(dtype="I64")}, "expected a safetensors header with tensors of F16"),
        ({"vectors": entry(dtype=["F32"])}, "expected a safetensors header with tensors of F16"),
        ({"vectors": entry(shape=[18])}, "with one two-dimensional"),
        ({"vectors": entry(dtype="I32")}, "with one two-dimensional"),
        ({"vectors": entry(), "more": entry(data_offsets=[72, 72], shape=[0])}, "with one"),
        ({"vectors": entry(shape=[-6, -3])}, "contradicts itself"),
        ({"vectors": entry(shape=[6.0, 3])}, "contradicts itself"),
        ({"vectors": entry(shape=[3, 3])}, "contradicts itself"),
        ({"vectors": entry(shape=[6, 3] + 70 * [1])}, "no arrays of these shapes"),
        (
            {"vectors": entry(), "more": entry(data_offsets=[72, 72], shape=[0, 10**30])},
            "no arrays of these shapes",
        ),
        ({"vectors": entry(data_offsets=[4, 76])}, "contradicts itself"),
        ({"vectors": entry(shape=[7, 3], data_offsets=[0, 84])}, "expected .* bytes"),
        ({"vectors": entry(shape=[0, 3], data_offsets=[0, 0])}, "expected .* bytes"),
        ([1, 2], "expected a safetensors header with tensors of F16"),
    ],
)
def test_a_safetensors_header_that_lies_is_refused(
    artifact: Path, header: object, message: str
) -> None:
    text = json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + bytes(72)
    (artifact / "vectors.safetensors").write_bytes(content)
    edit_config(artifact, vectors_sha256=sha256(artifact / "vectors.safetensors"))
    with pytest.raises(ArtifactError, match=rf"vectors\.safetensors: .*{message}"):
        read_artifact(artifact)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\na\nd\ne\nf\n", "the word 'a' occurs twice"),
        (b"a\n\nc\nd\ne\nf\n", "row 1: the word is empty"),
        (b"a\nb\rc\nc\nd\ne\nf\n", "row 1: the word 'b.rc' contains a line break"),
        (b"a\nb\nc", "the last line does not end in a newline"),
        (b"a\n\xff\nc\n", "not UTF-8 at byte 2"),
        (b"a\nb\n", "got 2 words and 6 vectors"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused_even_with_the_right_digest(
    artifact: Path, content: bytes, message: str
) -> None:
    (artifact / "vocabulary.txt").write_bytes(content)
    edit_config(artifact, vocabulary_sha256=sha256(artifact / "vocabulary.txt"))
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_pretrained(artifact)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], np.ones((2, 2)), r"expected vectors of shape \(1, n\)"),
        (["a"], np.ones(1), r"expected vectors of shape \(1, n\)"),
        ([], np.ones((0, 2)), r"expected vectors of shape \(0, n\)"),
        (["a"], np.ones((1, 2), dtype=np.int64), "expected float16, float32 or float64"),
    ],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, words: list[str], vectors: np.ndarray, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        write_artifact(tmp_path / "a", vectors=vectors, words=words, config={})
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("value", [object(), float("nan"), float("inf"), {1, 2}])
def test_a_config_that_is_not_json_leaves_the_old_artifact_alone(
    artifact: Path, value: object
) -> None:
    before = {name: (artifact / name).read_bytes() for name in FILES}
    with pytest.raises(InvalidTypeError, match="not JSON-serialisable"):
        write_artifact(artifact, vectors=matrix() + 1, words=WORDS, config={"value": value})
    with pytest.raises(InvalidTypeError, match="not JSON-serialisable"):
        update_config(artifact, {"value": value})
    assert {name: (artifact / name).read_bytes() for name in FILES} == before


def test_update_config_changes_what_it_is_given_and_nothing_else(artifact: Path) -> None:
    before = read_artifact(artifact).config
    update_config(artifact, {"certificates": {"tem": [1.5]}})
    update_config(artifact, {"metric": "poincare"})
    after = read_artifact(artifact).config
    assert folder.is_bound(after)
    assert after.pop(folder.CONFIG_DIGEST) != before.pop(folder.CONFIG_DIGEST)
    assert after == before | {"certificates": {"tem": [1.5]}, "metric": "poincare"}


@pytest.mark.parametrize("name", sorted(folder.RESERVED))
def test_entries_that_follow_from_the_arrays_cannot_be_set(artifact: Path, name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"config entries {name} follow from the arrays"):
        update_config(artifact, {name: 1})
    with pytest.raises(InvalidValueError, match=f"config entries {name} follow from the arrays"):
        write_artifact(artifact, vectors=matrix(), words=WORDS, config={name: 1})


def test_an_open_map_survives_the_folder_being_rewritten(artifact: Path) -> None:
    vectors = read_artifact(artifact).vectors
    write_artifact(artifact, vectors=matrix() + 1, words=WORDS, config={})
    np.testing.assert_array_equal(vectors, matrix().astype("float32"))
    np.testing.assert_array_equal(read_artifact(artifact).vectors, (matrix() + 1).astype("float32"))


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_DXPRIVACY_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_dir() == Path.home() / ".cache" / "huggingface" / "dxprivacy"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_dir() == Path("/x/huggingface/dxprivacy")
    monkeypatch.setenv("HF_HOME", "/h")
    assert cache_dir() == Path("/h/dxprivacy")
    monkeypatch.setenv("HF_DXPRIVACY_CACHE", "~/own")
    assert cache_dir() == Path.home() / "own"


def test_the_folder_of_a_privatizer_is_told(tmp_path: Path) -> None:
    privatizer = DxPrivatizer("wordnet-gloss", "tem", 2.0)
    privatizer.save_pretrained(tmp_path / "stored")
    for make in (DxPrivatizer, EmbeddingSpace.from_pretrained):
        with pytest.raises(ArtifactError, match="holds a privatizer, not a space; load it with"):
            make(tmp_path / "stored")
    assert DxPrivatizer.from_pretrained(tmp_path / "stored").epsilon == 2.0

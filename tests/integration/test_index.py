"""Indexes that travel: to other processes, through `Dataset.map`, to the Hub and back."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from huggingface_hub import HfApi

from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import cache_dir, update_config
from hf_dxprivacy.hub.artifact import read_config
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact
from hub_server import HubServer
from machine import PATIENCE

SPACE = "me/space"
FILES = ["config.json", "vectors.safetensors", "vocabulary.txt"]
TEXT = "waab waac, waad! " * 20

# Candidates from two of the dimensions only, so that it shows whether the index is used.
COARSE = "PCA2,Flat"

AFRESH = """
import pickle
import sys
from pathlib import Path

privatizer = pickle.loads(Path(sys.argv[1]).read_bytes())
print(privatizer.privatize(sys.argv[2]))
print(privatizer.space.index.sha256)
print("/index.faiss\\n" in Path("/proc/self/maps").read_text())
"""


@pytest.fixture(autouse=True)
def _token(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)


@pytest.fixture(scope="module")
def indexed(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_index(COARSE)


@pytest.fixture
def folder(tmp_path: Path, indexed: EmbeddingSpace) -> Path:
    """Holds the space with its index."""
    indexed.save_pretrained(tmp_path / "space")
    return tmp_path / "space"


def seeded(space: EmbeddingSpace, index: str = COARSE) -> DxPrivatizer:
    return DxPrivatizer(space, "laplace", 3.0, seed=9, index=index)


def digest(space: EmbeddingSpace) -> str:
    assert space.index is not None
    return space.index.sha256


def forget() -> None:
    """Make this process one that has never seen a space."""
    space_artifact._known.clear()
    space_artifact._recent.clear()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="shows what is mapped")
@pytest.mark.parametrize("stored", [True, False])
def test_another_process_maps_the_very_same_index(
    folder: Path, indexed: EmbeddingSpace, tmp_path: Path, stored: bool
) -> None:
    space = EmbeddingSpace.from_pretrained(folder, index=COARSE) if stored else indexed
    privatizer = seeded(space)
    pickled = pickle.dumps(privatizer)
    assert len(pickled) < 2000
    (tmp_path / "pickled").write_bytes(pickled)
    arguments = [sys.executable, "-c", AFRESH, str(tmp_path / "pickled"), TEXT]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=PATIENCE)
    text, sha256, mapped = done.stdout.split("\n")[:3]
    assert (text, sha256, mapped) == (privatizer.privatize(TEXT), digest(space), "True")
    assert text != seeded(space, "flat").privatize(TEXT)


def test_spaces_that_differ_in_their_index_only_are_kept_apart(
    euclidean_space: EmbeddingSpace, indexed: EmbeddingSpace
) -> None:
    spaces = [euclidean_space, indexed, euclidean_space.build_index("hnsw")]
    pickled = [pickle.dumps(space) for space in spaces]
    assert [pickle.loads(p) for p in pickled] == spaces
    assert len({seeded(space, "flat").space.digest for space in spaces}) == 1
    forget()
    restored = [pickle.loads(p) for p in pickled]
    assert restored[0].index is None
    assert [digest(s) for s in restored[1:]] == [digest(s) for s in spaces[1:]]
    shelf = cache_dir() / "spaces"
    assert (shelf / f"{indexed.digest}-{digest(indexed)}" / "index.faiss").is_file()


def test_an_index_that_was_exchanged_after_pickling_is_refused(folder: Path) -> None:
    pickled = pickle.dumps(EmbeddingSpace.from_pretrained(folder, index=COARSE))
    other = EmbeddingSpace.from_pretrained(folder).build_index("hnsw")
    space_artifact.write(other, folder)
    forget()
    with pytest.raises(ArtifactError, match="the index is of kind 'hnsw', not 'PCA2,Flat'"):
        pickle.loads(pickled)
    # What says it is of that kind may still be another one.
    changed = EmbeddingSpace.from_pretrained(folder).build_index("PCA2,SQ8")
    space_artifact.write(changed, folder)
    described = read_config(folder)["index"]
    update_config(folder, {"index": {**described, "kind": "PCA2,Flat"}})
    with pytest.raises(ArtifactError, match="was changed after the space was pickled"):
        pickle.loads(pickled)


def test_workers_of_map_search_the_same_index(indexed: EmbeddingSpace) -> None:
    data = Dataset.from_dict({"text": [f"{TEXT} {word}" for word in indexed.words[:16]]})
    privatizer = seeded(indexed)
    one = data.map(privatizer, batched=True, with_indices=True)
    two = data.map(privatizer, batched=True, with_indices=True, num_proc=2, batch_size=3)
    exact = data.map(seeded(indexed, "flat"), batched=True, with_indices=True)
    assert one["text"] == two["text"]
    assert one["text"] != exact["text"]


def test_an_index_goes_to_the_hub_and_back(hub: HubServer, indexed: EmbeddingSpace) -> None:
    commit = indexed.push_to_hub(SPACE, license="mit").oid
    remote = hub.repo(SPACE).files()
    assert indexed.index is not None
    assert remote["index.faiss"] == indexed.index.content.tobytes()
    assert b"PCA2,Flat" in remote["README.md"]
    hub.requests.clear()
    assert EmbeddingSpace.from_pretrained(SPACE).index is None
    assert {path.rpartition("/")[2] for _, path in hub.requests} == set(FILES)
    hub.requests.clear()
    space = EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    # The other files are in the cache; the index comes from the commit that they came from.
    assert [method for method, _ in hub.requests[:1]] == ["HEAD"]
    fetched = {path for _, path in hub.requests[1:] if "/resolve/" in path}
    assert fetched == {f"/{SPACE}/resolve/{commit}/index.faiss"}
    assert space.commit is not None
    assert space.commit.sha == commit
    assert seeded(space).privatize(TEXT) == seeded(indexed).privatize(TEXT)
    pickled = pickle.dumps(space)
    hub.stop()
    forget()
    assert digest(pickle.loads(pickled)) == digest(indexed)
    again = EmbeddingSpace.from_pretrained(SPACE, index=COARSE, local_files_only=True)
    assert digest(again) == digest(indexed)


def test_a_push_without_index_takes_the_old_one_away(
    hub: HubServer, indexed: EmbeddingSpace, euclidean_space: EmbeddingSpace
) -> None:
    first = indexed.push_to_hub(SPACE, license="mit").oid
    euclidean_space.push_to_hub(SPACE, license="mit")
    assert "index.faiss" not in hub.repo(SPACE).files()
    with pytest.raises(ArtifactError, match="stored without an index; make one with"):
        EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    old = EmbeddingSpace.from_pretrained(SPACE, index=COARSE, revision=first)
    assert digest(old) == digest(indexed)


def test_a_repository_that_lacks_its_index_or_has_another(
    hub: HubServer, indexed: EmbeddingSpace
) -> None:
    indexed.push_to_hub(SPACE, license="mit")
    content = hub.repo(SPACE).files()["index.faiss"]
    api = HfApi()
    api.upload_file(path_or_fileobj=content[:-1], path_in_repo="index.faiss", repo_id=SPACE)
    with pytest.raises(ArtifactError, match=r"SHA-256 is .* force_download=True fetches"):
        EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    api.delete_file("index.faiss", SPACE)
    with pytest.raises(ArtifactError, match=r"'index\.faiss' of .* no such file; make one"):
        EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    api.upload_file(path_or_fileobj=content, path_in_repo="index.faiss", repo_id=SPACE)
    assert digest(EmbeddingSpace.from_pretrained(SPACE, index=COARSE)) == digest(indexed)


def test_a_copy_in_the_cache_that_was_damaged_is_fetched_again_if_asked(
    hub: HubServer, indexed: EmbeddingSpace
) -> None:
    indexed.push_to_hub(SPACE, license="mit")
    first = EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    assert first.location is not None
    (Path(first.location) / "index.faiss").resolve().write_bytes(b"damaged")
    with pytest.raises(ArtifactError, match="force_download=True fetches it again"):
        EmbeddingSpace.from_pretrained(SPACE, index=COARSE)
    again = EmbeddingSpace.from_pretrained(SPACE, index=COARSE, force_download=True)
    assert digest(again) == digest(indexed)


def test_the_command_line_searches_by_the_index_and_pushes_it(
    hub: HubServer,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text(f"{TEXT}\n")
    command = ["privatize", "in.txt", "--output", "out.txt", "--space", "./space", "--epsilon", "3"]
    asked = ["--mechanism", "laplace", "--index", COARSE, "--seed", "9"]
    assert main([*command, *asked]) == 0
    assert "searched approximately (index 'PCA2,Flat')" in " ".join(capsys.readouterr().err.split())
    assert main([*command, "--overwrite", "--mechanism", "tem", "--index", COARSE]) == 2
    assert "'tem' has no use for an index" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--mechanism", "laplace", "--index", "ivf"]) == 1
    assert "the index is of kind 'PCA2,Flat', not 'ivf'" in capsys.readouterr().err
    assert main(["push", "space", SPACE, "--license", "mit"]) == 0
    assert hub.repo(SPACE).files()["index.faiss"] == (folder / "index.faiss").read_bytes()
    assert main(["card", "space", "--license", "mit"]) == 0
    assert COARSE in (folder / "README.md").read_text()

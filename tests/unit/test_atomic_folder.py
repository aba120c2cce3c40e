"""A folder that is saved into holds the old or the new artifact, wherever the save is killed."""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.cli.artifacts import check_folder
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import InvalidTypeError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is killed")

# Every file operation of Python announces itself by one of these before it is done.
OPERATIONS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.listdir"}
OPERATIONS |= {"os.scandir", "shutil.rmtree", "shutil.copyfile", "os.truncate", "os.chmod"}


def killed(work: Callable[[], object], operation: int) -> bool:
    """Do work in a child that is killed at a file operation; tell whether it came so far."""
    pid = os.fork()
    if pid == 0:
        left = operation

        def counted(event: str, _: object) -> None:
            nonlocal left
            if event in OPERATIONS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(counted)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def make_space(scale: float, size: int = 3) -> EmbeddingSpace:
    words = [f"w{row}" for row in range(size)]
    return EmbeddingSpace.from_vectors(words, scale * np.eye(size), provenance={"licence": "mit"})


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_space_is_the_old_or_the_new_one_wherever_a_save_is_killed(tmp_path: Path) -> None:
    old, new = make_space(1.0).build_neighbours(), make_space(2.0, size=4)
    folder = tmp_path / "space"
    old.save_pretrained(folder)
    (folder / "notes.txt").write_text("mine")
    found = set()
    operation = 0
    while killed(lambda: new.save_pretrained(folder), operation):
        loaded = EmbeddingSpace.from_pretrained(folder)
        assert loaded.digest in (old.digest, new.digest), operation
        assert len(loaded) == (3 if loaded.digest == old.digest else 4)
        if loaded.digest == old.digest:
            assert EmbeddingSpace.from_pretrained(folder, neighbour_lists=True).neighbour_lists
        found.add(loaded.digest)
        operation += 1
        # The next save works, and leaves nothing of this one.
        old.save_pretrained(folder)
        assert names(folder) == {"README.md", "config.json", "neighbours.safetensors"} | {
            "notes.txt", "vectors.safetensors", "vocabulary.txt",
        }  # fmt: skip
    assert operation > 20
    assert found == {old.digest, new.digest}
    assert EmbeddingSpace.from_pretrained(folder).digest == new.digest
    assert names(folder) == {"README.md", "config.json", "notes.txt"} | {
        "vectors.safetensors", "vocabulary.txt",
    }  # fmt: skip


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    space, folder = make_space(1.0), tmp_path / "deep" / "space"
    operation = 0
    while killed(lambda: space.save_pretrained(folder), operation):
        if folder.exists():
            assert EmbeddingSpace.from_pretrained(folder).digest == space.digest
        operation += 1
        check_folder(folder, overwrite=True)
        if folder.exists():
            break
    while killed(lambda: space.save_pretrained(folder), operation):
        operation += 1
    assert names(folder.parent) == {"space"}


def test_a_privatizer_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    make_space(1.0).save_pretrained(tmp_path / "space")
    space = EmbeddingSpace.from_pretrained(tmp_path / "space")
    old, new = (DxPrivatizer(space, "tem", epsilon) for epsilon in (1.0, 2.0))
    old.save_pretrained(tmp_path / "privatizer")
    found = []
    for operation in count():
        alive = not killed(lambda: new.save_pretrained(tmp_path / "privatizer"), operation)
        found.append(DxPrivatizer.from_pretrained(tmp_path / "privatizer").epsilon)
        if alive:
            break
    assert len(found) > 5
    assert {*found} == {1.0, 2.0}
    assert found == sorted(found)


def test_convert_leaves_the_old_or_the_new_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.txt").write_text("a 1 0\nb 0 1\n")
    Path("new.txt").write_text("a 2 0\nb 0 2\nc 2 2\n")

    def convert(name: str) -> int:
        return main(["convert", name, "--output", "space", "--overwrite", "--license", "mit"])

    assert convert("old.txt") == 0
    sizes = set()
    for operation in range(0, 2000, 7):
        alive = not killed(lambda: convert("new.txt"), operation)
        sizes.add(len(EmbeddingSpace.from_pretrained("space")))
        if alive:
            break
    assert sizes == {2, 3}


def test_an_interruption_while_files_are_put_in_place_leaves_the_new_ones_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_space(1.0).save_pretrained(tmp_path / "space")
    link, calls = os.link, []

    def interrupted(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt("now")
        link(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt, match="now"):
        make_space(2.0).save_pretrained(tmp_path / "space")
    found = EmbeddingSpace.from_pretrained(tmp_path / "space")
    assert found.digest == make_space(2.0).digest
    assert names(tmp_path / "space") == {"README.md", "config.json"} | {
        "vectors.safetensors", "vocabulary.txt",
    }  # fmt: skip


def test_a_file_system_without_links_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for scale in (1.0, 2.0):
        make_space(scale).save_pretrained(tmp_path)
        assert EmbeddingSpace.from_pretrained(tmp_path).digest == make_space(scale).digest


def test_a_save_that_fails_leaves_the_old_space(tmp_path: Path) -> None:
    make_space(1.0).save_pretrained(tmp_path / "space")
    broken = EmbeddingSpace(("a", "b"), np.eye(2), provenance={"made": object()})
    with pytest.raises(InvalidTypeError, match="not JSON-serialisable"):
        broken.save_pretrained(tmp_path / "space")
    assert EmbeddingSpace.from_pretrained(tmp_path / "space").digest == make_space(1.0).digest
    assert names(tmp_path) == {"space"}


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file; name a folder"):
        make_space(1.0).save_pretrained(tmp_path / "file")

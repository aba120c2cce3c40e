"""Files, folders and archives, in any nesting."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tqdm import tqdm

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.training import archives as parts
from hf_dxprivacy.training.archives import find_files, read_parts

TEXT = b"one\ntwo\nthree\n"


def _contents(path: Path, size: int = 5) -> dict[str, bytes]:
    """Return what each part holds, by its name within the folder."""
    files = find_files(path)
    folder = path if path.is_dir() else path.parent
    with tqdm(total=sum(file.stat().st_size for file in files), disable=True) as bar:
        return {
            str(Path(part.name).relative_to(folder)): b"".join(part.blocks(size))
            for part in read_parts(files, bar)
        }


def _tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_told_from_the_content(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "file").write_bytes(pack(TEXT))
    assert _contents(tmp_path / "file") == {"file": TEXT}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_members_of_an_archive_are_parts(tmp_path: Path, mode: str) -> None:
    members = {"b.csv": TEXT, "folder/a.csv": b"x\n", "README": b"no", "._a.csv": b"no"}
    (tmp_path / "dump.tar.gz").write_bytes(_tar(members, mode))
    assert _contents(tmp_path) == {"dump.tar.gz/b.csv": TEXT, "dump.tar.gz/folder/a.csv": b"x\n"}


def test_archives_within_archives(tmp_path: Path) -> None:
    inner = _tar({"a.csv": TEXT, "b.csv.gz": gzip.compress(TEXT * 1000)})
    (tmp_path / "dump.tgz").write_bytes(_tar({"a.tar": inner, "b.csv": TEXT}, "w:gz"))
    assert _contents(tmp_path) == {
        "dump.tgz/a.tar/a.csv": TEXT,
        "dump.tgz/a.tar/b.csv.gz": TEXT * 1000,
        "dump.tgz/b.csv": TEXT,
    }


def test_a_part_may_be_left_before_its_end(tmp_path: Path) -> None:
    (tmp_path / "dump.tar").write_bytes(_tar({"a.csv": TEXT * 5000, "b.csv": TEXT}))
    with tqdm(disable=True) as bar:
        found = [next(part.blocks(1)) for part in read_parts([tmp_path / "dump.tar"], bar)]
    assert found == [b"one\n", b"one\n"]


def test_a_folder_is_read_in_order_without_other_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.csv", "a.csv", "sub/c.csv", "notes.md", ".hidden.csv"):
        (tmp_path / name).write_bytes(TEXT)
    assert list(_contents(tmp_path)) == ["a.csv", "b.csv", "sub/c.csv"]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    assert find_files([tmp_path, str(tmp_path / "a.csv")]) == [tmp_path / "a.csv"]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 100])
def test_blocks_are_whole_lines(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf" + TEXT.removesuffix(b"\n"))
    with tqdm(disable=True) as bar:
        (blocks,) = [list(part.blocks(size)) for part in read_parts([tmp_path / "a"], bar)]
    assert b"".join(blocks) == TEXT
    assert all(block.endswith(b"\n") for block in blocks)


def test_an_empty_file_has_no_block(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert _contents(tmp_path) == {"a.csv": b""}


def test_the_bar_counts_the_bytes_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / "b.tar.gz").write_bytes(_tar({"a.csv": TEXT * 1000}, "w:gz"))
    files = find_files(tmp_path)
    with tqdm(file=io.StringIO()) as bar:
        for part in read_parts(files, bar):
            assert sum(map(len, part.blocks(100)))
        assert bar.n == sum(file.stat().st_size for file in files)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_truncated_stream_is_named(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = pack(bytes(range(256)) * 100)
    (tmp_path / "a.csv").write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match=r"a\.csv: truncated, damaged or unreadable"):
        _contents(tmp_path)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_truncated_archive_is_named(tmp_path: Path, mode: str) -> None:
    content = _tar({"x.csv": bytes(range(256)) * 100}, mode)
    (tmp_path / "a.tar").write_bytes(content[: len(content) // 3])
    with pytest.raises(ArtifactError, match=r"a\.tar.*: truncated, damaged or unreadable"):
        _contents(tmp_path)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"nowhere is missing"):
        find_files(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match=r"no file ending in \.csv"):
        find_files([tmp_path])
    with pytest.raises(ArtifactError, match="at least one file or folder, got none"):
        find_files([])


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LONGEST_LINE", 1 << 20)
    (tmp_path / "a.csv").write_bytes(b"x" * (1 << 21))
    with pytest.raises(ArtifactError, match=r"a\.csv: a line is longer than 1 MiB"):
        _contents(tmp_path)

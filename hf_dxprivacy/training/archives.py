"""Files, folders and archives of text, read one after the other with one progress bar."""

import bz2
import codecs
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from hf_dxprivacy.errors import ArtifactError

# What is read of a folder or an archive; a file that is named is read whatever it is called.
SUFFIXES = (".csv", ".tsv", ".txt", ".gz", ".tgz", ".bz2", ".xz", ".tar")

# No row is that long; a file with such a line has other line ends or is not text.
LONGEST_LINE = 1 << 26

_BUFFER = 1 << 20
_COMPRESSED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_TAR_MAGIC = slice(257, 262)
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError)


class Part:
    """A text file, perhaps inside an archive, which is read from the front.

    Attributes:
        name: Its path, and behind it the path within the archive.
        version: What changes when the file, or the one around it, is written anew.
    """

    def __init__(self, name: str, version: str, stream: BinaryIO) -> None:
        self.name, self.version = name, version
        self._stream = stream

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield whole lines, `size` bytes and the rest of a line at once.

        Every line ends with a line feed, also the last one. A byte order mark is left out.

        Raises:
            ArtifactError: If the file is damaged, or a line is longer than `LONGEST_LINE`.
        """
        block = self._read(size).removeprefix(codecs.BOM_UTF8)
        while block:
            yield block
            block = self._read(size)

    def _read(self, size: int) -> bytes:
        with _readable(self.name):
            block = self._stream.read(size)
            if not block or block.endswith(b"\n"):
                return block
            rest = self._stream.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise ArtifactError(
                f"{self.name}: a line is longer than {LONGEST_LINE >> 20} MiB; expected a text "
                "file with one row a line"
            )
        return b"".join((block, rest, b"" if rest.endswith(b"\n") else b"\n"))


class _Counted(io.FileIO):
    """A file that moves a progress bar."""

    def __init__(self, path: Path, bar: "tqdm[Any]") -> None:
        super().__init__(path)
        self._bar = bar

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._bar.update(count)
        return count


def find_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that are meant by a path or several, folders replaced by what they hold.

    Of a folder these are the files in it and in its folders with one of `SUFFIXES`, in the order of
    their names, without hidden ones.

    Raises:
        ArtifactError: If a path does not exist, or there is no file at all.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    files: dict[Path, None] = {}
    for path in map(Path, listed):
        if not path.exists():
            raise ArtifactError(f"{path} is missing; expected a file or a folder")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found = [file for file in inside if file == path or (file.is_file() and _is_data(file))]
        if not found:
            raise ArtifactError(f"{path}: no file ending in {', '.join(SUFFIXES)} in this folder")
        files.update(dict.fromkeys(found))
    if not files:
        raise ArtifactError("expected at least one file or folder, got none")
    return list(files)


def read_parts(files: Sequence[Path], bar: "tqdm[Any]") -> Iterator[Part]:
    """Yield the text files in some files, with archives and compression undone.

    Both are recognised from the content: gzip, bzip2, xz and tar, also within each other. Each part
    has to be read before the next one is asked for; what is left of it is skipped.

    Args:
        files: The files.
        bar: Moved by the bytes that are read of the files as they are.

    Raises:
        ArtifactError: If an archive is damaged; `Part.blocks` does so for what is inside.
    """
    for file in files:
        with _readable(str(file)), _Counted(file, bar) as raw:
            status = file.stat()
            version = f"{status.st_size} {status.st_mtime_ns}"
            yield from _unpack(str(file), version, io.BufferedReader(raw, _BUFFER))


def _unpack(name: str, version: str, stream: Any) -> Iterator[Part]:
    head = stream.peek(_TAR_MAGIC.stop)
    for magic, unpacked in _COMPRESSED.items():
        if head.startswith(magic):
            yield from _unpack(name, version, unpacked(stream))
            return
    if head[_TAR_MAGIC] != b"ustar":
        yield Part(name, version, stream)
        return
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isfile() and _is_data(Path(member.name)):
                yield from _unpack(f"{name}/{member.name}", version, archive.extractfile(member))


def _is_data(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES) and not path.name.startswith(".")


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise ArtifactError(f"{name}: truncated, damaged or unreadable ({error})") from error

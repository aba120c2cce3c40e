"""Output that is whole or not there: written beside its place, then renamed."""

import errno
import gzip
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from hf_dxprivacy.errors import InvalidValueError

# A write that fails in one of these ways does not say of which file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_output(path: Path, overwrite: bool) -> None:
    """Require that a file can be put in this place.

    Args:
        path: The file to be.
        overwrite: Whether it may exist.

    Raises:
        InvalidValueError: If not.
    """
    if path.is_dir():
        raise InvalidValueError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InvalidValueError(f"there is no folder {path.parent}; make it first")
    if path.exists():
        if not path.is_file():
            raise InvalidValueError(f"{path} is not a regular file; name another one")
        if not overwrite:
            raise InvalidValueError(
                f"{path} exists already; name another file, or allow to overwrite it (--overwrite)"
            )


@contextmanager
def replacing(path: Path, *, overwrite: bool = False, packed: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when it is complete.

    It is written beside its place, forced to disk and renamed. Whatever ends the block before its
    end (an error, a signal that raises, a full disk) leaves nothing behind, and a file that was
    there stays untouched.

    Args:
        path: The file to be.
        overwrite: Whether it may exist.
        packed: Compress with gzip.

    Raises:
        InvalidValueError: If the file exists and may not.
    """
    check_output(path, overwrite)
    # A link is followed, not replaced.
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    opened: list[BinaryIO] = []
    try:
        opened.append(raw := beside.open("xb"))
        if packed:
            opened.append(cast(BinaryIO, gzip.GzipFile("", "wb", 6, raw, mtime=0)))
        yield opened[-1]
        for file in reversed(opened[1:]):
            file.close()
        raw.flush()
        os.fsync(raw.fileno())
        raw.close()
        check_output(path, overwrite)
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException as error:
        for file in reversed(opened):
            # Closing writes what is buffered, which fails again on a full disk.
            with suppress(OSError, ValueError):
                file.close()
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    _sync_folder(target.parent)


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Hand out standard output as a binary file."""
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _sync_folder(folder: Path) -> None:
    # Makes the rename itself durable; not every system can open a folder.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

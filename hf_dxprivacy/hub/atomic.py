"""Files and folders that hold the old or the new content at every moment, also after a kill."""

import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

# In a folder that is being saved into: files that are not complete yet; all new files, complete,
# that replace those beside them; and, among these, the names of files that the save removes.
_SAVING, _SAVED, _REMOVED = ".hf-dxprivacy-saving-", ".hf-dxprivacy-saved", ".removed"


def atomic_write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file beside its place, and put it there when it is complete and on the disk.

    Raises:
        OSError: If it cannot be written; names the file.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        # A full disk is reported by a write, which knows no name.
        if error.errno is not None:
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def atomic_folder(folder: str | Path, replaces: Collection[str] = ()) -> Iterator[Path]:
    """Write the files of a folder so that it holds the old or the new ones at every moment.

    A new folder appears when it is complete. In one that exists, the new files are written into a
    hidden folder inside, which one rename makes valid as a whole; only then are they put in place.
    Whatever a kill leaves, `current_folder` tells where the valid files are, and the next save
    cleans up.

    Args:
        folder: Made if missing; other files in it stay.
        replaces: Names of files that are removed if the new state has none of that name.

    Yields:
        An empty folder to write into.

    Raises:
        OSError: If a file cannot be written; the old state stays.
    """
    place = Path(folder)
    exists = place.is_dir()
    if place.exists() and not exists:
        raise FileExistsError(f"{place} is a file; name a folder")
    parent = place if exists else place.parent
    parent.mkdir(parents=True, exist_ok=True)
    _place_saved(place)
    _remove_leftovers(parent)
    staging = parent / _unique_name()
    staging.mkdir()
    try:
        yield staging
        if not exists:
            staging.rename(place)
            return
        removed = [name for name in replaces if not (staging / name).exists()]
        atomic_write(staging / _REMOVED, [json.dumps(removed).encode()])
        # Another process may have saved meanwhile.
        _place_saved(place)
        staging.rename(place / _SAVED)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    try:
        _place_saved(place)
    except BaseException:
        # An interruption: the command line holds further signals back for long enough.
        _place_saved(place)
        raise


def current_folder(folder: str | Path) -> Path:
    """Return where the valid files of a folder are; another place only if a save was killed."""
    saved = Path(folder) / _SAVED
    return saved if saved.is_dir() else Path(folder)


def is_leftover(path: Path) -> bool:
    """Tell whether a path in a folder is what a killed save has left."""
    return path.name == _SAVED or path.name.startswith(_SAVING)


def _place_saved(place: Path) -> None:
    """Put the files of a complete save in place; they stay valid as a whole until all are."""
    saved = place / _SAVED
    if not saved.is_dir():
        return
    for path in sorted(saved.rglob("*")):
        target = place / path.relative_to(saved)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif path.name != _REMOVED and not (target.is_file() and target.samefile(path)):
            beside = place / _unique_name()
            try:
                os.link(path, beside)
            except OSError:
                # There are file systems without links.
                shutil.copyfile(path, beside)
            beside.replace(target)
    for name in json.loads((saved / _REMOVED).read_bytes()):
        if Path(name).name == name:
            (place / name).unlink(missing_ok=True)
    done = place / _unique_name()
    saved.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what saves have left whose process is gone."""
    for path in folder.glob(f"{_SAVING}*"):
        pid = path.name.removeprefix(_SAVING).partition("-")[0]
        # On Windows, os.kill would end the process.
        if not pid.isdecimal() or os.name != "posix":
            continue
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        except PermissionError:
            # It is running, as another user.
            continue


def _unique_name() -> str:
    return f"{_SAVING}{os.getpid()}-{secrets.token_hex(6)}"

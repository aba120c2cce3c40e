"""Folders that a space is written into: whole, or not there."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.usage import UsageError

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace


def check_folder(folder: Path, overwrite: bool) -> None:
    """Require that a space can be put into this place.

    Raises:
        UsageError: If there is something else, or a space that may not be replaced.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / "config.json").is_file():
        raise UsageError(f"{folder} exists and holds no space; name another folder")
    if not overwrite:
        raise UsageError(f"{folder} holds a space already; name another folder, or --overwrite it")


def save_whole(space: "EmbeddingSpace", folder: Path, license: str | None) -> None:
    """Save a space; a new folder appears when it is complete, so that an interruption leaves none.

    Args:
        space: The space.
        folder: Where to; see `check_folder`.
        license: Licence for the card.
    """
    if folder.exists():
        space.save_pretrained(folder, license=license)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as beside:
        written = Path(beside) / folder.name
        space.save_pretrained(written, license=license)
        written.rename(folder)

"""A folder from which interrupted statistics go on."""

import io
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.calibration.blocks import Block
from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.records import read_json, to_json, write_whole

_ABOUT = "about.json"


class Checkpoint:
    """Blocks of words that are done, one file each. Files appear whole or not at all.

    Args:
        folder: Where; made if it is not there.
        about: What the blocks belong to, as JSON-ready values.

    Raises:
        InvalidValueError: If the folder holds the blocks of something else.
        ArtifactError: If it is damaged, or holds other files but no checkpoint.
    """

    def __init__(self, folder: str | Path, about: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not any(self.folder.iterdir()):
            write_whole(self.folder / _ABOUT, [to_json(about)])
        known = read_json(self.folder / _ABOUT, "expected a checkpoint of statistics")
        if differing := [name for name, value in about.items() if known.get(name) != value]:
            raise InvalidValueError(
                f"{self.folder} is the checkpoint of statistics with other "
                f"{' and '.join(differing)}; name another folder, or delete it to start again"
            )

    def load(self, number: int) -> Block | None:
        """Return a block, or None if it is not done.

        Raises:
            ArtifactError: If its file is damaged.
        """
        path = self._path(number)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                return Block(**stored)
        except (OSError, ValueError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ArtifactError(
                f"{path} is not a whole block of statistics; delete it to have it done again"
            ) from error

    def save(self, number: int, block: Block) -> None:
        """Keep a block."""
        content = io.BytesIO()
        np.savez_compressed(content, **asdict(block))
        write_whole(self._path(number), [content.getbuffer()])

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:06d}.npz"

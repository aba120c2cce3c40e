"""A file from which an interrupted training goes on."""

import hashlib
import json
import os
import time
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.training.descent import State
from hf_dxprivacy.training.recipe import PoincareRecipe
from hf_dxprivacy.training.relations import Relations

# Writing may take this share of the time.
SHARE = 0.05


class Checkpoint:
    """The state of a training on disk; always that after a whole epoch.

    Args:
        path: The file; a new one replaces it when it is complete.
        relations: What is learned.
        dim: Number of dimensions.
        recipe: Settings.
    """

    def __init__(
        self, path: str | Path, relations: Relations, dim: int, recipe: PoincareRecipe
    ) -> None:
        self.path = Path(path)
        digest = hashlib.sha256(np.ascontiguousarray(relations.pairs).tobytes())
        digest.update("\n".join(relations.nodes).encode())
        self.belongs = {"relations": digest.hexdigest(), "dim": dim, "recipe": asdict(recipe)}
        self.due = 0.0

    def load(self) -> State | None:
        """Return the state in the file, or None if there is no file.

        Raises:
            ArtifactError: If it is damaged.
            InvalidValueError: If it belongs to another training.
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                arrays = {name: stored[name] for name in stored.files if name != "about"}
            belongs, fields = about["belongs"], about["state"]
            rng = np.random.default_rng()
            rng.bit_generator.state = about["rng"]
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise ArtifactError(
                f"{self.path} is not a whole checkpoint; delete it to start again"
            ) from error
        self._compare(belongs)
        return State(rng=rng, **fields, **arrays)

    def save(self, state: State, now: bool) -> None:
        """Replace the file.

        Args:
            state: What to keep.
            now: Whether to do so even if the last time was so lately that writing again would slow
                the training down.
        """
        if not now and time.monotonic() < self.due:
            return
        fields = {"epoch": state.epoch, "best_precision": state.best_precision}
        about = {
            "belongs": self.belongs,
            "state": fields | {"waited": state.waited},
            "rng": state.rng.bit_generator.state,
        }
        arrays: dict[str, Any] = {"points": state.points}
        if state.best is not None:
            arrays["best"] = state.best
        if state.listed is not None:
            arrays["listed"] = state.listed
        started = time.monotonic()
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            with beside.open("wb") as file:
                np.savez(file, about=np.array(json.dumps(about)), **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        finally:
            beside.unlink(missing_ok=True)
        ended = time.monotonic()
        self.due = ended + (ended - started) / SHARE

    def _compare(self, belongs: dict[str, Any]) -> None:
        differing = [name for name, value in self.belongs.items() if belongs.get(name) != value]
        if differing:
            raise InvalidValueError(
                f"{self.path} is the checkpoint of a training with other {' and '.join(differing)};"
                " name another file, or delete it to start again"
            )

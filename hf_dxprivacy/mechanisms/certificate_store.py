"""Where certified levels are remembered: in the space itself, and in the user's cache.

Levels belong to a space's digest and a β. They are public: they depend on no text.
"""

import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import cache_dir
from hf_dxprivacy.spaces import EmbeddingSpace

# Slopes are 2^(k/32): 2.2 % apart. A curve is stored as levels by grid index k.
STEPS_PER_OCTAVE = 32


def grid_rate(index: int) -> float:
    """Return the slope of a grid index."""
    return float(2.0 ** (index / STEPS_PER_OCTAVE))


def load(space: EmbeddingSpace, beta: float) -> dict[int, float]:
    """Return the remembered levels by grid index."""
    remembered: dict[int, float] = {}
    for source, curves in (("config.json", space.certificates), _read(_path(space))):
        if curves and curves.get("digest") != space.digest:
            raise ArtifactError(
                f"the certified levels in {source} belong to another space (digest "
                f"{curves.get('digest')}, expected {space.digest}); remove them from the file"
            )
        for index, level in curves.get(_name(beta), {}).items():
            remembered[int(index)] = _checked(source, int(index), level)
    return remembered


def save(space: EmbeddingSpace, beta: float, levels: dict[int, float]) -> None:
    """Remember levels in the space (saved along with it) and in the user's cache."""
    space.certificates["digest"] = space.digest
    space.certificates[_name(beta)] = {str(k): levels[k] for k in sorted(levels)}
    path = _path(space)
    curves = _read(path)[1] | space.certificates
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as beside:
            json.dump(curves, beside)
        os.replace(beside.name, path)
    except OSError as error:
        # The levels are in use all the same; only the next process has to work them out again.
        warnings.warn(f"calibration could not be cached in {path}: {error}", stacklevel=2)


def _name(beta: float) -> str:
    return f"beta={beta!r}"


def _path(space: EmbeddingSpace) -> Path:
    return cache_dir() / "certificates" / f"{space.digest}.json"


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        curves = json.loads(path.read_text())
    except FileNotFoundError:
        curves = {}
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}); delete it") from error
    return str(path), curves


def _checked(source: str, index: int, level: float) -> float:
    # s ≤ ε*(s) ≤ 2s holds for every space, so anything else was not written by this package.
    rate = grid_rate(index)
    if not rate <= level <= 2.001 * rate:
        raise ArtifactError(
            f"{source} states a certified level {level} for slope {rate:.6g}, which is impossible "
            f"(it lies between the slope and twice the slope); the file was altered: delete it"
        )
    return level

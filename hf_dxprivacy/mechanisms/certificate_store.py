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

# Whose levels they are, beside the curves.
_DIGEST = "digest"


def grid_rate(index: int) -> float:
    """Return the slope of a grid index."""
    return float(2.0 ** (index / STEPS_PER_OCTAVE))


def load(space: EmbeddingSpace, beta: float) -> dict[int, float]:
    """Return the remembered levels by grid index.

    Raises:
        ArtifactError: If what is remembered is damaged, impossible, or of another space.
    """
    path = _path(space)
    remembered: dict[int, float] = {}
    for source, curves in (("config.json", space.certificates), (str(path), _read(path))):
        if curves and curves.get(_DIGEST) != space.digest:
            raise ArtifactError(
                f"the certified levels in {source} belong to another space (digest "
                f"{curves.get(_DIGEST)}, expected {space.digest}); remove them from the file"
            )
        remembered |= _levels(source, curves.get(_name(beta), {}))
    return remembered


def attach(space: EmbeddingSpace, beta: float, levels: dict[int, float]) -> None:
    """Remember levels in the space, with which they are saved."""
    curve = {str(k): levels[k] for k in sorted(levels)}
    space.certificates.update({_DIGEST: space.digest, _name(beta): curve})


def save(space: EmbeddingSpace, beta: float) -> None:
    """Remember the space's levels for a β in the user's cache."""
    path = _path(space)
    # Other slopes of the same β that the cache knows were loaded, and so are among the levels.
    curves = {**space.certificates, **_read(path), _name(beta): space.certificates[_name(beta)]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as beside:
            written = Path(beside) / path.name
            written.write_text(json.dumps(curves))
            os.replace(written, path)
    except OSError as error:
        # The levels are in use all the same; only the next process has to work them out again.
        warnings.warn(f"calibration could not be cached in {path}: {error}", stacklevel=2)


def _name(beta: float) -> str:
    return f"beta={beta!r}"


def _path(space: EmbeddingSpace) -> Path:
    return cache_dir() / "certificates" / f"{space.digest}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        curves = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}); delete it") from error
    if not isinstance(curves, dict):
        raise ArtifactError(f"{path}: expected a JSON object, got {curves!r:.40}; delete it")
    return curves


def _levels(source: str, curve: Any) -> dict[int, float]:
    try:
        levels = {int(index): float(level) for index, level in curve.items()}
        rates = {index: grid_rate(index) for index in levels}
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(
            f"{source}: expected certified levels by whole numbers ({error}); remove them"
        ) from error
    for index, level in levels.items():
        rate = rates[index]
        # s ≤ ε*(s) ≤ 2s holds for every space: anything else was not written by this package.
        if not rate <= level <= 2.001 * rate:
            raise ArtifactError(
                f"{source} states a certified level {level} for slope {rate:.6g}, which is "
                "impossible (it lies between the slope and twice the slope); the file was "
                "altered: delete it"
            )
    return levels

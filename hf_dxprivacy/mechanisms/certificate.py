"""Certified inverse temperatures: the largest s whose exact privacy level ε*(s) is at most an ε.

Values of s lie on a fixed geometric grid and the largest feasible one is taken: no interpolation,
and no monotonicity is assumed. Levels are remembered in the space and in the user's cache, by the
digest of the space and β. They are public: they depend on no text.
"""

import json
import logging
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import artifact, atomic_write, cache_dir
from hf_dxprivacy.mechanisms.base import Calibration
from hf_dxprivacy.mechanisms.levels import STEPS_PER_OCTAVE, grid_value, privacy_curve
from hf_dxprivacy.spaces import EmbeddingSpace

logger = logging.getLogger(__name__)

# Processor time for a pair of words, roughly: 43 s for the 25,000 words of wordnet-gloss.
SECONDS_PER_PAIR = 7e-8

# Entry beside the curves: digest of the space that the levels are of.
_DIGEST = "digest"


def truncation_weight(size: int, beta: float) -> float:
    """Return exp(−s·γ) = β/((1−β)(V−1)), the weight of far words; the same for every s."""
    return min(1.0, beta / ((1.0 - beta) * max(size - 1, 1)))


def calibrate(
    space: EmbeddingSpace, epsilon: float, beta: float, progress: bool = True
) -> Calibration:
    """Find the largest s on the grid whose exact level is at most ε; see `certify`."""
    known = certify(space, epsilon, epsilon, beta, progress)
    best = max([k for k, level in known.items() if level <= epsilon])
    return Calibration(grid_value(best), known[best])


def certify(
    space: EmbeddingSpace,
    lowest: float,
    highest: float,
    beta: float = 0.001,
    progress: bool = True,
) -> dict[int, float]:
    """Compute, and remember, the levels of all s that an ε of a range may need.

    Args:
        space: The vocabulary.
        lowest: Least ε.
        highest: Largest ε.
        beta: β in (0, 1).
        progress: Show a bar while levels that are not remembered are computed.

    Returns:
        ε*(s) by grid index; see `levels.grid_value`.
    """
    wanted = wanted_steps(lowest, highest)
    known = _remembered(space, beta, wanted)
    missing = [k for k in wanted if k not in known]
    if missing:
        seconds = SECONDS_PER_PAIR * len(space) ** 2
        # A progress bar is for terminals only.
        if seconds >= 1.0:
            asked = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
            logger.warning(
                "calibrating ε = %s for a space of %d words, which is remembered: roughly %.0f s "
                "of processor time; mechanism 'tem' starts at once",
                asked,
                len(space),
                seconds,
            )
        floor = truncation_weight(len(space), beta)
        known |= privacy_curve(space, missing, floor, progress=progress)
    curve = {str(k): known[k] for k in sorted(known)}
    space.cache.certificates.update({_DIGEST: space.digest, f"beta={beta!r}": curve})
    if missing:
        _save(space, f"beta={beta!r}")
    return known


def is_certified(space: EmbeddingSpace, epsilon: float, beta: float = 0.001) -> bool:
    """Tell whether all levels that an ε needs are remembered, so that it starts without delay.

    Raises:
        ArtifactError: If the remembered levels are damaged, impossible, or of another space.
    """
    wanted = wanted_steps(epsilon, epsilon)
    return _remembered(space, beta, wanted).keys() >= set(wanted)


def wanted_steps(lowest: float, highest: float) -> range:
    """Return the grid indices that an ε of a range may need."""
    # Those of the largest grid values that are at most s (ε*(s) ≥ s).
    first, last = [math.floor(STEPS_PER_OCTAVE * math.log2(s) + 1e-9) for s in (lowest, highest)]
    # One step below ε/2 is feasible for certain, whatever the margin for rounding.
    return range(first - STEPS_PER_OCTAVE - 1, last + 1)


def _remembered(space: EmbeddingSpace, beta: float, wanted: range) -> dict[int, float]:
    """Return the levels by grid index that the space or, for want of some, the cache knows."""
    found = _levels("config.json", space.certificates, space, beta)
    if not found.keys() >= set(wanted):
        path = _path(space)
        found |= _levels(str(path), _read(path), space, beta)
    return found


def _save(space: EmbeddingSpace, name: str) -> None:
    """Save the levels of one name in the user's cache."""
    path = _path(space)
    # Other levels of the same β that the cache knows were loaded, and so are among these.
    curves = {**space.certificates, **_read(path), name: space.certificates[name]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, [json.dumps(artifact.bind(curves)).encode()])
    except OSError as error:
        # The levels are in use all the same; only the next process has to compute them again.
        warnings.warn(f"calibration could not be cached in {path}: {error}", stacklevel=2)


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
    try:
        # Version 0.2 wrote none, and a level that lost a digit would pass for a true one.
        return curves if artifact.is_bound(curves) else {}
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}, or delete it") from error


def _levels(
    source: str, curves: Mapping[str, Any], space: EmbeddingSpace, beta: float
) -> dict[int, float]:
    """Check the curves of a source, and return the one of β."""
    if curves and curves.get(_DIGEST) != space.digest:
        raise ArtifactError(
            f"the certified levels in {source} belong to another space (digest "
            f"{curves.get(_DIGEST)}, expected {space.digest}); remove them from the file"
        )
    curve = curves.get(f"beta={beta!r}", {})
    try:
        levels = {int(index): float(level) for index, level in curve.items()}
        values = {index: grid_value(index) for index in levels}
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(
            f"{source}: expected certified levels by whole numbers ({error}); remove them"
        ) from error
    for index, level in levels.items():
        # s ≤ ε*(s) ≤ 2s holds for every space: anything else was not written by this package.
        if not values[index] <= level <= 2.001 * values[index]:
            raise ArtifactError(
                f"{source} states a certified level {level} for s = {values[index]:.6g}, which is "
                "impossible (it lies between s and 2·s); the file was altered: delete it"
            )
    return levels

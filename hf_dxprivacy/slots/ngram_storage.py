"""Storage of released n-grams: settings in one JSON file, one n-gram a line in another."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import HubOptions, atomic_write, resolve
from hf_dxprivacy.hub.artifact import LIBRARY_NAME, read_record, require_fields, write_record
from hf_dxprivacy.slots.ngram_release import ReleaseConfig
from hf_dxprivacy.slots.ngram_tree import FIRST_WORD, MARKS, ROOT, Grams

KIND = "low-transition"
SETTINGS = "selector.json"
GRAMS = "grams.jsonl"
FILES = (SETTINGS, GRAMS)

# Rounding of sums of a few shares.
_ROUNDING = 1e-9

_KINDS: dict[str, Any] = {
    "epsilon": (float, int, NoneType),
    "n_max": int,
    "l_max": int,
    "min_count": int,
    "alphabet_size": int,
    "threshold": (float, int),
    "mode": str,
    "grams_sha256": str,
}


def find(name_or_path: str | Path, revision: str | None, access: HubOptions) -> Path:
    """Find the folder of a stored selector.

    Raises:
        InvalidValueError: If it is neither a folder nor the name of a repository.
        HubError: If the Hub refuses it or cannot be reached.
    """
    return resolve(name_or_path, FILES, revision, access, what="a selector", ships=False).folder


def write(folder: Path, settings: dict[str, Any], grams: Grams) -> None:
    """Write a selector; each file appears whole or not at all, the settings last.

    Args:
        folder: Created if missing.
        settings: JSON-ready, with the names of `_KINDS` but the digest.
        grams: What was released.
    """
    content = "".join(_lines(grams)).encode()
    digest = {"grams_sha256": hashlib.sha256(content).hexdigest()}
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / GRAMS, [content])
    write_record(folder / SETTINGS, {"selector": KIND} | settings | digest)


def read(folder: Path) -> dict[str, Any]:
    """Read and check a selector.

    Returns:
        The arguments of `LowTransitionSelector`.

    Raises:
        ArtifactError: If a file is missing, altered or of a newer format, or the n-grams are not
            what the settings say.
        InvalidValueError: If a setting is out of range.
        InvalidTypeError: If it is of the wrong type.
    """
    entries = _entries(folder / SETTINGS)
    config = ReleaseConfig(
        **{name: entries[name] for name in ("epsilon", "n_max", "l_max", "min_count")}
    )
    grams = _read_grams(folder / GRAMS, entries["grams_sha256"])
    if len(grams.levels) > config.n_max or grams.spent.max() > 1 + _ROUNDING:
        raise ArtifactError(
            f"{folder / GRAMS}: the n-grams are longer, or have spent more of ε_g, than "
            f"{SETTINGS} says; save the selector again"
        )
    rest = {name: entries[name] for name in ("alphabet_size", "threshold", "mode")}
    return {"grams": grams, "config": config, **rest}


def _entries(path: Path) -> dict[str, Any]:
    entries = read_record(path, "expected the folder of a selector")
    if entries.pop("selector", None) != KIND:
        raise ArtifactError(f"{path}: no {KIND} selector of {LIBRARY_NAME}")
    for name in ("format_version", "library_name"):
        del entries[name]
    require_fields(path, entries, _KINDS)
    return entries


def _lines(grams: Grams) -> Iterator[str]:
    for node in range(FIRST_WORD, len(grams.parent)):
        entry = {
            "gram": grams.spelled(node),
            "count": float(grams.count[node]),
            "share": float(grams.share[node]),
        }
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def _read_grams(path: Path, expected_sha256: str) -> Grams:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected_sha256:
        raise ArtifactError(
            f"{path}: SHA-256 is {digest}, but {SETTINGS} says {expected_sha256}; the file was "
            "altered, truncated or belongs to another selector; fetch or save it again"
        )
    try:
        return _parsed([json.loads(line) for line in content.decode().rstrip("\n").split("\n")])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ArtifactError(f"{path}: no n-grams of a selector ({error})") from error


def _parsed(entries: list[dict[str, Any]]) -> Grams:
    spelled = [tuple(entry["gram"]) for entry in entries]
    count = np.array([entry["count"] for entry in entries], dtype=np.float64)
    share = np.array([entry["share"] for entry in entries], dtype=np.float64)
    words = [gram[0] for gram in spelled if len(gram) == 1]
    codes = {name: code for code, name in enumerate((*MARKS, *words))}
    nodes: dict[tuple[str, ...], int] = {(): ROOT} | {(name,): code for name, code in codes.items()}
    for node, gram in enumerate(spelled, FIRST_WORD):
        nodes[gram] = node
    grams = Grams(
        words=tuple(words),
        parent=np.array([ROOT] * FIRST_WORD + [nodes[gram[:-1]] for gram in spelled]),
        symbol=np.array([*range(FIRST_WORD), *(codes[gram[-1]] for gram in spelled)]),
        count=np.concatenate([np.zeros(FIRST_WORD), count]),
        share=np.concatenate([np.full(FIRST_WORD, share[0]), share]),
    )
    values = np.concatenate([count, share])
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError("there are no words, or one is no string")
    if not (np.isfinite(values) & (values > 0)).all() or (np.diff(grams.keys) <= 0).any():
        raise ValueError("counts and shares have to be positive, and in the order of a tree")
    return grams

"""The spaces that ship inside the package."""

from importlib import resources
from pathlib import Path


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in spaces, sorted."""
    root = _root()
    if not root.is_dir():
        return ()
    return tuple(sorted(path.name for path in root.iterdir() if (path / "config.json").is_file()))


def folder(name: str) -> Path:
    """Return the folder of a built-in space."""
    return _root() / name


def _root() -> Path:
    return Path(str(resources.files("hf_dxprivacy"))) / "builtin"

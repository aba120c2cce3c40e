"""The spaces that ship inside the package."""

from importlib import resources
from pathlib import Path

from hf_dxprivacy.errors import InvalidValueError


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in spaces, sorted."""
    root = _root()
    if not root.is_dir():
        return ()
    return tuple(sorted(path.name for path in root.iterdir() if (path / "config.json").is_file()))


def locate(name_or_path: str | Path) -> tuple[Path, str | None]:
    """Find the folder that a name or path stands for.

    A string without a path separator is a built-in space if there is one of that name; write
    ``"./name"`` for a local folder that is called the same.

    Args:
        name_or_path: Name of a built-in space, or a local folder.

    Returns:
        The folder, and the name if the space is built in.

    Raises:
        InvalidValueError: If there is neither.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, str) and text in builtin_names():
        return _root() / text, text
    if text and Path(text).is_dir():
        return Path(text), None
    known = ", ".join(repr(name) for name in builtin_names()) or "none installed"
    where = "this release does not read from the Hub; " if "/" in text else ""
    raise InvalidValueError(
        f"expected the name of a built-in space ({known}) or a local folder that holds one, got "
        f"{text!r}, which is neither; {where}check the spelling or the path"
    )


def _root() -> Path:
    return Path(str(resources.files("hf_dxprivacy"))) / "builtin"

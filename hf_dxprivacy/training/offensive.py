"""Words that a public space should not offer as a replacement."""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError


def offensive_words(choice: "str | Path | Iterable[str] | None") -> frozenset[str]:
    """Return the words to leave out, in lower case.

    Args:
        choice: None for no word, "english" for the list that the package better-profanity ships, a
            file with one word a line, or the words. The English list is meant for chats and rather
            goes too far: it has words such as "organ" and "rum".

    Raises:
        InvalidValueError: If there is no such file, or it is not UTF-8.
        InvalidTypeError: If it is none of these.
        MissingExtraError: If the package is not installed.
    """
    if choice is None:
        return frozenset()
    if choice == "english":
        package = require("better_profanity", "train")
        listed = resources.files(package).joinpath("profanity_wordlist.txt")
        return _lower(listed.read_text(encoding="utf-8").splitlines())
    if isinstance(choice, str | Path):
        return _lower(_read(Path(choice)).splitlines())
    words = list(choice)
    if not all(isinstance(word, str) for word in words):
        raise InvalidTypeError("expected the offensive words to be strings")
    return _lower(words)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"expected offensive to be None, 'english', the words, or a file in UTF-8 with one "
            f"word a line; {path} cannot be read ({error})"
        ) from error


def _lower(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in words)

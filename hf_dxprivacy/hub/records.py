"""Small files that appear whole or not at all, and JSON objects in them."""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError


def read_json(path: Path, hint: str) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: The file.
        hint: What the folder was expected to be, for the message if the file is not there.

    Raises:
        ArtifactError: If it can not be read, is truncated or no JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}); {hint}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: truncated or not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ArtifactError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return an object as a JSON file.

    Raises:
        InvalidTypeError: If it holds something that JSON does not have.
    """
    try:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"the config is not JSON-serialisable: {error}") from error
    return f"{text}\n".encode()


def write_whole(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file beside its place, and put it there when it is complete and on the disk."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)

"""A salt of the fingerprints that `datasets` gives to data sets.

`datasets` gives a data set that `map` returns a fingerprint: 64 bits of xxHash over the fingerprint
of the data before (of data made in memory, a hash of their content) and over the pickled function.
Unsalted, it is a public function of the originals, with which guesses at them can be tested.
"""

import json
import logging
import os
import secrets
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from hf_dxprivacy.hub import cache_dir
from hf_dxprivacy.mechanisms import Mechanism

logger = logging.getLogger(__name__)

SECRET_BYTES = 32

_secrets: dict[Path, bytes] = {}


def fingerprint_tag(owner: str, mechanism: Mechanism) -> str:
    """Return the salt of a privatizer's fingerprint, which it adds to its pickled state.

    The tag is a keyed hash (BLAKE2b) of the decisions under a secret of the user: the same in every
    process of the user, so that a second `map` finds the cached release, and 256 unknown bits for
    anyone else. The secret itself is never pickled. The tag is, and travels to workers; it tells
    nothing about the secret, or the tag of another privatizer.

    It protects guesses at the originals, and at a short seed, from a test against the fingerprint
    of a release, unless all originals of another release by the same privatizer are known, with its
    fingerprint: xxHash is no cipher, and gives 64 bits that stand for the privatizer away. So
    `strip_traces` removes the fingerprint from what others get.
    """
    decisions = json.dumps([owner, mechanism.space.digest, mechanism.parameters])
    return blake2b(decisions.encode(), key=_secret(), digest_size=32).hexdigest()


def _secret() -> bytes:
    """Return the secret of the user, which is made if there is none."""
    path = cache_dir() / f"fingerprint-{os.getuid() if hasattr(os, 'getuid') else 'user'}.key"
    if path not in _secrets:
        try:
            _secrets[path] = _read(path) or _make(path)
        except OSError as error:
            logger.warning(
                "the fingerprints of `datasets` are salted with a secret file, which cannot be "
                "kept: %s; other processes will not find cached releases and make new ones, each "
                "of which costs ε again: set HF_DXPRIVACY_CACHE to a folder of yours",
                error,
            )
            _secrets[path] = secrets.token_bytes(SECRET_BYTES)
    return _secrets[path]


def _read(path: Path) -> bytes | None:
    """Return the secret in a file; None if there is no file, or one that others could write."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    with open(file, "rb") as opened:
        found = opened.read()
        status = os.fstat(opened.fileno())
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        return None
    return found if len(found) == SECRET_BYTES else None


def _make(path: Path) -> bytes:
    """Put a new secret into a file, or return the one that another process has put there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(secrets.token_bytes(SECRET_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        # A link is made only if there is no file of that name, so the first process wins. Some file
        # systems have no links.
        with suppress(OSError):
            os.link(beside, path)
        if _read(path) is None:
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    found = _read(path)
    if found is None:
        raise OSError(f"{path} belongs to another user, or is being replaced")
    return found

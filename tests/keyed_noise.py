"""Noise that a test does not seed, keyed by the name of the test: the same in every run."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from hf_dxprivacy import randomness

_programs: Counter[str] = Counter()


@contextmanager
def keyed_by(name: str) -> Iterator[None]:
    """Take the keys of this process from a name. Children take theirs from the system, as ever."""
    digest = blake2b(name.encode(), digest_size=randomness.KEY_BYTES).digest()
    source, own = randomness.generator_from_key(digest), os.getpid()

    def key() -> bytes:
        size = randomness.KEY_BYTES
        return source.bytes(size) if os.getpid() == own else os.urandom(size)

    before = randomness._fresh_key, randomness._local
    randomness._fresh_key, randomness._local = key, threading.local()
    try:
        yield
    finally:
        randomness._fresh_key, randomness._local = before


def environment_of_program() -> dict[str, str]:
    """Return what keys the noise of a program that the running test starts, of each another way."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    _programs[test] += 1
    return {"KEY_OF_NOISE": f"{test} {_programs[test]}"}

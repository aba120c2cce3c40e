"""Imported by the programs that tests start: keys of noise come from KEY_OF_NOISE."""

import os
import sys
from hashlib import blake2b

_urandom, _own, _drawn = os.urandom, os.getpid(), [0]
# Taken out, so that processes that the program starts have keys of their own.
_name = os.environ.pop("KEY_OF_NOISE", None)


def _keyed(size: int) -> bytes:
    if sys._getframe(1).f_code.co_name != "_fresh_key" or os.getpid() != _own:
        return _urandom(size)
    _drawn[0] += 1
    return blake2b(f"{_name} {_drawn}".encode(), digest_size=size).digest()


if _name is not None:
    os.urandom = _keyed

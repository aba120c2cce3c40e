"""Arguments that are wrong in themselves."""

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError

N = TypeVar("N", int, float)


class UsageError(Exception):
    """The arguments do not go together, or one is out of range."""


@contextmanager
def usage() -> Iterator[None]:
    """Report an invalid value as wrong usage, since it came from the arguments."""
    try:
        yield
    except ArtifactError:
        raise
    except (InvalidValueError, InvalidTypeError) as error:
        raise UsageError(str(error)) from error


def positive(text: str) -> float:
    """Read a finite number above zero."""
    value = _number(float, text)
    if value is None or not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a finite number above zero, got {text}")
    return value


def at_least(bound: int) -> Callable[[str], int]:
    """Return a function that reads a whole number not below the bound."""

    def whole(text: str) -> int:
        value = _number(int, text)
        if value is None or value < bound:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {bound}, got {text}")
        return value

    return whole


def share(text: str) -> float:
    """Read a number between 0 and 1, without the ends."""
    value = _number(float, text)
    if value is None or not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text}")
    return value


def _number(kind: Callable[[str], N], text: str) -> N | None:
    try:
        return kind(text)
    except ValueError:
        return None

"""Checks of arguments and attributes whose messages name them, the bound and the remedy."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError


def positive(hint: str = "", **named: float) -> None:
    """Require every named number to be finite and above zero.

    Args:
        hint: What to do instead; appended to the message.
        **named: The numbers, by the name the caller knows them under.

    Raises:
        InvalidTypeError: If a value is not a real number.
        InvalidValueError: If a value is not finite or not above zero.
    """
    for name, value in named.items():
        _real(name, value)
        if not (math.isfinite(value) and value > 0):
            raise InvalidValueError(
                _say(f"expected {name} > 0 and finite, got {name}={value}", hint)
            )


def within(low: float, high: float, hint: str = "", **named: float) -> None:
    """Require every named number to lie in the closed interval [low, high]."""
    for name, value in named.items():
        _real(name, value)
        if not low <= value <= high:
            raise InvalidValueError(
                _say(f"expected {low} <= {name} <= {high}, got {name}={value}", hint)
            )


def between(low: float, high: float, hint: str = "", **named: float) -> None:
    """Require every named number to lie in the open interval (low, high)."""
    for name, value in named.items():
        _real(name, value)
        if not low < value < high:
            raise InvalidValueError(
                _say(f"expected {low} < {name} < {high}, got {name}={value}", hint)
            )


def at_least(bound: int, hint: str = "", **named: int) -> None:
    """Require every named value to be an integer not below the bound."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InvalidTypeError(
                f"expected {name} to be an integer, got {name}={value!r} ({type(value).__name__})"
            )
        if value < bound:
            raise InvalidValueError(_say(f"expected {name} >= {bound}, got {name}={value}", hint))


def one_of(choices: Iterable[object], **named: object) -> None:
    """Require every named value to be one of the choices, and list them otherwise."""
    allowed = list(choices)
    for name, value in named.items():
        if value not in allowed:
            listed = ", ".join(repr(choice) for choice in allowed)
            raise InvalidValueError(f"expected {name} to be one of {listed}; got {name}={value!r}")


def _real(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidTypeError(
            f"expected {name} to be a number, got {name}={value!r} ({type(value).__name__})"
        )


def _say(message: str, hint: str) -> str:
    return f"{message}; {hint}" if hint else message

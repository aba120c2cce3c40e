"""Error classes, and argument checks whose messages name the value, the bound and the remedy."""

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType


class DxPrivacyError(Exception):
    """Base class of every error that this package raises on purpose."""


class InvalidValueError(DxPrivacyError, ValueError):
    """A value is of the right type but outside what is allowed."""


class InvalidTypeError(DxPrivacyError, TypeError):
    """A value is of a type that is not accepted here."""


class ImmutableError(DxPrivacyError, AttributeError):
    """An attribute cannot be changed."""


class ArtifactError(InvalidValueError):
    """A stored file is missing, truncated, altered or does not belong to the others."""


class BudgetExceededError(InvalidValueError):
    """A release would cost more than a `PrivacyBudget` has left."""


class HubError(DxPrivacyError, OSError):
    """The Hub refuses something, or cannot be reached."""


class HubFileNotFoundError(HubError, FileNotFoundError):
    """The repository is there and open, but lacks a file."""


class MissingExtraError(DxPrivacyError, ImportError):
    """An optional dependency is not installed.

    Attributes:
        extra: Name of the extra of this package that brings the dependency.
    """

    def __init__(self, message: str, extra: str) -> None:
        super().__init__(message)
        self.extra = extra

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        # An error that a pool worker cannot send home makes its parent wait for ever.
        return type(self), (str(self), self.extra)


# What an error message shows of a header: so many names, each of so many characters.
_SHOWN_NAMES, _SHOWN_CHARACTERS = 30, 32


def did_you_mean(given: str, choices: Iterable[str]) -> str:
    """Return "; did you mean ...?" if a choice is nearly what was given, else an empty string."""
    return _nearest(given, {choice: choice for choice in choices})


def nearest_path(given: str | Path) -> str:
    """Return "; did you mean ...?" if something beside a missing path has nearly its name."""
    path = Path(given)
    try:
        # Of names that differ in what follows a dot, the one with the same ending comes last.
        beside = sorted(path.parent.iterdir(), key=lambda found: found.suffix == path.suffix)
    except OSError:
        return ""
    stems = {found.name.partition(".")[0]: str(found) for found in beside}
    return _nearest(path.name.partition(".")[0], stems)


def _nearest(given: str, choices: Mapping[str, str]) -> str:
    """Return a hint at the value of the nearest key, whatever its letter case."""
    folded = {key.casefold(): choice for key, choice in choices.items()}
    near = get_close_matches(given.casefold(), folded, 1)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def describe_columns(names: Sequence[str], wanted: str, what: str = "column") -> str:
    """Describe the columns of data for an error message, with a near match of the one wanted.

    A file without a header has a row of data in its place. The names are therefore shown only if
    there are several and none of them may be text.
    """
    if _are_plain(names):
        shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        if (parts := wanted.split(",")) and {*map(str.strip, parts)} <= {*names}:
            one = f"{wanted!r} is one name; give each of the {len(parts)} by itself, in a list"
            return f"the {what}s are {shown}{more}; {one}, or by repeating the option"
        return f"the {what}s are {shown}{more}{did_you_mean(wanted, names)}"
    if len(names) <= 1:
        one = f"there is one {what}, whose name is not shown because it may be text"
        near = did_you_mean(wanted, filter(is_plain, names))
        return one.partition(",")[0] + near if near else one if names else "there is none at all"
    return f"there are {len(names)} {what}s, whose names are not shown because they may be text"


def describe_column(names: Sequence[str], at: int) -> str:
    """Describe one of the columns of data: by its name, or by its number if that may be text."""
    return f"column {names[at]!r}" if _are_plain(names) else f"column {at + 1}"


def _are_plain(names: Sequence[str]) -> bool:
    """Tell whether there are several names and each is one word, as no text is."""
    return len(names) > 1 and all(map(is_plain, names))


def is_plain(name: str) -> bool:
    """Tell whether a name is one word, and so no text."""
    plain = name.replace("-", "_").replace(".", "_").isidentifier()
    return plain and len(name) <= _SHOWN_CHARACTERS


def a_kind(value: object) -> str:
    """Return the type of a value with its article, as "an int" or "a list"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module by its dotted name.

    Raises:
        MissingExtraError: If it is not installed; names the extra of this package that has it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs the package {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'hf-dxprivacy[{extra}]'",
            extra,
        ) from error


def require_positive(hint: str = "", **named: float) -> None:
    """Require every named number to be finite and above zero.

    Args:
        hint: What to do instead; appended to the message.
        **named: The numbers, by the name the caller knows them under.

    Raises:
        InvalidTypeError: If a value is not a real number.
        InvalidValueError: If a value is not finite or not above zero.
    """
    for name, value in named.items():
        _require(0 < _real(name, value) < math.inf, f"{name} > 0 and finite", name, value, hint)


def require_within(low: float, high: float, hint: str = "", **named: float) -> None:
    """Require every named number to lie in the closed interval [low, high]."""
    for name, value in named.items():
        allowed = low <= _real(name, value) <= high
        _require(allowed, f"{low} <= {name} <= {high}", name, value, hint)


def require_between(low: float, high: float, hint: str = "", **named: float) -> None:
    """Require every named number to lie in the open interval (low, high)."""
    for name, value in named.items():
        allowed = low < _real(name, value) < high
        _require(allowed, f"{low} < {name} < {high}", name, value, hint)


def require_at_least(bound: int, hint: str = "", **named: int) -> None:
    """Require every named value to be an integer not below the bound."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise _not_a_number("an integer", name, value)
        _require(value >= bound, f"{name} >= {bound}", name, value, hint)


def require_one_of(choices: Iterable[object], **named: object) -> None:
    """Require every named value to be one of the choices, and list them otherwise."""
    allowed = list(choices)
    for name, value in named.items():
        if value not in allowed:
            listed = ", ".join(map(repr, allowed))
            texts = [each for each in allowed if isinstance(each, str)]
            near = did_you_mean(value, texts) if isinstance(value, str) else ""
            raise InvalidValueError(
                f"expected {name} to be one of {listed}; got {name}={value!r}{near}"
            )


def _real(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _not_a_number("a number", name, value)
    try:
        float(value)
    except OverflowError:
        raise InvalidValueError(
            f"expected {name} in the range of float64, got an integer beyond 1.8e308"
        ) from None
    return value


def _not_a_number(expected: str, name: str, value: object) -> InvalidTypeError:
    quoted = isinstance(value, str) and value.replace(".", "", 1).isdecimal()
    remedy = f"{name}={value}, without quotes" if quoted else expected
    kind = type(value).__name__
    return InvalidTypeError(
        f"expected {name} to be {expected}, got {name}={value!r} ({kind}); pass {remedy}"
    )


def _require(allowed: bool, expected: str, name: str, value: object, hint: str) -> None:
    if not allowed:
        remedy = f"; {hint}" if hint else ""
        raise InvalidValueError(f"expected {expected}, got {name}={value}{remedy}")

"""The errors that this package raises on purpose.

All of them derive from `DxPrivacyError`, and also from the builtin that a caller would expect, so
that both ``except DxPrivacyError`` and ``except ValueError`` do what they say.
"""


class DxPrivacyError(Exception):
    """Base class of every error that this package raises on purpose."""


class InvalidValueError(DxPrivacyError, ValueError):
    """A value is of the right type but outside what is allowed."""


class InvalidTypeError(DxPrivacyError, TypeError):
    """A value is of a type that is not accepted here."""


class ImmutableError(DxPrivacyError, AttributeError):
    """An attribute can not be changed."""


class ArtifactError(InvalidValueError):
    """A stored file is missing, truncated, altered or does not belong to the others."""


class BudgetExceededError(InvalidValueError):
    """A release would cost more than a `PrivacyBudget` has left."""


class HubError(DxPrivacyError, OSError):
    """The Hub refuses something, or can not be reached."""


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
        # An error that a pool worker can not send home makes its parent wait for ever.
        return type(self), (str(self), self.extra)

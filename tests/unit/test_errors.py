"""Errors: what they derive from, and that they travel between processes."""

import pickle

import pytest

from hf_dxprivacy import errors
from hf_dxprivacy._runtime import require

ERRORS = [
    errors.InvalidValueError("a"),
    errors.InvalidTypeError("b"),
    errors.ImmutableError("f"),
    errors.ArtifactError("c"),
    errors.BudgetExceededError("e"),
    errors.MissingExtraError("d", "train"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: errors.DxPrivacyError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_errors_are_also_the_builtin_that_a_caller_expects() -> None:
    bases = [ValueError, TypeError, AttributeError, ValueError, ValueError, ImportError]
    assert all(isinstance(error, base) for error, base in zip(ERRORS, bases, strict=True))


def test_a_missing_extra_names_the_command() -> None:
    with pytest.raises(
        errors.MissingExtraError, match=r"pip install 'hf-dxprivacy\[train\]'"
    ) as got:
        require("no_such_module_here.part", "train")
    assert got.value.extra == "train"

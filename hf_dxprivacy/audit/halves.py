"""What attacks with a shadow model share: one half of the data learns how to attack the other."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidValueError

Indices = NDArray[np.int64]
# Trains a model on the first and returns the features of the first and the second, a row each.
Look = Callable[[Indices, Indices], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Half:
    """A model, seen through its outputs.

    Attributes:
        features: (m, f) what the model says about each candidate.
        member: (m,) whether it was trained on that candidate.
    """

    features: NDArray[np.float64]
    member: NDArray[np.bool_]


def shadow_and_target(count: int, rng: np.random.Generator, look: Look) -> tuple[Half, Half]:
    """Split candidates at random and train one model on a half of each half.

    Either half may serve as the shadow, whose membership the attacker knows, of the other.

    Args:
        count: How many candidates there are.
        rng: Source of the split.
        look: Trains a model on some candidates and returns the features of all it is given.
    """
    if count < 4:
        raise InvalidValueError(
            f"expected at least 4 candidates, half of which are members, got {count}"
        )
    quarters = np.array_split(rng.permutation(count), 4)
    return _half(quarters[0], quarters[1], look), _half(quarters[2], quarters[3], look)


def _half(members: Indices, others: Indices, look: Look) -> Half:
    member = np.arange(len(members) + len(others)) < len(members)
    return Half(look(members, others), member)


def require_aligned(**columns: int) -> None:
    """Require columns of the same length."""
    if len(set(columns.values())) > 1:
        lengths = ", ".join(f"{name}: {length}" for name, length in columns.items())
        raise InvalidValueError(f"expected columns of the same length, got {lengths}")


def library_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that has generators of its own."""
    return int(rng.integers(1 << 31))

"""Mechanisms: how a word becomes another word, and what that promises."""

from typing import Any

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.mechanisms.additive import HyperbolicLaplace, Mahalanobis, MultivariateLaplace
from hf_dxprivacy.mechanisms.base import Mechanism
from hf_dxprivacy.mechanisms.exponential import CalibratedExponential, TruncatedExponential
from hf_dxprivacy.spaces import EmbeddingSpace

__all__ = [
    "MECHANISMS",
    "CalibratedExponential",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "TruncatedExponential",
    "create_mechanism",
]

# Closed on purpose: a name stands for a proof. The meaning of a published name never changes.
MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism
    for mechanism in (
        MultivariateLaplace,
        Mahalanobis,
        TruncatedExponential,
        CalibratedExponential,
        HyperbolicLaplace,
    )
}


def create_mechanism(name: str, space: EmbeddingSpace, epsilon: float, **options: Any) -> Mechanism:
    """Make the mechanism of a name.

    Args:
        name: A key of `MECHANISMS`.
        space: Where the words lie.
        epsilon: ε > 0.
        **options: The mechanism's own options, such as ``lam`` for "mahalanobis".

    Raises:
        InvalidValueError: If the name is unknown, or the mechanism refuses a value.
        InvalidTypeError: If the mechanism has no such option.
    """
    _validate.one_of(MECHANISMS, mechanism=name)
    mechanism = MECHANISMS[name]
    unknown = sorted(set(options) - set(mechanism.options))
    if unknown:
        known = ", ".join(mechanism.options) or "none"
        raise InvalidTypeError(
            f"mechanism {name!r} has no option {unknown[0]!r}; its options are: {known}"
        )
    return mechanism(space, epsilon, **options)

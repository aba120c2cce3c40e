"""Mechanisms: how a word becomes another word, and what that promises."""

from collections.abc import Mapping
from typing import Any

from hf_dxprivacy import _validate
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
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
    "resolve_mechanism",
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


def resolve_mechanism(
    mechanism: str | Mechanism,
    space: EmbeddingSpace,
    epsilon: float | None,
    options: Mapping[str, Any],
) -> Mechanism:
    """Make the mechanism of a name, or check a ready-made one.

    Args:
        mechanism: A key of `MECHANISMS`, or a mechanism of the same space.
        space: Where the words lie.
        epsilon: ε > 0; a ready-made mechanism has it.
        options: The mechanism's own options, for a name.

    Raises:
        InvalidValueError: If ε is missing, or something contradicts a ready-made mechanism.
    """
    if isinstance(mechanism, Mechanism):
        if mechanism.space is not space or options or epsilon not in (None, mechanism.epsilon):
            raise InvalidValueError(
                "a ready-made mechanism brings its own space, epsilon and options; pass that same "
                f"space and leave the others out (its epsilon is {mechanism.epsilon})"
            )
        return mechanism
    if epsilon is None:
        raise InvalidValueError(
            "epsilon is missing: how much privacy to give is your decision, so there is no default;"
            " pass epsilon=, per unit of the space's metric (1 is one step to the nearest "
            "neighbour in the built-in spaces)"
        )
    return create_mechanism(mechanism, space, epsilon, **options)

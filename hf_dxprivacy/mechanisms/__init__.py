"""Mechanisms: random maps from words to words with a metric-DP guarantee."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hf_dxprivacy._lazy import lazy, moved
from hf_dxprivacy._runtime import CPU
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_one_of
from hf_dxprivacy.mechanisms.base import ExactMechanism, ExponentialLaw, Mechanism

if TYPE_CHECKING:
    from hf_dxprivacy.mechanisms.additive import (
        HyperbolicLaplace,
        Mahalanobis,
        MultivariateLaplace,
    )
    from hf_dxprivacy.mechanisms.exponential import CalibratedExponential, TruncatedExponential
    from hf_dxprivacy.mechanisms.hierarchical import Hierarchical
    from hf_dxprivacy.mechanisms.randomized_response import RandomizedResponse
    from hf_dxprivacy.spaces import EmbeddingSpace

__all__ = [
    "FLAT",
    "MECHANISMS",
    "CalibratedExponential",
    "ExactMechanism",
    "ExponentialLaw",
    "Hierarchical",
    "HyperbolicLaplace",
    "Mahalanobis",
    "Mechanism",
    "MultivariateLaplace",
    "RandomizedResponse",
    "TruncatedExponential",
    "create_mechanism",
    "required_index",
    "resolve_mechanism",
]

# Exact search, in place of an approximate index.
FLAT = "flat"

# Where each class is. It is imported when it is asked for, with the search or lists that it needs.
_CLASSES = {
    "MultivariateLaplace": "additive",
    "Mahalanobis": "additive",
    "HyperbolicLaplace": "additive",
    "TruncatedExponential": "exponential",
    "CalibratedExponential": "exponential",
    "Hierarchical": "hierarchical",
    "RandomizedResponse": "randomized_response",
}


class _Registry(Mapping[str, type[Mechanism]]):
    """The classes of mechanisms by name, each imported when it is asked for.

    Closed on purpose: a name stands for a proof. The meaning of a published name never changes.
    """

    _names: ClassVar[Mapping[str, str]] = {
        "laplace": "MultivariateLaplace",
        "mahalanobis": "Mahalanobis",
        "tem": "TruncatedExponential",
        "calibrated": "CalibratedExponential",
        "hyperbolic": "HyperbolicLaplace",
        "hierarchical": "Hierarchical",
        "krr": "RandomizedResponse",
    }

    def __getitem__(self, name: str) -> type[Mechanism]:
        found: type[Mechanism] = getattr(sys.modules[__name__], self._names[name])
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


MECHANISMS: Mapping[str, type[Mechanism]] = _Registry()

__getattr__ = lazy(
    __name__,
    {name: f"{__name__}.{module}" for name, module in _CLASSES.items()},
    moved(
        __name__,
        dict.fromkeys(("SanText", "Vickrey", "Diffractor"), "hf_dxprivacy.evaluation.peers")
        | dict.fromkeys(
            ("CusText", "SynTF", "TruncatedGumbel"), "hf_dxprivacy.evaluation.peer_candidates"
        ),
    ),
)


def create_mechanism(
    name: str, space: "EmbeddingSpace", epsilon: float, **options: Any
) -> Mechanism:
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
    check_options(name, options)
    return MECHANISMS[name](space, epsilon, **options)


def check_options(name: str, options: Iterable[str]) -> None:
    """Require a mechanism to be known and to have options of these names."""
    require_one_of(MECHANISMS, mechanism=name)
    own = MECHANISMS[name].options
    for option in sorted(set(options) - set(own)):
        if option == "index":
            raise InvalidTypeError(
                f"mechanism {name!r} has no use for an index: the exponential mechanisms weigh all "
                "words, and the ball is searched exactly; 'laplace' and 'mahalanobis' take one"
            )
        others = [other for other, kind in MECHANISMS.items() if option in kind.options]
        of_others = f"; {option!r} is of {', '.join(map(repr, others))}" if others else ""
        raise InvalidTypeError(
            f"mechanism {name!r} has no option {option!r}; its options are: "
            f"{', '.join(own) or 'none'}{of_others}; leave it out"
        )


def required_index(mechanism: str | Mechanism | None, options: Mapping[str, Any]) -> str | None:
    """Return the kind of index that a space has to be loaded with; None if exact search will do.

    Args:
        mechanism: A key of `MECHANISMS`, a mechanism, or None, which `resolve_mechanism` refuses.
        options: The mechanism's own options, perhaps among others.

    Raises:
        InvalidTypeError: If the mechanism of that name has no use for an index.
    """
    kind: str = options.get("index", FLAT)
    if kind == FLAT:
        return None
    if isinstance(mechanism, str):
        check_options(mechanism, ("index",))
    return kind


def resolve_mechanism(
    mechanism: str | Mechanism | None,
    space: "EmbeddingSpace",
    epsilon: float | None,
    options: Mapping[str, Any],
    device: str = CPU,
) -> Mechanism:
    """Make the mechanism of a name, or check a ready-made one.

    Args:
        mechanism: A key of `MECHANISMS`, or a mechanism of the same space.
        space: Where the words lie.
        epsilon: ε > 0; a ready-made mechanism has it.
        options: The mechanism's own options, for a name.
        device: Where to compute; see `Mechanism.to`. With "cpu" a ready-made mechanism stays where
            it is.

    Raises:
        InvalidValueError: If ε or the mechanism is missing, something contradicts a ready-made
            mechanism, or there is no such device.
        MissingExtraError: If torch is needed and not installed.
    """
    # First, since what follows may calibrate for minutes.
    if device != CPU:
        from hf_dxprivacy._devices import check_device

        check_device(device)
    if isinstance(mechanism, Mechanism):
        found = mechanism
        if found.space is not space or options or epsilon not in (None, found.epsilon):
            raise InvalidValueError(
                "a ready-made mechanism brings its own space, epsilon and options; pass that same "
                f"space and leave the others out (its epsilon is {found.epsilon})"
            )
    elif epsilon is None:
        raise InvalidValueError(
            "epsilon is missing: how much privacy to give is your decision, so there is no default;"
            " pass epsilon=, per unit of the mechanism's metric, or local_epsilon=, the largest "
            "log-ratio of any two inputs. With 'hierarchical' begin with "
            "1.5, at which about one word of three of the space 'english' stays; "
            "hf_dxprivacy.calibration.privacy_statistics says what another does"
        )
    elif mechanism is None:
        raise InvalidValueError(
            "mechanism is missing: ε means another thing for each, so there is no default; pass "
            f"mechanism= one of {', '.join(map(repr, MECHANISMS))}. 'hierarchical' is "
            "recommended, for a space with a tree (space.build_hierarchy() makes one)"
        )
    else:
        found = create_mechanism(mechanism, space, epsilon, **options)
    return found if device == CPU else found.to(device)

"""The ways of releasing texts that a task compares."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from hf_dxprivacy import _validate
from hf_dxprivacy.evaluation.baselines import RANDOM, make_privatizer, random_words
from hf_dxprivacy.mechanisms import Mahalanobis
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.results import ORIGINAL
from hf_dxprivacy.spaces import EmbeddingSpace

BASELINES = (ORIGINAL, RANDOM)


@dataclass(frozen=True, eq=False)
class Version:
    """A way to release texts.

    Attributes:
        name: The mechanism, with λ if it has one, or the baseline.
        epsilon: None for a baseline.
        privatizer: None for texts as they are.
        options: Of the mechanism.
    """

    name: str
    epsilon: float | None = None
    privatizer: DxPrivatizer | None = None
    options: dict[str, float] = field(default_factory=dict)


def versions(
    space: EmbeddingSpace,
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    *,
    baselines: Iterable[str] = BASELINES,
    lams: Iterable[float] = (1.0,),
    **options: Any,
) -> Iterator[Version]:
    """Return the baselines, then all mechanisms at all ε.

    Args:
        space: As for `DxPrivatizer`.
        mechanisms: Names, as for `DxPrivatizer`.
        epsilons: ε > 0, each for every mechanism, per unit of its metric.
        baselines: "none" for texts as they are, "random" for random words.
        lams: λ in [0, 1], each for "mahalanobis" alone.
        **options: Those of `make_privatizer` that all privatizers have.

    Raises:
        InvalidValueError: If a baseline or a mechanism is unknown, or a number out of range.
    """
    for name in baselines:
        _validate.one_of(BASELINES, baseline=name)
        yield Version(name, None, random_words(space, **options) if name == RANDOM else None)
    lams, epsilons = tuple(lams), tuple(epsilons)
    for name in mechanisms:
        for lam, epsilon in product(lams if name == Mahalanobis.name else (None,), epsilons):
            own: dict[str, Any] = {} if lam is None else {"lam": lam}
            label = name if lam is None else f"{name}, λ={lam:g}"
            privatizer = make_privatizer(space, name, epsilon, **options, **own)
            yield Version(label, epsilon, privatizer, own)

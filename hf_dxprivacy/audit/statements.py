"""Check of what a mechanism states about itself: its guarantee, bounds and exact level.

The stated numbers are compared with ε·d of the inputs and with the log-ratios that the audit found.
A number that is larger than it needs to be is true; one that is smaller is reported.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.inputs import AuditTarget, named
from hf_dxprivacy.mechanisms import CalibratedExponential, Hierarchical, Mechanism

# Inputs whose bounds are compared, pair by pair.
COMPARED = 64

# Rounding of sums, products and printed numbers, relative.
_TOLERANCE = 1e-6

# Rounding of distances, in ε·d.
_ROUNDING = 1e-8

_LEVEL = re.compile(r"exact level over all pairs of words is (\d[\d.]*(?:e[+-]?\d+)?)")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Measured numbers that stated ones are compared with.

    Attributes:
        ids: (m,) inputs, words or −1.
        allowed: (m, m) float64 ε·d of their pairs, at the certified ε.
        largest: The largest ε·d of any pair that was looked at.
        level: The largest ratio of a log-ratio and the distance of its pair, that is, a lower bound
            of the exact privacy level; 0 if none was found.
    """

    ids: NDArray[np.int64]
    allowed: NDArray[np.float64]
    largest: float
    level: float = 0.0


def false_statements(mechanism: Mechanism, evidence: Evidence) -> tuple[str, ...]:
    """Return a sentence for each number that a mechanism states and that is too small.

    Args:
        mechanism: What makes the statements.
        evidence: What is known of it.
    """
    return tuple(_found(mechanism, evidence))


def evidence_of(target: AuditTarget, mechanism: Mechanism, rng: np.random.Generator) -> Evidence:
    """Return what is known of a mechanism that was drawn from, at some of its inputs."""
    some = rng.permutation(len(target.inputs))[:COMPARED]
    ids = mechanism.space.ids([target.inputs[position] for position in some.tolist()])
    return Evidence(ids, target.allowed[np.ix_(some, some)], float(target.allowed.max()))


def _found(mechanism: Mechanism, evidence: Evidence) -> Iterator[str]:
    guarantee, certified = mechanism.guarantee, mechanism.certified_epsilon
    if _below(guarantee.epsilon, certified):
        yield f"guarantee.epsilon is {guarantee.epsilon:.6g}, but ε = {certified:.6g} is certified"
    if _below(guarantee.ldp_epsilon, evidence.largest):
        yield (
            f"guarantee.ldp_epsilon is {guarantee.ldp_epsilon:.6g}, but ε·d reaches "
            f"{evidence.largest:.6g}"
        )
    yield from _false_bounds(mechanism, evidence)
    for name, level in _stated_levels(mechanism):
        if _below(level, evidence.level):
            yield f"{name} is {level:.6g}, but a pair of inputs needs {evidence.level:.6g}"


def _false_bounds(mechanism: Mechanism, evidence: Evidence) -> Iterator[str]:
    """Compare ε·d with the bounds of all pairs of inputs; report the worst one of each name."""
    ids, words = evidence.ids, mechanism.space.words
    rows, columns = np.triu_indices(len(ids), k=1)
    allowed = evidence.allowed[rows, columns]
    names = [named(words, row) for row in ids.tolist()]
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    stated = {
        "id_bound": [mechanism.id_bound(ids[[i]], ids[[j]]) for i, j in pairs],
        "guarantee.bound": [mechanism.guarantee.bound(names[i], names[j]) for i, j in pairs],
    }
    for name, bounds in stated.items():
        missing = allowed - np.array(bounds) - _TOLERANCE * allowed
        place = int(np.argmax(missing)) if len(missing) else -1
        # "Not at most", by which an undefined bound is false as well.
        if len(missing) and not missing[place] <= _ROUNDING:
            i, j = pairs[place]
            yield (
                f"{name} of {names[i]!r} and {names[j]!r} is {bounds[place]:.6g}, but ε·d is "
                f"{allowed[place]:.6g}"
            )


def _stated_levels(mechanism: Mechanism) -> Iterator[tuple[str, float]]:
    if isinstance(mechanism, CalibratedExponential | Hierarchical):
        yield "exact_epsilon()", mechanism.exact_epsilon()
    for sentence in mechanism.guarantee.assumptions:
        for number in _LEVEL.findall(sentence):
            yield "the exact level in guarantee.assumptions", float(number.rstrip("."))


def _below(stated: float, found: float) -> bool:
    # Not "<", by which an undefined number would pass.
    return not (math.isinf(stated) or stated >= found * (1.0 - _TOLERANCE))

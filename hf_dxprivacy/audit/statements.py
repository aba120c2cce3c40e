"""Check of what a mechanism states about itself: its guarantee, bounds and exact level.

The stated numbers are compared with ε·d of the inputs and with the log-ratios that the audit found.
A number that is larger than it needs to be is true; one that is smaller is reported.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.inputs import named
from hf_dxprivacy.mechanisms import CalibratedExponential, Hierarchical, Mechanism

# Inputs whose bounds are compared, pair by pair.
COMPARED = 64
# Rounding of sums, products and printed numbers, relative; and of distances, in ε·d.
_TOLERANCE, _ROUNDING = 1e-6, 1e-8


class Evidence(NamedTuple):
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
    """Return a sentence for each number that a mechanism states and that is too small."""
    guarantee, certified, found = mechanism.guarantee, mechanism.certified_epsilon, []
    if _below(guarantee.epsilon, certified):
        found.append(
            f"guarantee.epsilon is {guarantee.epsilon:.6g}, but ε = {certified:.6g} is certified"
        )
    if _below(guarantee.ldp_epsilon, evidence.largest):
        found.append(
            f"guarantee.ldp_epsilon is {guarantee.ldp_epsilon:.6g}, but ε·d reaches "
            f"{evidence.largest:.6g}"
        )
    levels = [
        ("the exact level in guarantee.disclosures", float(each.subject))
        for each in guarantee.disclosures
        if each.kind == "exact_level"
    ]
    if isinstance(mechanism, CalibratedExponential | Hierarchical):
        levels.insert(0, ("exact_epsilon()", mechanism.exact_epsilon()))
    too_low = [
        f"{name} is {level:.6g}, but a pair of inputs needs {evidence.level:.6g}"
        for name, level in levels
        if _below(level, evidence.level)
    ]
    return (*found, *_false_bounds(mechanism, evidence), *too_low)


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
        with np.errstate(invalid="ignore"):
            missing = allowed - np.array(bounds) - _TOLERANCE * allowed
        # Where nothing is promised, nothing is missing.
        missing[np.isinf(allowed) & np.isinf(bounds)] = 0.0
        place = int(np.argmax(missing)) if len(missing) else -1
        # "Not at most", by which an undefined bound is false as well.
        if len(missing) and not missing[place] <= _ROUNDING:
            i, j = pairs[place]
            yield (
                f"{name} of {names[i]!r} and {names[j]!r} is {bounds[place]:.6g}, but ε·d is "
                f"{allowed[place]:.6g}"
            )


def _below(stated: float, found: float) -> bool:
    # Not "<", by which an undefined number would pass.
    return not stated >= found * (1.0 - _TOLERANCE)

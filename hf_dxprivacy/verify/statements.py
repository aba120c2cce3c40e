"""Check of what a mechanism or a privatizer states: its guarantee, bounds and exact level.

The stated numbers are compared with ε·d of the inputs and with the log-ratios that the audit found.
A number that is larger than it needs to be is true; one that is smaller is reported. What was
compared with nothing is named, so that no silence is taken for a proof.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.guarantee import PrivacyGuarantee
from hf_dxprivacy.mechanisms import MECHANISMS, CalibratedExponential, Hierarchical, Mechanism
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import AuditTarget, claimed, named, of_mechanism

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


class Statements(NamedTuple):
    """Sentences on stated numbers that are false, and on what was compared with nothing."""

    false: tuple[str, ...]
    unchecked: tuple[str, ...]


def of_stated_mechanism(mechanism: Mechanism, evidence: Evidence) -> Statements:
    """Compare what a mechanism states with the evidence."""
    guarantee = mechanism.guarantee
    own = () if not _has_level(mechanism) else (("exact_epsilon()", mechanism.exact_epsilon()),)
    false = (
        *_false_numbers(guarantee, mechanism, evidence.largest),
        *_false_bounds(mechanism, evidence),
        *_low_levels((*own, *_levels(guarantee)), evidence.level),
    )
    return Statements(false, _unchecked(guarantee, mechanism))


def of_stated_privatizer(
    privatizer: Privatizer,
    target: AuditTarget,
    checks: Iterable[GuaranteeCheck],
    rng: np.random.Generator,
) -> Statements:
    """Compare what a privatizer prints with its mechanisms, its bounds, and what draws found.

    A bound of local DP is one of a unit, so it is held to pairs of whole texts, or of plain words.
    """
    guarantee, laws = privatizer.guarantee, [privatizer.mechanism]
    if isinstance(privatizer, SentencePrivatizer):
        laws = [law for _, law in privatizer._parts.values()]
    whole = guarantee.unit == "text"
    units = {a: k for k, a in enumerate(target.inputs) if whole or (a.isascii() and a.isalnum())}
    bounds = target.allowed[np.ix_([*units.values()], [*units.values()])]
    ratios = [check.log_ratio for check in checks if units.keys() >= {*check.worst}]
    largest = max([float(bounds.max(initial=0.0)), *ratios])
    false: list[str] = []
    unchecked = ["its mechanism, which verify_guarantee(privatizer.mechanism) checks"]
    for law in laws:
        reached = max(largest, float(of_mechanism(law, COMPARED, rng).allowed.max()))
        false += _false_numbers(guarantee, law, reached)
        if _has_level(law):
            false += _low_levels(_levels(guarantee), law.exact_epsilon())
        unchecked += _unchecked(guarantee, law)
    return Statements(tuple(dict.fromkeys(false)), tuple(dict.fromkeys(unchecked)))


def _false_numbers(
    guarantee: PrivacyGuarantee, mechanism: Mechanism, largest: float
) -> Iterator[str]:
    """Hold ε, local DP, neighbours and the name of the metric to a mechanism."""
    certified, known = mechanism.certified_epsilon, _known_kind(mechanism)
    if _below(guarantee.epsilon, certified):
        yield f"guarantee.epsilon is {guarantee.epsilon:.6g}, but ε = {certified:.6g} is certified"
    if _below(guarantee.ldp_epsilon, largest):
        yield f"guarantee.ldp_epsilon is {guarantee.ldp_epsilon:.6g}, but ε·d reaches {largest:.6g}"
    if known is None:
        return
    # By the class of the package, whatever a class derived from it says.
    near = known.neighbour_distances(mechanism)
    for k, distance in near.items():
        stated, needed = guarantee.neighbour_epsilon.get(k), claimed(mechanism, np.array(distance))
        if stated is not None and _below(stated, float(needed)):
            yield f"guarantee.neighbour_epsilon[{k}] is {stated:.6g}, but ε·d is {needed:.6g}"
    metric = known.metric.fget(mechanism)  # type: ignore[attr-defined]
    if guarantee.metric != metric:
        yield f"guarantee.metric is {guarantee.metric!r}, but ε counts per unit of {metric}"


def _unchecked(guarantee: PrivacyGuarantee, mechanism: Mechanism) -> tuple[str, ...]:
    """Name what no number was held to."""
    found = []
    if _known_kind(mechanism) is None:
        found.append("neighbour_epsilon and the name of the metric, of a class of its own")
    said = [each.text for each in guarantee.disclosures if each.kind != "exact_level"]
    if said := [text for text in said if any(map(str.isdecimal, text))]:
        starts = ", ".join(f"{' '.join(text.split()[:6])} …" for text in said)
        found.append(f"numbers in the texts of guarantee.disclosures ({starts})")
    return tuple(found)


def _known_kind(mechanism: Mechanism) -> type[Mechanism] | None:
    # One of another paper may have a metric of its own.
    kinds = type(mechanism).__mro__ if mechanism.paper is None else ()
    return next((kind for kind in kinds if kind in MECHANISMS.values()), None)


def _has_level(mechanism: Mechanism) -> TypeGuard[CalibratedExponential | Hierarchical]:
    return isinstance(mechanism, CalibratedExponential | Hierarchical)


def _levels(guarantee: PrivacyGuarantee) -> list[tuple[str, float]]:
    return [
        ("the exact level in guarantee.disclosures", float(each.subject))
        for each in guarantee.disclosures
        if each.kind == "exact_level"
    ]


def _low_levels(levels: Iterable[tuple[str, float]], needed: float) -> Iterator[str]:
    for name, level in levels:
        if _below(level, needed):
            yield f"{name} is {level:.6g}, but a pair of inputs needs {needed:.6g}"


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

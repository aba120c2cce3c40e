"""ε by a bound that is given, and the ε to try where none is."""

from typing import Any

import numpy as np

from hf_dxprivacy.calibration.measuring import entry_space
from hf_dxprivacy.errors import InvalidValueError, require_positive
from hf_dxprivacy.mechanisms import MECHANISMS, CalibratedExponential, ExactMechanism
from hf_dxprivacy.mechanisms.local_bound import within_local_bound
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace


def epsilon_for_radius(radius: float, level: float) -> float:
    """Return the ε that keeps words within a radius indistinguishable at a level.

    ε·d-privacy at ε = l/r means that no output is more than e^l times as likely from a word as from
    any other within the distance r of it (Feyisetan, Diethe, Drake, ICDM 2019, section VI-C). Two
    words that are both within r of a third may differ by 2·l.

    Args:
        radius: r > 0, in the metric of the mechanism's guarantee. The median distance to the k-th
            neighbour is ``mechanism.neighbour_distances()`` or ``space.neighbour_distances([k])``.
        level: l > 0, the largest log-ratio that is allowed within the radius.

    Raises:
        InvalidTypeError: If an argument is not a number.
        InvalidValueError: If one is not finite or not above zero.
    """
    require_positive(radius=radius, level=level)
    return level / radius


def epsilon_for_local_bound(
    space: EmbeddingSpace | SentencePool, mechanism: str, local_epsilon: float, **options: Any
) -> float:
    """Find the largest ε whose bound for any two inputs is at most L, as pure local DP.

    No output is then more than exp(L) times as likely from any input as from any other: from any
    word or, with a pool, any text.

    Args:
        space: Where the words lie, or a pool of sentences.
        mechanism: A key of `hf_dxprivacy.mechanisms.MECHANISMS`.
        local_epsilon: L > 0, what `ldp_epsilon` of the guarantee may be at most.
        **options: Of the mechanism.

    Returns:
        ε per unit of the mechanism's metric, rounded down to six digits.

    Raises:
        InvalidTypeError: If L is no number, or the mechanism has no such option.
        InvalidValueError: If L is not above zero; if no ε has so small a bound, which names the
            least; or if L limits no ε, as where the metric is truncated.
    """
    return within_local_bound(entry_space(space), mechanism, local_epsilon, options)


# ε·d at the median distance to the nearest neighbour, from where to where a search goes; outside
# its range "calibrated" would take long for most spaces. And ε where the metric is not the space's.
WIDE, CERTIFIED, OWN = (0.25, 512.0), (1.0, 16.0), (0.25, 32.0)
STEPS_PER_OCTAVE = 16
# The same for the few that cards and pages show. Noise in many dimensions needs more of it for the
# same effect than a law over the words.
FEW_OF_LAWS, FEW_OF_NOISE = (1, 2, 4, 6, 8, 12, 16), (8, 16, 32, 64, 128)
FEW_OF_OWN = {
    "hierarchical": (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0),
    "krr": (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0),
}


def epsilon_grid(space: EmbeddingSpace, mechanism: str, few: bool = False) -> list[float]:
    """Return the ε to try over a space, ascending.

    Args:
        space: Where the words lie.
        mechanism: Name of the mechanism.
        few: Return only the few, rounded, that cards and pages show. By default steps of 4 %.
    """
    unit = space.unit_distance or 1.0
    if few and mechanism in FEW_OF_OWN:
        return [*FEW_OF_OWN[mechanism]]
    if few:
        is_law = issubclass(MECHANISMS[mechanism], ExactMechanism)
        steps = FEW_OF_LAWS if is_law else FEW_OF_NOISE
        return [float(f"{step / float(f'{unit:.4g}'):.3g}") for step in steps]
    low, high = CERTIFIED if mechanism == CalibratedExponential.name else WIDE
    if MECHANISMS[mechanism].own_metric:
        (low, high), unit = OWN, 1.0
    count = round(STEPS_PER_OCTAVE * np.log2(high / low)) + 1
    return [float(epsilon) for epsilon in np.geomspace(low, high, count) / unit]


def given_epsilons(given: Any) -> list[float]:
    """Return one ε or several as numbers, in their order."""
    given = getattr(given, "tolist", lambda: given)()
    found = list(given) if np.iterable(given) and not isinstance(given, str) else [given]
    if not found:
        raise InvalidValueError("expected epsilons to try, got none; pass one or several")
    for epsilon in found:
        require_positive(epsilon=epsilon)
    return [float(epsilon) for epsilon in found]

"""The largest ε whose bound for any two inputs is within a limit."""

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context
from functools import cache
from typing import Any

from hf_dxprivacy.errors import InvalidValueError, require_positive
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.mechanisms import CalibratedExponential, check_options, create_mechanism
from hf_dxprivacy.mechanisms.certificate import truncation_weight
from hf_dxprivacy.spaces import EmbeddingSpace

# ε of a local bound are rounded down to so many digits, so that they can be written down; found to
# a precision; and sought up to a multiple of the bound.
DIGITS, PRECISION, MOST = 6, 1e-7, 1e6
# The least share of an interval that a step cuts off.
LEAST_STEP = 0.01


def within_local_bound(
    space: EmbeddingSpace, mechanism: str, local_epsilon: float, options: Mapping[str, Any]
) -> float:
    """Find the ε of a local bound; see `calibration.epsilon_for_local_bound`."""
    require_positive(local_epsilon=local_epsilon)
    check_options(mechanism, options)
    name, least = mechanism, 0.0
    if mechanism == CalibratedExponential.name:
        # What ε·γ tends to for large ε, so that a larger bound limits nothing. Below it only the
        # diameter of the space does, as for "tem", which needs no certificate.
        least = -math.log(truncation_weight(len(space), options.get("beta", 0.001)))
        name = "tem"

    @cache
    def bound(epsilon: float) -> float:
        try:
            return create_mechanism(name, space, epsilon, **options).local_epsilon
        except InvalidValueError:
            if epsilon < MOST * local_epsilon:
                return -math.inf  # as if it were small: the noise needs a larger ε
            raise

    # Where "hierarchical" has it, up to a factor of 2.
    low, high = bracket(bound, local_epsilon, local_epsilon / math.log(len(space) + 1))
    if high == math.inf or 0.0 < least <= local_epsilon:
        raise InvalidValueError(
            f"a local bound of {local_epsilon:g} does not limit ε for {mechanism!r} on this space: "
            f"it holds for ε of any size; choose ε by how many {space.item_kind} stay "
            "(suggest_epsilon), or take 'hierarchical'"
        )
    if bound(low) < 0:
        least_bound = f"the least is {upward(bound(high))}, at ε = {high:.{DIGITS}g}"
        raise InvalidValueError(
            f"no ε has a local bound of {local_epsilon:g} for {mechanism!r} on this space: "
            + (least_bound if bound(high) < math.inf else "it has no finite one")
        )
    rounding = Context(DIGITS, ROUND_FLOOR)
    found = rounding.create_decimal(repr(low))
    while bound(float(found)) > local_epsilon:
        found = found.next_minus(rounding)
    return float(found) if bound(float(found)) >= 0 else low


def bracket(
    bound: Callable[[float], float], limit: float, start: float, precision: float = PRECISION
) -> tuple[float, float]:
    """Return ends of an interval, of which only the lower one is within a limit; ∞ if none is."""
    low = high = start
    while bound(high) <= limit:
        if high >= MOST * limit:
            return high, math.inf
        low, high = high, 2 * high
    while bound(low) > limit:
        low, high = low / 2, low
    while high - low > precision * high:
        share = 0.5
        if bound(low) >= 0:
            share = (limit - bound(low)) / (bound(high) - bound(low))
        middle = low + min(max(share, LEAST_STEP), 1 - LEAST_STEP) * (high - low)
        low, high = (middle, high) if bound(middle) <= limit else (low, middle)
    return low, high

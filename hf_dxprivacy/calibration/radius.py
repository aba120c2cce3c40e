"""ε from what it has to hide: a radius, and how well."""

from hf_dxprivacy import _validate


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
    _validate.positive(radius=radius, level=level)
    return level / radius

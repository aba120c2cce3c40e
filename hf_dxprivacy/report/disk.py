"""A word in the middle of the Poincaré disk, with what it becomes and the classes of that.

After Feyisetan, Diethe, Drake, ICDM 2019.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.cards.picture import COLOURS
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.report.picture import WIDTH, Picture
from hf_dxprivacy.spaces import EmbeddingSpace, poincare
from hf_dxprivacy.training import Relations
from hf_dxprivacy.training.picture import empty_disk

# Distances from the word that are drawn as circles.
RINGS = (1.0, 2.0, 3.0)
# Keeps the direction of a point that has none finite.
TINY = 1e-300
MIDDLE, OUTPUT, CLASS = "#000000", COLOURS["tem"], COLOURS["laplace"]


def draw_word(
    space: EmbeddingSpace, word: str, outputs: Sequence[str], relations: Relations | None = None
) -> Picture:
    """Draw a word, what it became in some draws, and the classes of all of these.

    The word is moved to the centre, where every distance from it is drawn truly: at tanh(d/2) for
    a distance d in units of the space. Directions are those of the plane in which the drawn words
    differ most, and have no other meaning.

    Args:
        space: A space of the Poincaré metric.
        word: A word of it.
        outputs: Words of it that the word became; a dot grows with how often.
        relations: Drawn as lines, for example `Relations.direct()`; classes that the space lacks
            are left out.

    Raises:
        InvalidValueError: If the space has another metric, or lacks a word.
        MissingExtraError: If matplotlib is not installed.
    """
    if space.metric != "poincare":
        raise InvalidValueError(f"expected a space of the Poincaré metric, got {space.metric!r}")
    counts = Counter(outputs)
    links = _links(space, {word, *counts}, relations)
    classes = {above for _, above in links} - {word, *counts}
    names = [word, *counts, *sorted(classes)]
    places = dict(zip(names, _places(space, names), strict=True))
    figure, axes = empty_disk(WIDTH)
    _draw_rings(axes)
    for below, above in links:
        axes.plot(*zip(places[below], places[above], strict=True), color="0.6", linewidth=0.8)
    for name in names:
        _draw_name(axes, name, places[name], counts.get(name, 0), name == word, name in classes)
    commonest = ", ".join(f"{name} ({n})" for name, n in counts.most_common(5))
    return Picture(
        f"What {word!r} becomes",
        f"A disk with {word!r} at its centre, {len(counts)} words it became in {len(outputs)} "
        f"draws, nearer ones closer to the centre, and {len(classes)} of their classes. Most "
        f"often: {commonest or 'none'}.",
        figure,
    )


def _links(
    space: EmbeddingSpace, names: set[str], relations: Relations | None
) -> list[tuple[str, str]]:
    """Return each of the names with its classes, as far as the space has them."""
    if relations is None:
        return []
    pairs = ((relations.nodes[node], relations.nodes[top]) for node, top in relations.pairs)
    return [(below, above) for below, above in pairs if below in names and above in space]


def _places(space: EmbeddingSpace, names: list[str]) -> NDArray[np.float64]:
    """Return where to draw words, (m, 2); the first is the centre."""
    ids = space.ids(names)
    if unknown := int((ids < 0).sum()):
        raise InvalidValueError(f"{unknown} of {len(ids)} words to draw are not in the space")
    points = space.points(ids)
    moved = poincare.mobius_add(-points[:1], points)
    directions = _unit(moved)
    # Near the rim of a ball nearly all words lie the same way, towards its centre: what tells them
    # apart is how they differ from that.
    differences = directions - directions[1:].mean(axis=0) if len(ids) > 1 else directions
    plane = np.linalg.svd(differences[1:], full_matrices=False)[2][:2]
    radii = np.tanh(space.pair_distances(np.full(len(ids), ids[0]), ids) / 2.0)
    places = np.zeros((len(ids), 2))
    places[:, : len(plane)] = differences @ plane.T
    return _unit(places) * radii[:, None]


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = rows / np.maximum(
        np.linalg.norm(rows, axis=1, keepdims=True), TINY
    )
    return scaled


def _draw_rings(axes: Any) -> None:
    from matplotlib.patches import Circle

    for distance in RINGS:
        radius = float(np.tanh(distance / 2.0))
        axes.add_patch(Circle((0.0, 0.0), radius, fill=False, linestyle=":", edgecolor="0.7"))
        axes.annotate(f"d = {distance:g}", (0.0, -radius), fontsize="x-small", color="0.4")


def _draw_name(
    axes: Any, name: str, place: NDArray[np.float64], count: int, middle: bool, above: bool
) -> None:
    colour = MIDDLE if middle else CLASS if above else OUTPUT
    axes.scatter(*place, s=12.0 + 4.0 * count, color=colour, marker="s" if above else "o", zorder=2)
    axes.annotate(
        name,
        place,
        textcoords="offset points",
        xytext=(4, 4),
        fontsize="small",
        color=colour,
        fontweight="bold" if middle else "normal",
    )

"""Figures of the Poincaré disk: a space of two dimensions, and what a word becomes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.hub.cards import COLOURS
from hf_dxprivacy.report.figures import EXTRA, WIDTH, Picture
from hf_dxprivacy.spaces import EmbeddingSpace, metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Lines(Protocol):
    """Pairs of words to join by lines, such as `training.Relations`.

    Attributes:
        nodes: The words.
        pairs: (m, 2) their positions.
    """

    nodes: tuple[str, ...]
    pairs: NDArray[np.int64]


def draw_disk(
    space: EmbeddingSpace,
    labels: Iterable[str] = (),
    relations: Lines | None = None,
    size: float = 8.0,
) -> "Figure":
    """Draw the words of a two-dimensional Poincaré space as dots in the unit disk.

    Args:
        space: A space of the Poincaré metric with 2 dimensions.
        labels: Words to write beside their dots.
        relations: Drawn as lines between the words they are about, for example `direct()` ones.
        size: Width and height in inches.

    Returns:
        The figure; save it with `figure.savefig("disk.svg")`.

    Raises:
        InvalidValueError: If the space is another one, or lacks a label or a node.
        MissingExtraError: If matplotlib is not installed.
    """
    if space.metric != "poincare" or space.dim != 2:
        raise InvalidValueError(
            f"expected a Poincaré space of 2 dimensions, got {space.metric} of {space.dim}; "
            "train one with train_poincare(relations, dim=2)"
        )
    figure, axes = empty_disk(size)
    from matplotlib.collections import LineCollection

    if relations is not None:
        rows = _rows(space, relations.nodes)
        lines = space.vectors[rows[relations.pairs]].astype(np.float64)
        axes.add_collection(LineCollection(list(lines), linewidths=0.2, colors="0.7"))
    axes.scatter(space.vectors[:, 0], space.vectors[:, 1], s=4.0, zorder=2)
    names = list(labels)
    for name, (x, y) in zip(names, space.vectors[_rows(space, names)], strict=True):
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(3, 3), fontsize=8)
    return figure


def empty_disk(size: float) -> "tuple[Figure, Any]":
    """Return a figure with the rim of the unit disk, and its axes; the state of pyplot stays.

    Args:
        size: Width and height in inches.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    require("matplotlib", EXTRA)
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(size, size), layout="tight")
    axes = figure.add_subplot(aspect="equal", xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    axes.set_axis_off()
    axes.add_patch(Circle((0.0, 0.0), 1.0, fill=False, linewidth=0.8))
    return figure, axes


# Distances from the word that are drawn as circles.
RINGS = (1.0, 2.0, 3.0)
# Keeps the direction of a point that has none finite.
TINY = 1e-300
MIDDLE, OUTPUT, CLASS = "#000000", COLOURS["tem"], COLOURS["laplace"]


def draw_word(
    space: EmbeddingSpace, word: str, outputs: Sequence[str], relations: Lines | None = None
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
    """
    if space.metric != "poincare":
        raise InvalidValueError(f"expected a space of the Poincaré metric, got {space.metric!r}")
    counts = Counter(outputs)
    inputs = {word, *counts}
    links = []
    if relations is not None:
        pairs = ((relations.nodes[node], relations.nodes[top]) for node, top in relations.pairs)
        links = [(a, b) for a, b in pairs if a in inputs and b in space]
    classes = {above for _, above in links} - inputs
    names = [word, *counts, *sorted(classes)]
    places = dict(zip(names, _places(space, names), strict=True))
    figure, axes = empty_disk(WIDTH)
    for distance in RINGS:
        radius = float(np.tanh(distance / 2.0))
        ring = require("matplotlib.patches", EXTRA).Circle((0.0, 0.0), radius, fill=False)
        ring.set(linestyle=":", edgecolor="0.7")
        axes.add_patch(ring)
        axes.annotate(f"d = {distance:g}", (0.0, -radius), fontsize="x-small", color="0.4")
    for below, above in links:
        axes.plot(*zip(places[below], places[above], strict=True), color="0.6", linewidth=0.8)
    for name in names:
        colour = MIDDLE if name == word else CLASS if name in classes else OUTPUT
        marker, size = "s" if name in classes else "o", 12.0 + 4.0 * counts.get(name, 0)
        axes.scatter(*places[name], s=size, color=colour, marker=marker, zorder=2)
        beside = {"textcoords": "offset points", "xytext": (4, 4), "fontsize": "small"}
        weight = "bold" if name == word else "normal"
        axes.annotate(name, places[name], color=colour, fontweight=weight, **beside)
    commonest = ", ".join(f"{name} ({n})" for name, n in counts.most_common(5))
    return Picture(
        f"What {word!r} becomes",
        f"A disk with {word!r} at its centre, {len(counts)} words it became in {len(outputs)} "
        f"draws, nearer ones closer to the centre, and {len(classes)} of their classes. Most "
        f"often: {commonest or 'none'}.",
        figure,
    )


def _places(space: EmbeddingSpace, names: list[str]) -> NDArray[np.float64]:
    """Return where to draw words, (m, 2); the first is the centre."""
    ids = _rows(space, names)
    points = space.points(ids)
    moved = metrics.mobius_add(-points[:1], points)
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
    lengths: NDArray[np.float64] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, TINY)


def _rows(space: EmbeddingSpace, names: Iterable[str]) -> NDArray[np.int64]:
    rows = space.ids(names)
    if (rows < 0).any():
        raise InvalidValueError(
            f"{int((rows < 0).sum())} of {len(rows)} words to draw are not in the space"
        )
    return rows

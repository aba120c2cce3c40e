"""Figure of a space of two dimensions: the Poincaré disk."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.spaces.space import EmbeddingSpace

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
    require("matplotlib", "report")
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(size, size), layout="tight")
    axes = figure.add_subplot(aspect="equal", xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    axes.set_axis_off()
    axes.add_patch(Circle((0.0, 0.0), 1.0, fill=False, linewidth=0.8))
    return figure, axes


def _rows(space: EmbeddingSpace, names: Iterable[str]) -> NDArray[np.int64]:
    rows = space.ids(names)
    if (rows < 0).any():
        raise InvalidValueError(
            f"{int((rows < 0).sum())} of {len(rows)} names to draw are not words of the space"
        )
    return rows

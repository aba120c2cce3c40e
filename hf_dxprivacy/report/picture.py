"""A picture with what it says in words, for those who can not see it."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy._optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "report"

# Inches. Narrow, so that letters stay legible on a telephone.
WIDTH = 5.0
# So many numbers stand side by side along an axis.
MOST_TICKS = 9


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing, and the same in words.

    Attributes:
        title: What it is of.
        alt: What it shows.
        figure: The drawing.
    """

    title: str
    alt: str
    figure: "Figure"

    def svg(self) -> bytes:
        """Return an SVG file that needs no font and no other file; always the same bytes."""
        file = io.BytesIO()
        with require("matplotlib", EXTRA).rc_context({"svg.hashsalt": self.title}):
            self.figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    def data_uri(self) -> str:
        """Return the SVG file as the address of an image."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg()).decode()}"

    def save(self, path: str | Path, dpi: int = 150) -> None:
        """Write it in the format of the path's ending, such as .png, .svg or .pdf."""
        self.figure.savefig(path, dpi=dpi)


def panels(count: int, height: float, columns: int = 1) -> tuple["Figure", list[Any]]:
    """Return a figure with panels in reading order, without touching the state of pyplot.

    Args:
        count: How many panels.
        height: Of each, in inches.
        columns: How many stand side by side.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    rows = -(-count // columns)
    figure = require("matplotlib.figure", EXTRA).Figure(
        figsize=(WIDTH, rows * height), layout="constrained"
    )
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat[:count])


def show_epsilons(axes: Any, epsilons: Sequence[float]) -> None:
    """Make the horizontal axis one of ε in steps of ratios, marked where something was measured."""
    marks = sorted(set(epsilons))
    if len(marks) < 2:
        return
    axes.set_xscale("log", base=2)
    if len(marks) <= MOST_TICKS:
        axes.set_xticks(marks)
        axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")

"""The picture of a card: what the mechanisms do to words, against ε."""

import hashlib
import io
import json
from dataclasses import asdict
from typing import Any

from hf_dxprivacy._optional import require
from hf_dxprivacy.cards.figures import SETTINGS, Figures, Point

# Told apart by readers who do not see red and green as two (Okabe and Ito).
COLOURS = {
    "tem": "#0072B2",
    "calibrated": "#009E73",
    "laplace": "#D55E00",
    "mahalanobis": "#CC79A7",
    "hyperbolic": "#D55E00",
}


def picture(figures: Figures) -> bytes:
    """Draw the two statistics of all mechanisms against ε.

    Returns:
        A PNG file of 1000 × 420 pixels, which carries the digest of the figures it was drawn from.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    # No pyplot: it has windows and a state of its own, which are the user's.
    canvas = require("matplotlib.figure", "report").Figure(figsize=(10, 4.2))
    canvas.subplots_adjust(left=0.05, right=0.98, top=0.92, bottom=0.25, wspace=0.12)
    kept, distinct = canvas.subplots(1, 2)
    for name, points in figures.mechanisms.items():
        _draw(kept, name, figures.unit, points, [point.kept for point in points])
        _draw(distinct, name, figures.unit, points, [point.distinct for point in points])
    kept.set_title("share of draws in which the word stays")
    distinct.set_title(f"different words in {SETTINGS['runs']} draws")
    distinct.set_ylim(0, 1.04 * SETTINGS["runs"])
    kept.set_ylim(-0.02, 1.04)
    for axes in (kept, distinct):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("ε·d at the median distance to the nearest neighbour")
        axes.grid(alpha=0.3)
    canvas.legend(*kept.get_legend_handles_labels(), loc="lower center", ncols=3)
    file = io.BytesIO()
    canvas.savefig(file, format="png", dpi=100, metadata={"Figures": digest(figures)})
    return file.getvalue()


def digest(figures: Figures) -> str:
    """Return the SHA-256 in hexadecimal by which a picture tells what it was drawn from."""
    return hashlib.sha256(json.dumps(asdict(figures)).encode()).hexdigest()


def _draw(
    axes: Any, name: str, unit: float, points: tuple[Point, ...], rows: list[tuple[float, float]]
) -> None:
    steps = [point.epsilon * unit for point in points]
    means, worst = zip(*rows, strict=True)
    axes.plot(steps, means, color=COLOURS[name], marker="o", markersize=4, label=f"{name}, mean")
    axes.plot(steps, worst, color=COLOURS[name], linestyle=":", label=f"{name}, worst word")

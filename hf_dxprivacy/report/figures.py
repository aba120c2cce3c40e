"""Figures of statistics, distances, words and `Results`, each with an alternative text.

After the figures 1 to 4 of Feyisetan et al., WSDM 2020, 2 to 5 of Xu et al., PrivateNLP 2020, and
those of a disk in Feyisetan, Diethe, Drake, ICDM 2019. Without matplotlib every function that draws
raises MissingExtraError.
"""

import base64
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hf_dxprivacy._runtime import require
from hf_dxprivacy.calibration.statistics import PERCENTILES
from hf_dxprivacy.calibration.sweep import Sweep
from hf_dxprivacy.errors import InvalidValueError, require_one_of
from hf_dxprivacy.hub.cards import COLOURS, OTHER_COLOUR
from hf_dxprivacy.results import ORIGINAL, Result, Results
from hf_dxprivacy.spaces import EmbeddingSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "report"

# Inches. Narrow, so that letters stay legible on a telephone.
WIDTH = 5.0
# So many numbers stand side by side along an axis.
MOST_TICKS = 9


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with a title and an alternative text.

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


# Ranks of neighbours, evenly spaced on a logarithmic axis.
RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
BINS = 20
BLUE, ORANGE = COLOURS["tem"], COLOURS["laplace"]


def draw_percentiles(sweep: Sweep) -> Picture:
    """Draw N_w and S_w against ε: the median word, half of the words, 90 % of them, the worst."""
    figure, (kept, spread) = panels(2, 2.9)
    grid = [step.mechanism.epsilon for step in sweep.steps]
    shares, sizes = zip(*((step.statistics.kept, step.spread) for step in sweep.steps), strict=True)
    entry = sweep.entries[:-1]
    _draw_band(kept, grid, shares, np.max, entry)
    _draw_band(spread, grid, sizes, np.min, entry)
    kept.set_ylabel(f"N_w: probability that a {entry} stays")
    kept.set_ylim(-0.02, 1.02)
    kept.legend(fontsize="small")
    spread.set_ylabel("S_w: number of outputs")
    spread.set_yscale("log")
    for axes in (kept, spread):
        axes.set_xlabel("ε, per unit of the mechanism's metric")
        axes.grid(alpha=0.3)
        show_epsilons(axes, grid)
    middle = [f"{np.median(row):.2g}" for row in (shares[0], shares[-1])]
    counts = [f"{np.median(row):,.0f}" for row in (sizes[0], sizes[-1])]
    return Picture(
        "N_w and S_w against ε",
        f"Two charts of {sweep.mechanism.name} against ε. From ε = {grid[0]:g} to {grid[-1]:g} the "
        f"median {entry}'s N_w goes from {middle[0]} to {middle[1]} and its S_w from {counts[0]} "
        f"to {counts[1]}; bands hold 50 % and 90 % of the {entry}s, a dotted line is the worst "
        f"{entry}.",
        figure,
    )


def draw_histograms(sweep: Sweep) -> Picture:
    """Draw how many words have which N_w and S_w, a row of panels for each ε."""
    figure, axes = panels(2 * len(sweep.steps), 1.5, columns=2)
    top = max(float(step.spread.max()) for step in sweep.steps)
    bins = np.geomspace(1.0, max(top, 2.0), BINS + 1)
    for kept, spread, step in zip(axes[::2], axes[1::2], sweep.steps, strict=True):
        kept.hist(step.statistics.kept, bins=np.linspace(0.0, 1.0, BINS + 1), color=BLUE)
        spread.hist(step.spread, bins=bins, color=ORANGE)
        spread.set_xscale("log")
        kept.set_ylabel(f"ε = {step.mechanism.epsilon:g}\n{sweep.entries}")
    kept.set_xlabel("N_w")
    spread.set_xlabel("S_w")
    return Picture(
        "Histograms of N_w and S_w",
        f"For each of {len(sweep.steps)} values of ε the number of {sweep.entries} by N_w and by "
        "S_w. With larger ε they move to larger N_w, at the right of the left column, and to "
        "smaller S_w, at the left of the right column.",
        figure,
    )


def draw_distances(space: EmbeddingSpace) -> Picture:
    """Draw the distance from a word to its k-th nearest neighbour, by percentiles of the words."""
    ranks = [rank for rank in RANKS if rank < len(space)]
    sampled = space.sampled_neighbour_distances(ranks)
    figure, (axes,) = panels(1, 3.2)
    rows = [sampled[rank] for rank in ranks]
    entry = space.item_kind[:-1]
    _draw_band(axes, ranks, rows, np.max, entry, f"most isolated {entry}")
    metric = space.metric_name
    axes.set_xscale("log")
    axes.set_xlabel("k, rank of the neighbour")
    axes.set_ylabel(metric)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    first, last = (f"{np.median(row):.3g}" for row in (rows[0], rows[-1]))
    return Picture(
        "Distance to the k-th neighbour",
        f"A chart of the {metric} from a {entry} to its k-th nearest neighbour: in the median "
        f"{first} for k = {ranks[0]} and {last} for k = {ranks[-1]}; bands hold 50 % and 90 % of "
        f"{len(rows[0]):,} {entry}s.",
        figure,
    )


def _draw_band(
    axes: Any, x: Any, rows: Any, worst: Any, entry: str, label: str | None = None
) -> None:
    low, quarter, middle, three, high = np.array([np.percentile(r, PERCENTILES) for r in rows]).T
    axes.fill_between(
        x, low, high, color=BLUE, alpha=0.2, linewidth=0, label=f"90 % of the {entry}s"
    )
    axes.fill_between(x, quarter, three, color=BLUE, alpha=0.4, linewidth=0, label="50 %")
    axes.plot(x, middle, color=BLUE, marker="o", markersize=4, label=f"median {entry}")
    label = label or f"worst {entry}"
    axes.plot(x, [worst(row) for row in rows], color=ORANGE, linestyle=":", label=label)


# Mechanisms differ in their markers too, not in colour alone.
MARKERS = {
    "hierarchical": "P",
    "calibrated": "o",
    "tem": "s",
    "laplace": "^",
    "mahalanobis": "v",
    "hyperbolic": "D",
    "krr": "x",
}
# An axis is one of ratios if its values are farther apart than this.
WIDE = 12.0
# Of names that have none.
SPARE = ("#882255", "#332288", "#999933", "#117733", "#AA4499", "#661100", "#6699CC")


def draw_results(results: Results, metric: str) -> Picture:
    """Draw a metric against ε with its intervals, a panel for each task and dataset.

    Figures without an ε, such as those of original texts and of random words, become level lines.

    Args:
        results: The figures; those of other metrics are left out.
        metric: Which one to draw.

    Raises:
        InvalidValueError: If there is no figure of the metric.
    """
    require_one_of(dict.fromkeys(r.metric for r in results), metric=metric)
    chosen = results.where(metric=metric)
    places = list(dict.fromkeys((r.task, r.dataset) for r in chosen))
    figure, axes = panels(len(places), 3.0)
    for (task, dataset), each in zip(places, axes, strict=True):
        here = chosen.where(task=task, dataset=dataset)
        each.set_title(f"{task}, {dataset}", fontsize="medium")
        for name in dict.fromkeys(r.mechanism for r in here):
            found, style = here.where(mechanism=name), _style(name)
            rows = sorted(found, key=lambda r: r.epsilon or 0.0)
            if steps := [r for r in rows if r.epsilon is not None]:
                grid, values = [r.epsilon for r in steps], [r.value for r in steps]
                each.errorbar(grid, values, yerr=_errors(steps), **style)
            for r in found.where(epsilon=None):
                dashes = "-" if name == ORIGINAL else "--"
                level = {"color": style["color"], "label": style["label"], "linewidth": 1}
                each.axhline(r.value, linestyle=dashes, **level)
        each.set_ylabel(metric)
        each.set_xlabel("ε")
        show_epsilons(each, [r.epsilon for r in here if r.epsilon is not None])
        each.grid(alpha=0.3)
    _add_legend(figure)
    listed = "; ".join(f"{task} on {dataset}" for task, dataset in places)
    return Picture(
        f"{metric} against ε",
        f"Charts of {metric} against ε with confidence intervals, for {listed}. The numbers are in "
        "the table of results.",
        figure,
    )


def draw_tradeoff(utility: Results, privacy: Results) -> Picture:
    """Draw a useful figure against a leaking one, a point for each mechanism and ε of both.

    Args:
        utility: Figures of one task, dataset and metric, such as the accuracy of a classifier.
        privacy: The same of an attack, such as its share of successes.

    Raises:
        InvalidValueError: If either has not exactly one task, dataset and metric, or they share no
            mechanism at an ε.
    """
    useful, leaking = _by_setting(utility), _by_setting(privacy)
    shared = [setting for setting in useful if setting in leaking]
    if not shared:
        raise InvalidValueError("the two share no mechanism at an ε; measure both at the same ε")
    figure, (axes,) = panels(1, 4.2)
    for name in dict.fromkeys(name for name, _ in shared):
        settings = [setting for setting in shared if setting[0] == name]
        across, up = [leaking[s] for s in settings], [useful[s] for s in settings]
        x, y = [r.value for r in across], [r.value for r in up]
        axes.errorbar(x, y, xerr=_errors(across), yerr=_errors(up), **_style(name))
        for (_, epsilon), *point in zip(settings, x, y, strict=True):
            if epsilon is not None:
                place = {"xytext": (4, 4), "textcoords": "offset points"}
                axes.annotate(f"{epsilon:g}", point, fontsize="x-small", **place)
    axes.set_xlabel(_title(privacy[0]))
    axes.set_ylabel(_title(utility[0]))
    axes.grid(alpha=0.3)
    _add_legend(figure)
    return Picture(
        "Utility against leakage",
        f"A chart of {_title(utility[0])} against {_title(privacy[0])}, with ε beside each point. "
        "Up is more useful, left leaks less. The numbers are in the table of results.",
        figure,
    )


def draw_frontier(useful: Results, leaking: Results, use: str, attack: str) -> Picture:
    """Draw what is kept against what is told, a named curve for each mechanism through its ε.

    Args:
        useful: A figure of use for each mechanism and ε, and for original texts, a level line.
        leaking: What an attack tells of the same.
        use: What the first is, in words.
        attack: What the second is.
    """
    across, up = _by_setting(leaking), _by_setting(useful)
    figure, (axes,) = panels(1, 4.4)
    for name in dict.fromkeys(name for name, _ in up):
        style = _style(name) | {"linewidth": 2, "markersize": 6}
        settings = [setting for setting in across if setting[0] == name]
        if name == ORIGINAL:
            level = {"color": style["color"], "linewidth": 1, "linestyle": ":"}
            axes.axhline(up[name, None].value, label=None if settings else style["label"], **level)
            style |= {"marker": "*", "markersize": 12, "linestyle": ""}
        if not settings:
            continue
        ordered = sorted(settings, key=lambda setting: across[setting].value)
        x, y = ([by[s].value for s in ordered] for by in (across, up))
        low, high = zip(*((up[s].low, up[s].high) for s in ordered), strict=True)
        axes.vlines(x, low, high, color=style["color"], linewidth=1, alpha=0.3)
        del style["capsize"]
        axes.plot(x, y, **style)
    if min(evaluated := [r.value for r in leaking]) > 0 and max(evaluated) > WIDE * min(evaluated):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"{attack}  (left hides more)")
    axes.set_ylabel(f"{use}  (up keeps more)")
    arrow = {"arrowstyle": "-|>", "color": "0.4"}
    ends = {"xytext": (0.16, 0.88), "textcoords": "axes fraction", "xycoords": "axes fraction"}
    axes.annotate("better", (0.03, 0.98), color="0.4", arrowprops=arrow, **ends)
    axes.grid(alpha=0.3)
    _add_legend(figure)
    return Picture(
        f"{use[:1].upper()}{use[1:]} against {attack}",
        f"A chart with a curve for each mechanism: {use} upwards, {attack} to the right. A curve "
        "above another keeps more at the same value. The numbers are in the table.",
        figure,
    )


def _add_legend(figure: Any) -> None:
    """Name each mechanism once, below all panels."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    placed = {"loc": "outside lower center", "ncols": 3, "fontsize": "small"}
    figure.legend(named.values(), named.keys(), **placed)


def _style(name: str) -> dict[str, Any]:
    return {
        "label": "original" if name == ORIGINAL else name,
        "color": OTHER_COLOUR if name == ORIGINAL else COLOURS.get(name, _other(name, SPARE)),
        "marker": MARKERS.get(name, _other(name, "<>hXdp*")),
        "markersize": 4,
        "linewidth": 1,
        "capsize": 2,
    }


def _other(name: str, choices: Sequence[str]) -> str:
    """Return the choice of a name that has none of its own, always the same one."""
    return choices[zlib.crc32(name.encode()) % len(choices)]


def _errors(results: Sequence[Result]) -> list[list[float]]:
    return [[r.value - r.low for r in results], [r.high - r.value for r in results]]


def _by_setting(results: Results) -> dict[tuple[str, float | None], Result]:
    """Return the figures by mechanism and ε, in the order of ε."""
    if len({_title(r) for r in results}) != 1:
        raise InvalidValueError(
            "expected figures of exactly one task, dataset and metric; choose with results.where"
        )
    ordered = sorted(results, key=lambda r: r.epsilon or 0.0)
    return {(r.mechanism, r.epsilon): r for r in ordered}


def _title(result: Result) -> str:
    return f"{result.metric} ({result.task}, {result.dataset})"

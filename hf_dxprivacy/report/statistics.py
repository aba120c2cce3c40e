"""Pictures from which an ε is chosen: N_w, S_w and distances, by percentiles and histograms.

After the figures 1 to 4 of Feyisetan et al., WSDM 2020, and 2 to 5 of Xu et al., PrivateNLP 2020.
"""

from typing import Any

import numpy as np

from hf_dxprivacy.calibration.statistics import PERCENTILES
from hf_dxprivacy.cards.picture import COLOURS
from hf_dxprivacy.mechanisms.base import METRIC_NAMES
from hf_dxprivacy.report.picture import Picture, panels, show_epsilons
from hf_dxprivacy.report.steps import Sweep
from hf_dxprivacy.spaces import EmbeddingSpace

# Ranks of neighbours, evenly spaced on a logarithmic axis.
RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
BINS = 20
BLUE, ORANGE = COLOURS["tem"], COLOURS["laplace"]


def draw_percentiles(sweep: Sweep) -> Picture:
    """Draw N_w and S_w against ε: the median word, half of the words, 90 % of them, the worst.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    figure, (kept, spread) = panels(2, 2.9)
    grid = [step.mechanism.epsilon for step in sweep.steps]
    shares = [step.statistics.kept for step in sweep.steps]
    sizes = [step.spread for step in sweep.steps]
    _draw_band(kept, grid, shares, np.max)
    _draw_band(spread, grid, sizes, np.min)
    kept.set_ylabel("N_w: probability that a word stays")
    kept.set_ylim(-0.02, 1.02)
    kept.legend(fontsize="small")
    spread.set_ylabel("S_w: number of outputs")
    spread.set_yscale("log")
    for axes in (kept, spread):
        axes.set_xlabel("ε, per unit of distance")
        axes.grid(alpha=0.3)
        show_epsilons(axes, grid)
    middle = [f"{np.median(row):.2g}" for row in (shares[0], shares[-1])]
    counts = [f"{np.median(row):,.0f}" for row in (sizes[0], sizes[-1])]
    return Picture(
        "N_w and S_w against ε",
        f"Two charts of {sweep.mechanism.name} against ε. From ε = {grid[0]:g} to {grid[-1]:g} the "
        f"median word's N_w goes from {middle[0]} to {middle[1]} and its S_w from {counts[0]} to "
        f"{counts[1]}; bands hold 50 % and 90 % of the words, a dotted line is the worst word.",
        figure,
    )


def draw_histograms(sweep: Sweep) -> Picture:
    """Draw how many words have which N_w and S_w, a row of panels for each ε.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    figure, axes = panels(2 * len(sweep.steps), 1.5, columns=2)
    shares = [step.statistics.kept for step in sweep.steps]
    sizes = [step.spread for step in sweep.steps]
    top = max(float(row.max()) for row in sizes)
    bins = np.geomspace(1.0, max(top, 2.0), BINS + 1)
    for row, step in enumerate(sweep.steps):
        kept, spread = axes[2 * row : 2 * row + 2]
        kept.hist(shares[row], bins=np.linspace(0.0, 1.0, BINS + 1), color=BLUE)
        spread.hist(sizes[row], bins=bins, color=ORANGE)
        spread.set_xscale("log")
        kept.set_ylabel(f"ε = {step.mechanism.epsilon:g}\nwords")
    kept.set_xlabel("N_w")
    spread.set_xlabel("S_w")
    return Picture(
        "Histograms of N_w and S_w",
        f"For each of {len(sweep.steps)} values of ε the number of words by N_w and by S_w. With "
        "larger ε the words move to larger N_w, at the right of the left column, and to smaller "
        "S_w, at the left of the right column.",
        figure,
    )


def draw_distances(space: EmbeddingSpace) -> Picture:
    """Draw the distance from a word to its k-th nearest neighbour, by percentiles of the words.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    ranks = [rank for rank in RANKS if rank < len(space)]
    sampled = space.sampled_neighbour_distances(ranks)
    figure, (axes,) = panels(1, 3.2)
    rows = [sampled[rank] for rank in ranks]
    _draw_band(axes, ranks, rows, np.max, "most isolated word")
    metric = METRIC_NAMES[space.metric]
    axes.set_xscale("log")
    axes.set_xlabel("k, rank of the neighbour")
    axes.set_ylabel(metric)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    first, last = (f"{np.median(row):.3g}" for row in (rows[0], rows[-1]))
    return Picture(
        "Distance to the k-th neighbour",
        f"A chart of the {metric} from a word to its k-th nearest neighbour: in the median "
        f"{first} for k = {ranks[0]} and {last} for k = {ranks[-1]}; bands hold 50 % and 90 % of "
        f"{len(rows[0]):,} words.",
        figure,
    )


def _draw_band(axes: Any, x: Any, rows: Any, worst: Any, label: str = "worst word") -> None:
    low, quarter, middle, three, high = np.array([np.percentile(r, PERCENTILES) for r in rows]).T
    axes.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0, label="90 % of the words")
    axes.fill_between(x, quarter, three, color=BLUE, alpha=0.4, linewidth=0, label="50 %")
    axes.plot(x, middle, color=BLUE, marker="o", markersize=4, label="median word")
    axes.plot(x, [worst(row) for row in rows], color=ORANGE, linestyle=":", label=label)

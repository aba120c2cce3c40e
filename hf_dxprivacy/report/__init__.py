"""Figures, reports, card measurements and a demo page."""

from hf_dxprivacy.calibration.sweep import HEADINGS, Step, Sweep, sweep
from hf_dxprivacy.report.card_measurements import measure
from hf_dxprivacy.report.figures import (
    Picture,
    draw_distances,
    draw_frontier,
    draw_histograms,
    draw_percentiles,
    draw_results,
    draw_tradeoff,
)
from hf_dxprivacy.report.html import calibration_report
from hf_dxprivacy.report.poincare_disk import draw_word

__all__ = [
    "HEADINGS",
    "Picture",
    "Step",
    "Sweep",
    "calibration_report",
    "draw_distances",
    "draw_frontier",
    "draw_histograms",
    "draw_percentiles",
    "draw_results",
    "draw_tradeoff",
    "draw_word",
    "measure",
    "sweep",
]

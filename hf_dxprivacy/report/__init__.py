"""Pictures, reports and a page to look at what a mechanism does."""

from hf_dxprivacy.report.curves import draw_results, draw_tradeoff
from hf_dxprivacy.report.disk import draw_word
from hf_dxprivacy.report.document import calibration_report
from hf_dxprivacy.report.picture import Picture
from hf_dxprivacy.report.statistics import draw_distances, draw_histograms, draw_percentiles
from hf_dxprivacy.report.steps import HEADINGS, Step, Sweep, sweep

__all__ = [
    "HEADINGS",
    "Picture",
    "Step",
    "Sweep",
    "calibration_report",
    "draw_distances",
    "draw_histograms",
    "draw_percentiles",
    "draw_results",
    "draw_tradeoff",
    "draw_word",
    "sweep",
]

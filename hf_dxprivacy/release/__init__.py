"""From file to file: batches of rows through a privatizer, in one process or several."""

from hf_dxprivacy.release.job import Outcome, privatize_rows
from hf_dxprivacy.release.report import report

__all__ = ["Outcome", "privatize_rows", "report"]

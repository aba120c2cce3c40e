"""Figures, a report and a local page that show what an ε does (the extra ``report``)."""

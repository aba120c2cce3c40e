"""HTML from templates, which escape all that is filled in; the report of a calibration."""

from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from hf_dxprivacy._version import __version__
from hf_dxprivacy.calibration import PrivacyStatistics
from hf_dxprivacy.calibration.sweep import HEADINGS, Sweep
from hf_dxprivacy.report.figures import draw_distances, draw_histograms, draw_percentiles

TEMPLATES = Path(__file__).parent / "templates"

# How many of the words that stay most often are listed at each ε.
WORST = 5

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

# Names in the order in which they are offered.
_ENVIRONMENT.policies["json.dumps_kwargs"] = {"sort_keys": False}


def rendered(template: str, **shown: Any) -> str:
    """Return a template of this package, filled with what it shows."""
    return _ENVIRONMENT.get_template(template).render(**shown)


def calibration_report(sweep: Sweep, conclusion: str | None = None) -> str:
    """Return the report of a mechanism at several ε, as HTML.

    The pictures are in the file; it asks for nothing from anywhere and runs no script.

    Args:
        sweep: What was measured.
        conclusion: A sentence that answers which ε to take, if there was a target.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """

    def worst(found: PrivacyStatistics) -> list[str]:
        rows = np.argsort(-found.kept, kind="stable")[:WORST]
        return [f"{found.words[row]} ({found.kept[row]:.1%})" for row in rows]

    mechanism, found = sweep.mechanism, sweep.statistics
    space = mechanism.space
    options = {name: mechanism.parameters[name] for name in mechanism.options}
    return rendered(
        "calibration.html",
        version=__version__,
        name=mechanism.name,
        options={name: value for name, value in options.items() if value is not None},
        space=space,
        entry=space.entries[:-1],
        place=space.commit or space.location or "a space in memory",
        conclusion=conclusion,
        words=len(found.words),
        exact=found.exact,
        runs=found.runs,
        spread=sweep.spread_name,
        headings=HEADINGS,
        rows=[step.cells() for step in sweep.steps],
        pictures=[draw_percentiles(sweep), draw_histograms(sweep), draw_distances(space)],
        steps=[
            (step.mechanism.epsilon, step.mechanism.guarantee, worst(step.statistics))
            for step in sweep.steps
        ],
    )

"""Templates of HTML, which escape whatever is filled in."""

from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = Path(__file__).parent / "templates"

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def rendered(template: str, **shown: Any) -> str:
    """Return a template of this package, filled with what it shows."""
    return _ENVIRONMENT.get_template(template).render(**shown)

"""HTML from templates, which escape all that is filled in; the report of a calibration."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from hf_dxprivacy._version import __version__
from hf_dxprivacy.calibration import PrivacyStatistics
from hf_dxprivacy.calibration.sweep import HEADINGS, Sweep
from hf_dxprivacy.guarantee import PrivacyGuarantee
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.report.figures import draw_distances, draw_histograms, draw_percentiles
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader

TEMPLATES = Path(__file__).parent / "templates"

# Made-up texts, about no real person.
TEXTS = (
    "The blood test of patient 20391 shows low iron, so please repeat it in a month.",
    "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill.",
    "Someone in Ohio used my credit card to buy a television.",
)
# The texts are public, and so is their noise: a report is made again as it was.
SEED = 1 << 64
# Headings that say by themselves what they are of, where a row is a card.
_LABELS = [
    f"{'N_w' if at < 7 else 'S_w'}, {name}" if name in ("median", "largest", "least") else name
    for at, name in enumerate(HEADINGS)
]

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


def _lead(sweep: Sweep) -> str:
    """Say for a manager what the ε from end to end keep."""
    steps = {step.mechanism.epsilon: step for step in (sweep.steps[0], sweep.steps[-1])}
    kept = " and ".join(
        f"ε = {epsilon:g} keeps {step.statistics.kept.mean():.0%} of the {sweep.entries}"
        for epsilon, step in steps.items()
    )
    return (
        "ε sets how strong the protection is: a smaller one hides more, and keeps less of a text. "
        f"On average {kept} as they are; all others become {sweep.entries} drawn at random."
    )


def _texts(sweep: Sweep) -> list[str]:
    """Return texts to show: some made up, if the space has their words, or else of its own."""
    space, own = sweep.mechanism.space, sweep.statistics.words
    if space.item_kind == "sentences":
        return list(own[:3])
    rows = [RowReader().read_text(text) for text in TEXTS]
    words = [word for row in rows for word in row.words]
    if (look_up_rows(rows, space) >= 0).sum() >= len(words) / 2:
        return list(TEXTS)
    return [" ".join(own[at::3][:8]) for at in range(3)]


def _released(mechanism: Mechanism, sweep: Sweep) -> list[list[tuple[str, bool]]]:
    """Release the texts, in pieces of which it is told whether they changed."""
    texts, space = _texts(sweep), mechanism.space
    if space.item_kind == "sentences":
        drawn = mechanism.sample(space.ids(texts), keyed_generator(SEED, "report")).tolist()
        return [[(space.words[k], space.words[k] != t)] for k, t in zip(drawn, texts, strict=True)]
    found = []
    for row in map(RowReader().read_text, texts):
        released = DxPrivatizer(space, mechanism, seed=SEED).privatize([row.words])[0] or ()
        pieces = [(row.separators[0], False)]
        for old, new, between in zip(row.words, released, row.separators[1:], strict=True):
            pieces += [(str(new), str(new) != old.lower()), (between, False)]
        found.append(pieces)
    return found


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

    def stated(guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        # An entry of a pool stands for a text.
        return replace(guarantee, unit="text") if space.item_kind == "sentences" else guarantee

    mechanism, found = sweep.mechanism, sweep.statistics
    space = mechanism.space
    options = {name: mechanism.parameters[name] for name in mechanism.options}
    return rendered(
        "calibration.html",
        version=__version__,
        name=mechanism.name,
        options={name: value for name, value in options.items() if value is not None},
        space=space,
        entry=space.item_kind[:-1],
        place=space.commit or space.location or "a space in memory",
        lead=_lead(sweep),
        texts=_texts(sweep),
        samples=[
            (step.mechanism.epsilon, _released(step.mechanism, sweep)) for step in sweep.steps
        ],
        conclusion=conclusion,
        words=len(found.words),
        exact=found.exact,
        runs=found.runs,
        spread=sweep.spread_name,
        headings=HEADINGS,
        labels=_LABELS,
        rows=[step.cells() for step in sweep.steps],
        pictures=[draw_percentiles(sweep), draw_histograms(sweep), draw_distances(space)],
        steps=[
            (step.mechanism.epsilon, stated(step.mechanism.guarantee), worst(step.statistics))
            for step in sweep.steps
        ],
    )

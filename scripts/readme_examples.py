"""Make the before/after table and the printed guarantee of README.md.

python scripts/readme_examples.py            rewrite them
python scripts/readme_examples.py --check    fail if they are not what this script makes
"""

from pathlib import Path

import numpy as np
import page_parts
from numpy.typing import NDArray

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.base import ExactMechanism
from hf_dxprivacy.text import RowReader

# A seed that is printed protects nothing; these sentences are made up.
SEED = 1
SPACE = "english"
EPSILONS = (1.5, 2.0)
SENTENCES = (
    "Someone in Ohio used my credit card to buy a television.",
    "The blood test of patient 20391 shows low iron; please repeat it in a month.",
    "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill.",
    "Call Doctor Lindqvist and tell her I will be late.",
    "The lecture on medieval trade is cancelled because the professor is ill.",
)


def table() -> str:
    """Return a table in Markdown; `calibrated` is at the ε where as many words stay as at first."""
    shown = [DxPrivatizer(SPACE, "hierarchical", epsilon, seed=SEED) for epsilon in EPSILONS]
    space, first = shown[0].space, shown[0].mechanism
    words = [word for text in SENTENCES for word in RowReader().read_text(text).words]
    ids = space.ids(words)
    known = ids[ids >= 0]
    stay = share_that_stays(first, known)
    candidates = [
        DxPrivatizer(space, "calibrated", steps / 4, seed=SEED) for steps in range(16, 37)
    ]
    shown.append(
        min(candidates, key=lambda each: abs(share_that_stays(each.mechanism, known) - stay))
    )
    columns = [list(SENTENCES)]
    titles = ["original"]
    for privatizer in shown:
        mechanism = privatizer.mechanism
        columns.append([str(text) for text in privatizer.privatize(list(SENTENCES))])
        titles.append(
            f"`{mechanism.name}`, ε = {mechanism.epsilon:g} "
            f"({share_that_stays(mechanism, known):.0%} stay)"
        )
    return page_parts.table(titles, columns)


def share_that_stays(mechanism: Mechanism, ids: NDArray[np.int64]) -> float:
    """Return the expected share of these words that is released as it is."""
    assert isinstance(mechanism, ExactMechanism)
    return float(mechanism.probabilities(ids)[np.arange(len(ids)), ids].mean())


def guarantee() -> str:
    """Return the guarantee as a block of text."""
    lines = DxPrivatizer(SPACE, "hierarchical", EPSILONS[0]).guarantee.plain
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    parts = {"table": table, "guarantee": guarantee}
    page = page_parts.ROOT / "README.md"
    raise SystemExit(not page_parts.rewrite(__doc__, Path(__file__).name, page, parts))

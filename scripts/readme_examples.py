"""Make the before/after table and the printed guarantee of README.md.

python scripts/readme_examples.py            rewrite them
python scripts/readme_examples.py --check    fail if they are not what this script makes
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.base import ExactMechanism
from hf_dxprivacy.text import RowReader

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- {}: made by scripts/readme_examples.py -->\n", "<!-- end of {} -->"

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


def main() -> int:
    """Rewrite or check the examples."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    page = README.read_text("utf-8")
    after = page
    for name, content in (("table", table()), ("guarantee", guarantee())):
        after = with_example(after, name, content)
    if not arguments.check:
        README.write_text(after, "utf-8")
        return 0
    if after != page:
        print(f"README.md should read:\n\n{after}", file=sys.stderr)
    return int(after != page)


def with_example(page: str, name: str, content: str) -> str:
    """Return the page with the content between the markers of that name."""
    head, start, rest = page.partition(START.format(name))
    _, end, tail = rest.partition(END.format(name))
    if not (start and end):
        raise SystemExit(f"{README} has no place for the {name}")
    return f"{head}{start}\n{content}\n{end}{tail}"


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
    rows = [titles, ["---"] * len(titles), *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def share_that_stays(mechanism: Mechanism, ids: NDArray[np.int64]) -> float:
    """Return the expected share of these words that is released as it is."""
    assert isinstance(mechanism, ExactMechanism)
    return float(mechanism.probabilities(ids)[np.arange(len(ids)), ids].mean())


def guarantee() -> str:
    """Return the guarantee as a block of text."""
    lines = DxPrivatizer(SPACE, "hierarchical", EPSILONS[0]).guarantee.plain
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    raise SystemExit(main())

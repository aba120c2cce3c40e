"""Make the before/after table and the printed guarantee of README.md.

python scripts/readme_examples.py            rewrite them
python scripts/readme_examples.py --check    fail if they are not what this script makes
"""

import argparse
import sys
from pathlib import Path

from hf_dxprivacy.privatizer import DxPrivatizer

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- {}: made by scripts/readme_examples.py -->\n", "<!-- end of {} -->"

# A seed that is printed protects nothing; these sentences are made up.
SEED = 1
EPSILONS = (6.0, 8.0)
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
    """Return a table in Markdown, one column for each ε."""
    columns = [list(SENTENCES)]
    for epsilon in EPSILONS:
        privatizer = DxPrivatizer("wordnet-gloss", "calibrated", epsilon, seed=SEED)
        columns.append([str(text) for text in privatizer.privatize(list(SENTENCES))])
    titles = ["original", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    rows = [titles, ["---"] * len(titles), *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def guarantee() -> str:
    """Return the guarantee at the first ε as a block of text."""
    privatizer = DxPrivatizer("wordnet-gloss", "calibrated", EPSILONS[0])
    return f"```text\n{privatizer.guarantee}\n```\n"


if __name__ == "__main__":
    raise SystemExit(main())

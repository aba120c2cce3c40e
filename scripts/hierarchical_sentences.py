"""Make the sentences of docs/results/hierarchical.md, before and after `hierarchical`.

python scripts/hierarchical_sentences.py            rewrite them
python scripts/hierarchical_sentences.py --check    fail if they are not what this script makes

The sentences are made up, and so is the seed: one that is printed protects nothing.
"""

from pathlib import Path

import page_parts

from hf_dxprivacy import DxPrivatizer

PAGE = page_parts.ROOT / "docs" / "results" / "hierarchical.md"
SEED = 19
EPSILONS = (1.5, 2.0)


def sentences() -> str:
    """Return the sentences, and a release for each ε, as a table in Markdown."""
    originals = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
    columns: list[list[str]] = [originals]
    titles = ["original"]
    for epsilon in EPSILONS:
        privatizer = DxPrivatizer("english", "hierarchical", epsilon, seed=SEED)
        columns.append([str(text) for text in privatizer.privatize(originals)])
        titles.append(f"ε = {epsilon:g}")
    return page_parts.table(titles, columns)


if __name__ == "__main__":
    is_right = page_parts.rewrite(__doc__, Path(__file__).name, PAGE, {"sentences": sentences})
    raise SystemExit(not is_right)

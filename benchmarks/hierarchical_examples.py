"""Sentences before and after `hierarchical` in `english`, for docs/results/hierarchical.md.

    python benchmarks/hierarchical_examples.py            rewrite the table of the page
    python benchmarks/hierarchical_examples.py --slurs 10000000
                                         count listed slurs in that many released words instead

The sentences are made up, and so is the seed: one that is printed protects nothing.
"""

import argparse
import sys
from pathlib import Path

import common
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.text.slurs import is_slur

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results" / "hierarchical.md"
SENTENCES = HERE / "hierarchical_sentences.txt"
SEED = 19
EPSILONS = (1.5, 2.0)


def table() -> str:
    """Return the sentences, and a release for each ε, as a table in Markdown."""
    sentences = SENTENCES.read_text("utf-8").splitlines()
    columns = [sentences]
    for epsilon in EPSILONS:
        privatizer = DxPrivatizer("english", "hierarchical", epsilon, seed=SEED)
        columns.append(privatizer.privatize(sentences))
    titles = ["original", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    rows = [titles, ["---"] * len(titles), *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def slurs(words: int, epsilon: float) -> tuple[int, int]:
    """Return how many words were released, and how many of them are listed."""
    sentences = SENTENCES.read_text("utf-8").splitlines()
    privatizer = DxPrivatizer("english", "hierarchical", epsilon)
    reader, released, listed = RowReader(), 0, 0
    known: dict[str, bool] = {}
    while released < words:
        for text in privatizer.privatize(sentences * 200):
            for word in reader.read_text(text):
                released += 1
                if word not in known:
                    known[word] = is_slur(word)
                listed += known[word]
    return released, listed


def main() -> int:
    """Rewrite the table, or count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--slurs", type=int, help="release so many words, and count listed ones")
    parser.add_argument("--epsilon", type=float, default=0.5, help="for --slurs (%(default)s)")
    options = parser.parse_args()
    if options.slurs:
        released, listed = slurs(options.slurs, options.epsilon)
        print(f"{listed} of {released} released words are on the list")
        return int(listed > 0)
    common.write_into(PAGE, "sentences", table())
    return 0


if __name__ == "__main__":
    sys.exit(main())

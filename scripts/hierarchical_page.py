"""Make the figures of docs/hierarchical.md: the clusters around a word and their probabilities.

python scripts/hierarchical_page.py            rewrite the tables and the picture
python scripts/hierarchical_page.py --check    fail if the tables are not what this script makes
"""

import math
import sys
from pathlib import Path

import numpy as np
import page_parts

from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.mechanisms import Hierarchical

PAGE = page_parts.ROOT / "docs" / "hierarchical.md"
PICTURE = page_parts.ROOT / "docs" / "images" / "hierarchical.png"

SPACE = "english"
WORD = "soup"
EPSILON = 1.5
EPSILONS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)


def main() -> int:
    """Rewrite or check the page."""
    space = EmbeddingSpace.from_pretrained(SPACE)
    parts = {"branch": lambda: branch(space), "levels": lambda: levels(space)}
    is_right = page_parts.rewrite(__doc__, Path(__file__).name, PAGE, parts)
    if "--check" not in sys.argv:
        draw(space)
    return int(not is_right)


def rings(space: EmbeddingSpace) -> list[tuple[int, np.ndarray]]:
    """Return the clusters around the word from inside out: size, and rows not in the one before."""
    tree = space.hierarchy
    assert tree is not None
    row = int(space.ids([WORD])[0])
    inside = np.array([row])
    found = [(1, inside)]
    for cluster in tree.chain(row):
        members = tree.members(cluster)
        found.append((len(members), np.setdiff1d(members, inside)))
        inside = members
    return found


def branch(space: EmbeddingSpace) -> str:
    """Return the table of the clusters around the word, those of one octave together."""
    law = Hierarchical(space, EPSILON).probabilities(space.ids([WORD]))[0]
    octaves: dict[int, list[tuple[int, np.ndarray]]] = {}
    for size, rows in rings(space):
        octaves.setdefault(int(np.ceil(np.log2(size))), []).append((size, rows))
    lines = [
        "| words in the cluster | ε·d_T at most | probability | new in it |",
        "|---:|---:|---:|---|",
    ]
    for group in octaves.values():
        rows = np.concatenate([ring for _, ring in group])
        size = group[-1][0]
        # The vocabulary is sorted by frequency, so the first rows are the words that one knows.
        shown = ", ".join(space.words[row] for row in np.sort(rows)[:6])
        more = " …" if len(rows) > 6 else ""
        lines.append(
            f"| {size:,} | {up(EPSILON * np.log(size))} | {law[rows].sum():.1%} | {shown}{more} |"
        )
    return "\n".join(lines) + "\n"


def up(bound: float) -> str:
    """Print a bound to one decimal, never less than what holds."""
    return f"{math.ceil(10.0 * bound) / 10.0:.1f}"


def levels(space: EmbeddingSpace) -> str:
    """Return the table of what an ε gives; medians are over every 64th word."""
    lines = [
        "| ε | s | two words in a cluster of 2 | of 8 | of 100 | any two words | stays, median |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ids = np.arange(0, len(space), 64)
    for epsilon in EPSILONS:
        mechanism = Hierarchical(space, epsilon)
        bounds = " | ".join(up(epsilon * np.log(size)) for size in (2, 8, 100))
        stays = mechanism.probabilities(ids)[np.arange(len(ids)), ids]
        lines.append(
            f"| {epsilon:g} | {mechanism.inverse_temperature:.3f} | {bounds} | "
            f"{up(mechanism.local_epsilon)} | {np.median(stays):.2f} |"
        )
    return "\n".join(lines) + "\n"


def draw(space: EmbeddingSpace) -> None:
    """Draw how much probability lies beyond each cluster size around the word, for three ε."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    clusters = rings(space)
    sizes = [size for size, _ in clusters]
    for epsilon in (1.0, 1.5, 2.0):
        law = Hierarchical(space, epsilon).probabilities(space.ids([WORD]))[0]
        inside = np.cumsum([law[rows].sum() for _, rows in clusters])
        axes.plot(sizes, inside, marker="o", markersize=3, label=f"ε = {epsilon:g}")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(f"words in the cluster around “{WORD}”")
    axes.set_ylabel("probability that the\nreleased word is in it")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    raise SystemExit(main())

"""Privatize 200 sentences at two values of ε and show them before and after.

    make demo

The sentences are made up. They go through `Dataset.map` like any data set would.
"""

import argparse
import os
import shutil
import sys
import time
import unicodedata
from pathlib import Path

import datasets
from datasets import Dataset

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.text import RowReader

SENTENCES = Path(__file__).with_name("demo_sentences.txt")
SPACE, MECHANISM = "english", "hierarchical"
# The lines that are shown, a few of each kind.
SHOWN = (3, 10, 14, 33, 47, 58, 83, 89, 127, 151, 161, 178)
LABEL = 8


def main() -> None:
    """Privatize, print some before and after, the share of changed words, and the guarantees."""
    options = parse_arguments()
    datasets.disable_progress_bars()
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    kinds, texts = zip(*(line.split("\t") for line in lines), strict=True)
    sentences = Dataset.from_dict({"kind": kinds, "text": texts})

    privatizers, released, seconds = [], [], []
    for epsilon in options.epsilon:
        privatizer = DxPrivatizer.from_pretrained(SPACE, mechanism=MECHANISM, epsilon=epsilon)
        start = time.perf_counter()
        released.append(sentences.map(privatizer, batched=True)["text"][:])
        seconds.append(time.perf_counter() - start)
        privatizers.append(privatizer)

    print(f"{len(texts)} sentences, space {SPACE!r}, mechanism {MECHANISM!r}\n")
    for row in (line - 1 for line in SHOWN):
        show(kinds[row], texts[row], texts[row], width)
        for epsilon, outputs in zip(options.epsilon, released, strict=True):
            show(f"ε = {epsilon:g}", texts[row], outputs[row], width)
        print()
    for epsilon, outputs, took in zip(options.epsilon, released, seconds, strict=True):
        changed = [change for pair in zip(texts, outputs, strict=True) for change in changes(*pair)]
        share = sum(changed) / len(changed)
        print(f"ε = {epsilon:g}: {share:.0%} of {len(changed)} words changed, in {took:.1f} s")
    for privatizer in privatizers:
        print(f"\n{privatizer.guarantee}")
    print(
        "\nReleases of the same text add up: all of the above together is "
        f"{sum(options.epsilon):g}·d-private.\ndocs/limitations.md says what no ε covers."
    )


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.5, 2.0])
    return parser.parse_args()


def changes(before: str, after: str) -> list[bool]:
    """Tell for each word whether another one came out."""
    old, new = (RowReader().read_text(text) for text in (before, after))
    if old.separators != new.separators:  # words such as "1837" and "13" join around a hyphen
        return [True] * len(new)
    return [a.lower() != b.lower() for a, b in zip(old, new, strict=True)]


def show(label: str, before: str, after: str, width: int) -> None:
    """Print a text in lines of a width, its changed words marked on a terminal."""
    marked = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    row = RowReader().read_text(after)
    shown = [
        f"\033[1;33m{word}\033[0m" if marked and changed else word
        for word, changed in zip(row.words, changes(before, after), strict=True)
    ]
    indent = " " * (LABEL + 1)
    line, used = f"{label:<{LABEL}}", LABEL
    # Words hold no spaces, so the plain and the marked text fall into the same parts.
    for plain, part in zip(after.split(" "), row.detokenize(shown).split(" "), strict=True):
        if used > LABEL and used + 1 + columns(plain) > width:
            print(line)
            line, used = indent + part, len(indent) + columns(plain)
        else:
            line, used = f"{line} {part}", used + 1 + columns(plain)
    print(line)


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


if __name__ == "__main__":
    main()

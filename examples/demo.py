"""Privatize 200 sentences at two values of ε and show what became of them.

    make demo

The sentences are made up. They go through `Dataset.map` like any data set would.
"""

import argparse
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import datasets
from datasets import Dataset

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.text import RowReader

SENTENCES = Path(__file__).with_name("demo_sentences.txt")
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
        privatizer = DxPrivatizer.from_pretrained(
            options.space, mechanism=options.mechanism, epsilon=epsilon
        )
        start = time.perf_counter()
        released.append(sentences.map(privatizer, batched=True)["text"][:])
        seconds.append(time.perf_counter() - start)
        privatizers.append(privatizer)

    print(f"{len(texts)} sentences, space {options.space!r}, mechanism {options.mechanism!r}\n")
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
    parser.add_argument("--space", default="wordnet-gloss")
    parser.add_argument("--mechanism", default="calibrated")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[6.0, 12.0])
    return parser.parse_args()


def changes(before: str, after: str) -> list[bool]:
    """Tell for each word whether another one came out."""
    reader = RowReader()
    pairs = zip(reader.read_text(before).words, reader.read_text(after).words, strict=True)
    return [old.lower() != new.lower() for old, new in pairs]


def show(label: str, before: str, after: str, width: int) -> None:
    """Print a text in lines of a width, its changed words marked on a terminal."""
    marked = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    row, changed = RowReader().read_text(after), changes(before, after)
    # A word that starts after a space opens a chunk; lines break between chunks.
    chunks = [[row.carrier[0]]]
    sizes = [columns(row.carrier[0])]
    for word, other, gap in zip(row.words, changed, row.carrier[1:], strict=True):
        if chunks[-1][-1].endswith(" "):
            chunks.append([])
            sizes.append(0)
        chunks[-1] += [f"\033[1;33m{word}\033[0m" if marked and other else word, gap]
        sizes[-1] += columns(word) + columns(gap)
    print_wrapped(label, ["".join(chunk) for chunk in chunks], sizes, width)


def print_wrapped(label: str, chunks: Sequence[str], sizes: Sequence[int], width: int) -> None:
    """Print chunks of known widths behind a label, as many on a line as fit."""
    line, used = f"{label:<{LABEL}} ", LABEL + 1
    for chunk, size in zip(chunks, sizes, strict=True):
        if used + size > width + 1 and used > LABEL + 1:
            print(line.rstrip())
            line, used = " " * (LABEL + 1), LABEL + 1
        line += chunk
        used += size
    print(line.rstrip())


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


if __name__ == "__main__":
    main()

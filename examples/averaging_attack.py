"""Release the same texts again and again, and see what an adversary makes of all releases.

    python examples/averaging_attack.py

The adversary knows the space, the mechanism, ε, and how often each word occurs in the texts, and
takes for each word the one that is most probable after all releases (Bayes). Printed is the share
of words that are guessed right after one release, two, four and so on: with fresh noise, and with
noise that is memoized under a key. The seeds and the key are fixed, so that the table is the same
each time; never do that with private text.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.evaluation import BayesAdversary, averaging
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.text import RowReader

SENTENCES = Path(__file__).parent / "demo_sentences.txt"
KEY = bytes(range(32))
USERS = 10


def main() -> None:
    """Attack each kind of noise at each ε, and print a table."""
    options = parse_arguments()
    texts = options.texts.read_text("utf-8").splitlines()[: options.rows]
    space = EmbeddingSpace.from_pretrained(options.space)
    reader = RowReader()
    prior = Counter(word.lower() for text in texts for word in reader.read_text(text).words)
    counts = sorted({*options.counts, 1})
    print(f"{len(texts)} texts in {space!r}\n")
    print("| ε | noise | 1 release | " + " | ".join(f"{count}" for count in counts[1:]) + " |")
    print("| ---: | --- |" + " ---: |" * len(counts))
    for epsilon in options.epsilon:
        mechanism = create_mechanism(options.mechanism, space, epsilon)
        adversary = BayesAdversary(mechanism, prior)
        for name, noise in noises(counts[-1]).items():
            rows = {"text": texts, "user": [at % USERS for at in range(len(texts))]}
            releases = [DxPrivatizer(space, mechanism, **each)(rows)["text"] for each in noise]
            found = averaging(adversary, texts, releases, counts=counts)
            shares = " | ".join(f"{result.value:.1%}" for result in found)
            print(f"| {epsilon:g} | {name} | {shares} |")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--texts", type=Path, default=SENTENCES, help="a text file, one text a line")
    add("--rows", type=int, default=60, help="how many of them")
    add("--space", default="wordnet-gloss", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", default="calibrated")
    add("--epsilon", type=float, nargs="+", default=[2.0, 4.0, 6.0])
    add("--counts", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32], help="how many releases")
    return parser.parse_args()


def noises(releases: int) -> dict[str, list[dict[str, Any]]]:
    """Return by name the options of the privatizers that make the releases."""
    by_row: dict[str, Any] = {"memoize": "row", "key": KEY}
    by_user: dict[str, Any] = {"memoize": "user", "user_column": "user", "key": KEY}
    return {
        "fresh each time": [{"seed": at} for at in range(releases)],
        'memoize="row"': [by_row] * releases,
        f'memoize="user", {USERS} users': [by_user] * releases,
    }


if __name__ == "__main__":
    main()

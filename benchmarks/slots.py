"""Slots that `LowTransitionSelector` finds in SNIPS, against its BIO tags, and what that costs.

Counts are released from the 14,484 commands with several ε_g for each command; the alphabet is the
5,000 most frequent words of "wordnet-gloss". Precision and recall are over words, means of several
releases. The commands of SNIPS, repeated, stand for larger corpora.

    python benchmarks/slots.py --texts 1000000
"""

import resource
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.slots import LowTransitionSelector, Selector
from hf_dxprivacy.text import RowReader

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, None)
ALPHABET = 5_000
SENTENCES = (
    "will it be colder in ohio",
    "play techno on lastfm",
    "book a restaurant in milladore",
    "rate the firebrand one of 6 stars",
    "i want to watch manthan",
)


def snips(data: Path, split: str | None = None) -> tuple[list[list[str]], NDArray[np.bool_]]:
    """Return the words of each command, and of all words together whether they are slots.

    Args:
        data: Folder of the development datasets.
        split: "train", "validation" or "test"; all commands by default.
    """
    reader = RowReader()
    words, tags = [], []
    for example in common.jsonl(data / "slots" / "snips.jsonl.gz"):
        if split not in (None, example["split"]):
            continue
        row = reader.read(example["tokens"])
        words.append(row.words)
        tags += [example["slot_tags"][position] != "O" for position in row.positions]
    return words, np.array(tags)


def quality(
    selector: Selector, words: Sequence[Sequence[str]], tags: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return precision and recall of the slots."""
    found = np.concatenate(selector.masks(words))
    right = int((found & tags).sum())
    return right / int(found.sum()), right / int(tags.sum())


def marked(selector: LowTransitionSelector, sentence: str) -> str:
    """Return a sentence with its slots in bold."""
    words = RowReader().read_text(sentence).words
    (mask,) = selector.masks([words])
    return " ".join(f"**{w}**" if slot else w for w, slot in zip(words, mask, strict=True))


def found(
    words: list[list[str]], tags: NDArray[np.bool_], alphabet: Sequence[str], releases: int
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the rows of both tables: figures by ε_g, and sentences by ε_g."""
    figures, sentences = [], []
    for epsilon in EPSILONS:
        fits = [
            LowTransitionSelector.fit(words, epsilon=epsilon, alphabet=alphabet)
            for _ in range(releases)
        ]
        row: dict[str, object] = {"ε_g": "none" if epsilon is None else epsilon}
        row["n-grams"] = round(float(np.mean([len(fit.grams) for fit in fits])))
        for name, view in (
            ("τ=0.01", {"threshold": 0.01}),
            ("τ=0.05", {"threshold": 0.05}),
            ("coverage", {"mode": "coverage"}),
        ):
            pairs = [quality(fit.replace(**view), words, tags) for fit in fits]
            precision, recall = np.mean(pairs, axis=0)
            row[f"{name}: precision"] = float(precision.round(3))
            row[f"{name}: recall"] = float(recall.round(3))
        figures.append(row)
        sentences += [
            {"ε_g": row["ε_g"], "sentence": marked(fits[0], sentence)} for sentence in SENTENCES
        ]
    return figures, sentences


def costs(
    words: list[list[str]], alphabet: Sequence[str], space: EmbeddingSpace, texts: int, rows: int
) -> list[dict[str, object]]:
    """Return the rows of the table of times, in seconds, and memory, in MB."""
    lines = [" ".join(row) for row in words]

    def timed(name: str, size: int, work: Callable[[], object]) -> dict[str, object]:
        before = _peak()
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        return {"what": name, "texts": size, "s": took, "MB more at the peak": _peak() - before}

    selector = LowTransitionSelector.fit(words, epsilon=1.0, alphabet=alphabet)
    some = list(islice(cycle(words), rows))
    batches = [some[start : start + 1000] for start in range(0, rows, 1000)]
    privatizer = DxPrivatizer(space, "calibrated", 7.0)
    privatizer.privatize(lines)
    many = list(islice(cycle(lines), rows))
    return [
        timed("select", rows, lambda: [selector.masks(batch) for batch in batches]),
        timed("privatize every word (calibrated)", rows, lambda: privatizer.privatize(many)),
        timed(
            "fit",
            texts,
            lambda: LowTransitionSelector.fit(
                islice(cycle(lines), texts), epsilon=1.0, alphabet=alphabet
            ),
        ),
    ]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Run everything and print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--releases", type=int, default=5, help="for each ε_g")
    arguments.add_argument("--texts", type=int, default=100_000, help="to fit on")
    arguments.add_argument("--rows", type=int, default=100_000, help="to select in")
    options = arguments.parse_args()
    words, tags = snips(options.data)
    space = EmbeddingSpace.from_pretrained("wordnet-gloss")
    alphabet = space.words[:ALPHABET]
    share = float(tags.mean())
    print(f"{len(words):,} commands, {len(tags):,} words, {share:.1%} of them slots")
    figures, sentences = found(words, tags, alphabet, options.releases)
    common.report("Slots of SNIPS, by ε_g for each command", figures, options.json)
    common.report("Sentences, τ=0.01", sentences, None)
    common.report("Cost", costs(words, alphabet, space, options.texts, options.rows), None)


if __name__ == "__main__":
    main()

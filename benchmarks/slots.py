"""Slots that selectors find in SNIPS, against its BIO tags, what that costs, and a model's speed.

    python benchmarks/slots.py --texts 1000000
    python benchmarks/slots.py --held-back --model ner-model

Precision and recall are over words. First `LowTransitionSelector`: counts are released from the
14,484 commands with several ε_g for each command; the alphabet is the 5,000 most frequent words of
"wordnet-gloss". Figures are means of several releases; the commands of SNIPS, repeated, stand for
larger corpora.

With --held-back: the words of the 700 test commands; n-grams are released from the training
commands, or a tenth of them. With a model, sentences and speed are printed besides. The model is
one that examples/finetune_ner_slots.py has trained. The sentences are those of Table I of the
paper, with the tags that SNIPS has for such words; the speed is measured on sentences of
CoNLL-2003.
"""

import resource
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.slots import (
    ContentWordSelector,
    LowTransitionSelector,
    NerSelector,
    Selector,
    ShareSelector,
    TagColumnSelector,
)
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

SLOTS = {"colder", "ohio", "techno", "lastfm", "restaurant", "milladore"} | {
    *("firebrand", "one", "6", "stars", "manthan")
}
TOKENS = [line.split() for line in SENTENCES]
TAGS = [["B-slot" if word in SLOTS else "O" for word in row] for row in TOKENS]

SHARE = 0.25
RELEASED_AT = (5.0, 8.0)
SEED = 1


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


def held_back(data: Path, fits: int) -> list[dict[str, object]]:
    """Return precision and recall on the test commands, by corpus and ε_g; means of the fits."""
    train, _ = snips(data, "train")
    words, tags = snips(data, "test")
    alphabet = EmbeddingSpace.from_pretrained("wordnet-gloss").words[:ALPHABET]
    content = ContentWordSelector()
    rows = [
        {"commands": "none", "ε_g": "", "selector": "stop words"} | _row([content], words, tags)
    ]
    for part in (train[::10], train):
        for epsilon in (1.0, 3.0, None):
            low = [
                LowTransitionSelector.fit(part, epsilon=epsilon, alphabet=alphabet)
                for _ in range(fits if epsilon else 1)
            ]
            settings = {"commands": len(part), "ε_g": "none" if epsilon is None else epsilon}
            for name, combined in (
                ("low transitions", low),
                ("both", [each & content for each in low]),
                ("either", [each | content for each in low]),
            ):
                rows.append(settings | {"selector": name} | _row(combined, words, tags))
    return rows


def _row(
    selectors: Sequence[Selector], words: list[list[str]], tags: NDArray[np.bool_]
) -> dict[str, object]:
    pairs = [quality(each, words, tags) for each in selectors]
    precision, recall = np.mean(pairs, axis=0).round(3).tolist()
    return {"precision": precision, "recall": recall}


def side_by_side(selectors: dict[str, Selector]) -> list[dict[str, object]]:
    """Return the sentences with the slots of each selector in bold."""
    rows = [RowReader().read(tokens) for tokens in TOKENS]
    columns = {name: each.masks(rows, {"tags": TAGS}) for name, each in selectors.items()}
    return [
        {
            name: " ".join(
                f"**{word}**" if slot else word
                for word, slot in zip(row.words, masks[number], strict=True)
            )
            for name, masks in columns.items()
        }
        for number, row in enumerate(rows)
    ]


def released() -> list[dict[str, object]]:
    """Return one release of the sentences for each ε, with the slots of the tags."""
    columns = {}
    for epsilon in RELEASED_AT:
        privatizer = SlotPrivatizer(
            "wordnet-gloss", "calibrated", epsilon, selector=TagColumnSelector("tags"), seed=SEED
        )
        done = privatizer({"text": TOKENS, "tags": TAGS}, range(len(TOKENS)))
        columns[f"ε = {epsilon:g}"] = [" ".join(tokens) for tokens in done["text"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def speed(selector: NerSelector, data: Path, sentences: int) -> list[dict[str, object]]:
    """Return how many sentences a second the model reads, one process and its threads."""
    lines = common.jsonl(data / "ner" / "conll2003.jsonl.gz")[:sentences]
    rows = [RowReader().read(line["tokens"]) for line in lines]
    selector.masks(rows[:1])
    started, worked = time.perf_counter(), time.process_time()
    selector.masks(rows)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    return [
        {
            "sentences": len(rows),
            "sentences/s": len(rows) / seconds,
            "sentences/CPU second": len(rows) / work,
        }
    ]


def with_model(name: str, data: Path, sentences: int) -> None:
    """Print what a model finds in the sentences, a release of them, and its speed."""
    names = NerSelector(name)
    selectors = {
        "`TagColumnSelector`": TagColumnSelector("tags"),
        "`NerSelector`": names,
        "`ContentWordSelector`": ContentWordSelector(),
        "`ShareSelector`": ShareSelector(names, minimum=SHARE),
    }
    common.report("Slots in bold", side_by_side(selectors), None)
    common.report("One release with the tags", released(), None)
    common.report("Speed of the model", speed(names, data, sentences), None)


def main() -> None:
    """Run everything and print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--releases", type=int, default=5, help="for each ε_g")
    arguments.add_argument("--texts", type=int, default=100_000, help="to fit on")
    arguments.add_argument("--rows", type=int, default=100_000, help="to select in")
    arguments.add_argument("--held-back", action="store_true", help="of n-grams of other commands")
    arguments.add_argument("--model", help="folder or repository of a model, for --held-back")
    arguments.add_argument("--sentences", type=int, default=300, help="to measure its speed on")
    options = arguments.parse_args()
    if options.held_back:
        rows = held_back(options.data, options.releases)
        common.report("Slots of 700 held-back commands", rows, options.json)
        if options.model:
            with_model(options.model, options.data, options.sentences)
        return
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

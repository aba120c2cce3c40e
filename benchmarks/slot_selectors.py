"""Slots that selectors find in held-back commands and in sentences, and the speed of a model.

    python benchmarks/slot_selectors.py
    python benchmarks/slot_selectors.py --model ner-model

Precision and recall are over the words of the 700 test commands of SNIPS, against its tags; n-grams
are released from the training commands, or a tenth of them. With a model, sentences and speed are
printed besides. The model is one that examples/finetune_ner_slots.py has trained. The sentences
are those of Table I of the paper, with the tags that SNIPS has for such words; the speed is
measured on sentences of CoNLL-2003.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import common
from hf_dxprivacy import EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.slots import (
    ContentWordSelector,
    LowTransitionSelector,
    NerSelector,
    Selector,
    ShareSelector,
    TagColumnSelector,
)
from hf_dxprivacy.text import RowReader
from slots import ALPHABET, SENTENCES, quality, snips

SLOTS = {"colder", "ohio", "techno", "lastfm", "restaurant", "milladore"} | {
    *("firebrand", "one", "6", "stars", "manthan")
}
TOKENS = [line.split() for line in SENTENCES]
TAGS = [["B-slot" if word in SLOTS else "O" for word in row] for row in TOKENS]

SHARE = 0.25
EPSILONS = (5.0, 8.0)
SEED = 1


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


def marked(selectors: dict[str, Selector]) -> list[dict[str, object]]:
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
    for epsilon in EPSILONS:
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


def main() -> None:
    """Print the tables."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--model", help="folder or repository of a model")
    arguments.add_argument("--fits", type=int, default=5, help="releases of n-grams for each row")
    arguments.add_argument("--sentences", type=int, default=300, help="to measure the speed on")
    options = arguments.parse_args()
    rows = held_back(options.data, options.fits)
    common.report("Slots of 700 held-back commands", rows, options.json)
    if not options.model:
        return
    names = NerSelector(options.model)
    selectors = {
        "`TagColumnSelector`": TagColumnSelector("tags"),
        "`NerSelector`": names,
        "`ContentWordSelector`": ContentWordSelector(),
        "`ShareSelector`": ShareSelector(names, minimum=SHARE),
    }
    common.report("Slots in bold", marked(selectors), None)
    common.report("One release with the tags", released(), None)
    common.report("Speed of the model", speed(names, options.data, options.sentences), None)


if __name__ == "__main__":
    main()

"""Sentences with the slots that selectors find, what becomes of them, and the speed of a model.

    python benchmarks/slot_selectors.py --model ner-model

The model is one that examples/finetune_ner_slots.py has trained. The sentences are those of Table I
of the paper, with the tags that SNIPS has for such words; the speed is measured on sentences of
CoNLL-2003.
"""

import time
from pathlib import Path

import common
from hf_dxprivacy import SlotPrivatizer
from hf_dxprivacy.slots import (
    ContentWordSelector,
    NerSelector,
    Selector,
    ShareSelector,
    TagColumnSelector,
)
from hf_dxprivacy.text import RowReader
from slots import SENTENCES

SLOTS = {"colder", "ohio", "techno", "lastfm", "restaurant", "milladore"} | {
    *("firebrand", "one", "6", "stars", "manthan")
}
TOKENS = [line.split() for line in SENTENCES]
TAGS = [["B-slot" if word in SLOTS else "O" for word in row] for row in TOKENS]

SHARE = 0.25
EPSILONS = (5.0, 8.0)
SEED = 1


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
            "wordnet-gloss", epsilon=epsilon, selector=TagColumnSelector("tags"), seed=SEED
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
    arguments.add_argument("--model", required=True, help="folder or repository of a model")
    arguments.add_argument("--sentences", type=int, default=300, help="to measure the speed on")
    options = arguments.parse_args()
    names = NerSelector(options.model)
    selectors = {
        "`TagColumnSelector`": TagColumnSelector("tags"),
        "`NerSelector`": names,
        "`ContentWordSelector`": ContentWordSelector(),
        "`ShareSelector`": ShareSelector(names, minimum=SHARE),
    }
    common.report("Slots in bold", marked(selectors), options.json)
    common.report("One release with the tags", released(), None)
    common.report("Speed of the model", speed(names, options.data, options.sentences), None)


if __name__ == "__main__":
    main()

"""What a privatizer of sentences rests on, and releases beside what it draws."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hf_dxprivacy.guarantee import Disclosure, uncovered
from hf_dxprivacy.privatizers.disclosures import AS_IT_IS, BESIDE_THE_ROWS, memoized, seeded

if TYPE_CHECKING:
    from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer


def of_sentences(privatizer: "SentencePrivatizer", said: Sequence[Disclosure]) -> list[Disclosure]:
    """Return what a privatizer of sentences rests on and releases, with what its laws say."""
    sizes = [len(pool) for pool, _ in privatizer._parts.values()]
    unit, label_column = privatizer.unit, privatizer.label_column
    units = f"{unit}s"
    among = " among those of its label" if label_column else ""
    rests_on = (
        f"A {unit}, however long, is one input: its entry, which is the nearest of "
        f"{sum(sizes):,} public sentences{among}. Two {units} are as far apart as their entries. A "
        f"{unit} that the encoder has nothing for (empty, or in another script) has one more "
        "entry, the unknown one.",
        "The sentences, the encoder, its projection and the tree are public and were not made "
        f"from the private text, so that no {unit} changes the entry of another.",
        f"The noise of different {units} is independent; bounds of several {units} of one person, "
        "columns and releases add up.",
    )
    found = [*map(Disclosure, rests_on), *said]
    if label_column:
        counts = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        label = f"the label of each row in column {label_column!r}, one of {len(sizes)}, with "
        more = (
            f"The statement holds for {units} of one label, and nothing is promised between "
            "labels. Each figure is the largest that it is for any label."
        )
        found.append(uncovered(f"{label}{counts} entries each", more, how=AS_IT_IS))
    if unit == "sentence":
        more = "The bounds of the sentences of a text add up."
        found.append(uncovered("the number of sentences of each text", more, how=AS_IT_IS))
    if privatizer.refill:
        drawn = (
            "Numbers, dates and names of people in a sentence that came out are drawn afresh, from "
            "noise of their own; that is post-processing and changes no bound."
        )
        found.append(Disclosure(drawn))
    found += [uncovered("which texts are missing", how=AS_IT_IS), BESIDE_THE_ROWS]
    if privatizer.seed is not None:
        between = "s, whatever stands between them," if unit == "sentence" else ""
        found.append(seeded(f"the same {unit}{between}"))
    if privatizer.memoize is not None:
        found.append(memoized(privatizer.memoize, unit, "sentence", "pool"))
    return found

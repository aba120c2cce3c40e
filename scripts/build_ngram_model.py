"""Train the n-gram model of English that readability is measured by, from WordNet's texts.

    apt-get install wordnet-base
    python scripts/build_ngram_model.py

The definitions and example sentences of WordNet 3.0 (Debian's package wordnet-base) are read, about
1.5 million words. Two runs give the same arrays. `--output` writes elsewhere.
"""

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.evaluation.perplexity import (
    FILE,
    OTHER,
    SPECIAL,
    START,
    STEP,
    NgramModel,
    as_steps,
    read_words,
)
from hf_dxprivacy.text.slurs import is_slur
from hf_dxprivacy.training.wordnet import DEFAULT_PATH, LICENCE_FILE, read_licence, read_synsets

# Words that occur so often are in the vocabulary.
LEAST = 8
# Bigrams and trigrams that are stored, those that the likelihood of the texts would miss most.
BIGRAMS, TRIGRAMS = 90_000, 40_000

Array = NDArray[Any]
Ids = NDArray[np.int64]


class Level:
    """Interpolated Kneser–Ney probabilities of the n-grams of one order that occur."""

    def __init__(self, contexts: Ids, counts: Array, lower: Array) -> None:
        """Of n-grams with (m,) contexts and counts, and their probability one order below."""
        discount = (counts == 1).sum() / ((counts == 1).sum() + 2.0 * (counts == 2).sum())
        totals, kinds = np.bincount(contexts, counts), np.bincount(contexts)
        left = discount * kinds[contexts] / totals[contexts]
        self.logs: Array = np.log((counts - discount) / totals[contexts] + left * lower)
        # What the likelihood loses if the order below has to do.
        self.loss: Array = counts * (self.logs - np.log(left * lower))


def train(texts: list[list[str]]) -> NgramModel:
    """Return a pruned model of the words of texts."""
    frequency = Counter(word for words in texts for word in words)
    kept = [w for w, n in frequency.most_common() if n >= LEAST and w not in SPECIAL]
    words = (*SPECIAL, *sorted(w for w in kept if not is_slur(w)))
    size, place = len(words), {word: k for k, word in enumerate(words)}
    others = max(1, sum(word not in place for word in frequency))
    rows = [[START, *(place.get(word, OTHER) for word in row)] for row in texts]
    tokens = np.array([k for row in rows for k in row], dtype=np.int64)
    pairs = tokens[:-1] * size + tokens[1:]
    within = tokens[1:] != START
    inside = within[1:] & within[:-1]
    triples, counts3 = np.unique(pairs[:-1][inside] * size + tokens[2:][inside], return_counts=True)
    bigrams, counts2 = np.unique(pairs[within], return_counts=True)
    # Counts of lower orders are of the words that come before, but at the start, where none does.
    before = np.bincount(np.searchsorted(bigrams, triples % size**2), minlength=len(bigrams))
    first, second = np.divmod(bigrams, size)
    counts2 = np.where(first == START, counts2, before).astype(np.float64)
    unigram = np.bincount(second, minlength=size) + 0.5
    unigram[START] = 1e-6
    unigram /= unigram.sum()

    two = Level(first, counts2, unigram[second])
    u_v, last = np.divmod(triples, size)
    middle = np.searchsorted(bigrams, (u_v % size) * size + last)
    context = np.searchsorted(bigrams, u_v)
    three = Level(context, counts3.astype(np.float64), np.exp(two.logs[middle]))

    best3 = np.sort(np.argsort(-three.loss, kind="stable")[:TRIGRAMS])
    best2 = np.union1d(np.argsort(-two.loss, kind="stable")[:BIGRAMS], context[best3])
    keys = bigrams[best2], np.searchsorted(best2, context[best3]) * size + last[best3]
    return weighted(words, others, (np.log(unigram), two.logs[best2], three.logs[best3]), keys)


def weighted(
    words: tuple[str, ...], others: int, logs: tuple[Array, Array, Array], keys: tuple[Ids, Ids]
) -> NgramModel:
    """Return the model, with back-off weights by which its rounded probabilities add up to 1."""
    size = len(words)
    one, two, three = (as_steps(exact) * -STEP for exact in logs)
    first, second = np.divmod(keys[0], size)
    weights1 = as_steps(_left(first, np.exp(two), np.exp(one[second]), size)) * -STEP
    context, last = np.divmod(keys[1], size)
    pairs = second[context] * size + last
    at = np.minimum(np.searchsorted(keys[0], pairs), len(keys[0]) - 1)
    below = np.where(keys[0][at] == pairs, two[at], weights1[second[context]] + one[last])
    weights2 = _left(context, np.exp(three), np.exp(below), len(keys[0]))
    return NgramModel(words, others, (one, two, three), (weights1, weights2), keys)


def _left(contexts: Ids, stored: Array, below: Array, size: int) -> Array:
    """Return ln of what is left of 1 over what the order below leaves."""
    left = 1.0 - np.bincount(contexts, stored, minlength=size)
    room = 1.0 - np.bincount(contexts, below, minlength=size)
    logs: Array = np.log(np.clip(left, 1e-3, None) / np.clip(room, 1e-3, None))
    return logs


def main() -> None:
    """Train and save."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--wordnet", type=Path, default=Path(DEFAULT_PATH))
    arguments.add_argument("--output", type=Path, default=FILE)
    options = arguments.parse_args()
    glosses = (part for s in read_synsets(options.wordnet) for part in re.split(";", s.gloss))
    model = train([words for words in read_words(glosses) if words])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    model.save(options.output)
    licence = options.output.with_name(LICENCE_FILE)
    licence.write_text(read_licence(options.wordnet), encoding="utf-8")
    size = options.output.stat().st_size
    print(f"{len(model.words):,} words, {size:,} bytes")


if __name__ == "__main__":
    main()

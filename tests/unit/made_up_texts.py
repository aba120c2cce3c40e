"""Texts by made-up people with habits, of words that a space has."""

from collections.abc import Sequence

import numpy as np

Texts = tuple[list[str], list[str]]


def texts_by_author(words: Sequence[str], authors: int, each: int, length: int, seed: int) -> Texts:
    """Return texts and their authors, each of whom has favourites among the words."""
    rng = np.random.default_rng(5)
    favour = 1.0 / np.arange(1.0, len(words) + 1.0)
    habits = [rng.permutation(favour / favour.sum()) for _ in range(authors)]
    rng = np.random.default_rng(seed)
    texts, names = [], []
    for author, habit in enumerate(habits):
        for _ in range(each):
            texts.append(" ".join(rng.choice(words, length, p=habit)))
            names.append(f"author {author}")
    return texts, names

"""Small pools of made-up sentences over random word vectors."""

from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy import EmbeddingSpace, SentencePool

SUBJECTS = ("soup", "waiter", "film", "doctor", "garden", "train")
SAYINGS = (
    "the {} was cold and late",
    "i liked the {} a lot",
    "please bring me another {} now",
    "nobody knew where the {} went",
    "a very old {} in the city",
)
SENTENCES = [saying.format(subject) for saying in SAYINGS for subject in SUBJECTS]
LABELS = [subject for _ in SAYINGS for subject in SUBJECTS]


def small_words(folder: Path | None = None) -> EmbeddingSpace:
    """Return vectors of all words of the sentences; read from a folder, if there is one."""
    known = sorted({word for sentence in SENTENCES for word in sentence.split()})
    space = EmbeddingSpace.from_vectors(
        known, np.random.default_rng(5).normal(size=(len(known), 8))
    )
    if folder is None:
        return space
    space.save_pretrained(folder)
    return EmbeddingSpace.from_pretrained(folder)


def small_pool(words: EmbeddingSpace | None = None, **arguments: Any) -> SentencePool:
    """Return the pool of all sentences, with their subjects as labels."""
    arguments = {"dimensions": 6, "labels": LABELS, "progress": False, **arguments}
    return SentencePool.from_sentences(SENTENCES, words or small_words(), **arguments)

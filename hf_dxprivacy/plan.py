"""What is to become of each word: drawn anew, kept, or treated as out of vocabulary."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from itertools import compress
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import (
    OTHER_FORMS,
    TextRow,
    apply_case,
    case_pattern,
    plain_apostrophes,
)

OutOfVocabulary = Literal["centroid", "drop", "keep"]
Case = Literal["lower", "preserve"]


@dataclass(frozen=True)
class WordCounts:
    """How many words met which fate. A function of the private text: do not release it.

    Attributes:
        replaced: Drawn anew, and another word came out.
        unchanged: Drawn anew, and the same word came out.
        out_of_vocabulary: Not in the space; treated as ``oov=`` says.
        kept: Released as they are because the caller asked for it (stop words).
    """

    replaced: int = 0
    unchanged: int = 0
    out_of_vocabulary: int = 0
    kept: int = 0

    def __add__(self, other: "WordCounts") -> "WordCounts":
        names = [field.name for field in fields(self)]
        return WordCounts(**{n: getattr(self, n) + getattr(other, n) for n in names})


@dataclass(frozen=True)
class Plan:
    """What is to become of each word of a batch.

    Attributes:
        ids: (m,) int64 rows of the vocabulary; −1 for a word that it lacks.
        kept: (m,) whether the word is released as it is, because the caller asked for it.
        drawn: (m,) whether the word is drawn anew.
    """

    ids: NDArray[np.int64]
    kept: NDArray[np.bool_]
    drawn: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        space: EmbeddingSpace,
        stopwords: AbstractSet[str],
        oov: OutOfVocabulary,
        slots: NDArray[np.bool_] | None = None,
    ) -> "Plan":
        """Look the words up: as they are, then in `OTHER_FORMS`.

        Args:
            words: (m,) words.
            space: Where to look.
            stopwords: Words that are kept.
            oov: What becomes of words out of vocabulary.
            slots: (m,) which words are not kept anyway; all by default.
        """
        ids = space.ids(words)
        missing = np.flatnonzero(ids < 0).tolist()
        for form in OTHER_FORMS:
            ids[missing] = space.ids([form(words[i]) for i in missing])
            # In ASCII the first form changes all that any of them does.
            missing = [i for i in missing if not words[i].isascii() and ids[i] < 0]
        kept = np.zeros(len(words), dtype=np.bool_) if slots is None else ~slots
        if stopwords:
            kept |= np.array([plain_apostrophes(w) in stopwords for w in words], dtype=np.bool_)
        drawn = ~kept if oov == "centroid" else ~kept & (ids >= 0)
        return cls(ids, kept, drawn)

    def released(
        self,
        words: Sequence[str],
        outputs: NDArray[np.int64],
        vocabulary: Sequence[str],
        oov: OutOfVocabulary,
        case: Case,
    ) -> list[str | None]:
        """Return what takes the place of each word; None for one that is dropped.

        Args:
            words: (m,) the words that were planned.
            outputs: Rows of the vocabulary that the words drawn anew have become, in order.
            vocabulary: The words of the space.
            oov: What becomes of words out of vocabulary.
            case: "lower", or "preserve" to copy the letter case of the original.
        """
        drawn = [vocabulary[output] for output in outputs.tolist()]
        if case == "preserve":
            drawn = [*map(apply_case, drawn, map(case_pattern, compress(words, self.drawn)))]
        released = np.array(words, dtype=object)
        released[self.drawn] = drawn
        if oov == "drop":
            released[~self.drawn & ~self.kept] = None
        result: list[str | None] = released.tolist()
        return result

    def visible(self, row: TextRow, oov: OutOfVocabulary, case: Case) -> list[str]:
        """Return what a release of a text shows for certain.

        Args:
            row: The text whose words were planned.
            oov: What becomes of words out of vocabulary.
            case: "lower" or "preserve".

        Returns:
            The text in pieces, with a gap for each word drawn anew, and in each gap the word's
            letter case if that is preserved.
        """
        visible = [row.carrier[0]]
        for word, drawn, kept, after in zip(
            row.words, self.drawn, self.kept, row.carrier[1:], strict=True
        ):
            if drawn:
                visible += [case_pattern(word) if case == "preserve" else "", after]
            else:
                visible[-1] += (word if kept or oov == "keep" else "") + after
        return visible

    def counts(self, outputs: NDArray[np.int64]) -> WordCounts:
        """Count the fates, given the outputs of the words drawn anew."""
        inputs = self.ids[self.drawn]
        unchanged = int((outputs == inputs).sum())
        return WordCounts(
            replaced=int((inputs >= 0).sum()) - unchanged,
            unchanged=unchanged,
            out_of_vocabulary=int(((self.ids < 0) & ~self.kept).sum()),
            kept=int(self.kept.sum()),
        )

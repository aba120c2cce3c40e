"""For each released word the probability that it is the original, from the release alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms.base import Reals
from hf_dxprivacy.privatizers.batch import Case, Ids, Mask, OutOfVocabulary
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import Row, TextRow, plain_apostrophes
from hf_dxprivacy.text.shapes import chances, is_rendered
from hf_dxprivacy.verify.posterior import PosteriorLaw, largest


class WordPosterior(NamedTuple):
    """What a released word says of the word that it came from.

    Attributes:
        word: As it was released: a word, the id of a token, or a sentence.
        probability: That the original was the same word. 1.0 for words that are released as they
            are, 0.0 for random words of a shape (numbers, names), which are drawn afresh; None for
            what this privatizer does not release.
        originals: The likeliest originals with their probabilities, if they were asked for.
    """

    word: Any
    probability: float | None
    originals: tuple[tuple[Any, float], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedWords:
    """The words of a release, row after row.

    Attributes:
        rows: The words as they were released; None for a missing row.
        ids: (m,) int64 rows of the space; −1 for what it lacks.
        known: (m,) float64 probabilities that follow from no law; NaN for the others.
        ways: For each word that several entries of the space may be released as, such as "7", with
            what probability each of them is.
    """

    rows: Sequence[Sequence[Any] | None]
    ids: Ids
    known: Reals
    ways: Mapping[Any, Mapping[int, float]] = field(default_factory=dict)

    def posteriors(
        self, law: PosteriorLaw, names: Sequence[Any], k: int
    ) -> list[list[WordPosterior] | None]:
        """Return for each row what its words say.

        Args:
            law: Of the mechanism, under the prior.
            names: (V,) what stands for each row of the space in a release.
            k: How many originals to name.
        """
        shares, drawn = self.known.copy(), (self.ids >= 0) & (self.known != 1.0)
        own = drawn & np.isnan(self.known)
        shares[own] = law.unchanged(self.ids[own])
        originals: list[tuple[tuple[Any, float], ...]] = [()] * len(shares)
        if k:
            best, likely = law.originals(self.ids[drawn], k)
            for at, rows, found in zip(np.flatnonzero(drawn), best, likely, strict=True):
                pairs = zip(rows.tolist(), found.tolist(), strict=True)
                originals[at] = tuple((names[row], share) for row, share in pairs if share > 0.0)
        mixed = {word: law.of_mixture(ways) for word, ways in self.ways.items()}
        words = [word for row in self.rows for word in row or ()] if mixed else []
        for place, word in enumerate(words):
            if word in mixed and drawn[place]:
                joint = mixed[word]
                shares[place] = joint[self.ids[place]] if own[place] else shares[place]
                likeliest = largest(joint[None], min(k, len(joint)))[0].tolist() if k else []
                named = ((names[row], float(joint[row])) for row in likeliest)
                originals[place] = tuple(pair for pair in named if pair[1] > 0.0)
        values = [None if math.isnan(share) else share for share in shares.tolist()]
        lengths = [len(row or ()) for row in self.rows]
        starts = pairwise(np.cumsum([0, *lengths]).tolist())
        return [
            None
            if row is None
            else [*map(WordPosterior, row, values[start:stop], originals[start:stop])]
            for row, (start, stop) in zip(self.rows, starts, strict=True)
        ]


def read_words(
    rows: Sequence[Row | None],
    space: EmbeddingSpace,
    masks: Sequence[Sequence[bool] | None] | None,
    stopwords: frozenset[str],
    oov: OutOfVocabulary,
    case: Case,
) -> ReleasedWords:
    """Look up the words of released texts or lists of tokens.

    Args:
        rows: Segmented cells of the release.
        space: Of the privatizer.
        masks: For each row which of its words, or tokens, are of slots.
        stopwords: This and the next two are those of the privatizer.
        oov: See there.
        case: See there.
    """
    words = [word for row in rows if row is not None for word in row.words]
    ids = look_up_rows(rows, space)
    never: list[int] = []
    ways: Mapping[str, Mapping[int, float]] = {}
    if space.shapes:
        # A rendered name may stand where no word is taken for one, and look like a word in another
        # letter case, in which none is released.
        exact, any_case = space.ids(words), case == "preserve"
        (name,) = space.ids(["<name>"])
        for at in np.flatnonzero(exact < 0).tolist():
            if not (any_case and ids[at] >= 0) and is_rendered(words[at], ["<name>"], any_case):
                ids[at] = name
            elif ids[at] >= 0 and space.is_shape[ids[at]]:
                never += [] if is_rendered(words[at], space.shapes, any_case) else [at]
        ways = _ways(words, ids, space, any_case)
    known = np.full(len(words), np.nan)
    known[(ids >= 0) & space.is_shape[ids]] = 0.0
    if oov == "keep":
        known[ids < 0] = 1.0
    ids[never], known[never] = -1, np.nan
    if stopwords and oov != "keep":
        for at in np.flatnonzero(ids < 0).tolist():
            known[at] = 1.0 if plain_apostrophes(words[at]) in stopwords else np.nan
    if masks is not None:
        known[~_in_slots(rows, masks)] = 1.0
    return ReleasedWords([None if row is None else row.words for row in rows], ids, known, ways)


def _ways(
    words: Sequence[str], ids: Ids, space: EmbeddingSpace, any_case: bool
) -> dict[str, dict[int, float]]:
    """Return `ReleasedWords.ways`; see there."""
    ways: dict[str, dict[int, float]] = {}
    for word, row in dict(zip(words, ids.tolist(), strict=True)).items():
        # A shape without digits and capitals is written as a given word once in 26^8 times.
        if row >= 0 and (word[:1].isupper() or any(map(str.isdecimal, word))):
            of_shapes = chances(word, space.shapes, any_case)
            found = dict(zip(space.ids([*of_shapes]).tolist(), of_shapes.values(), strict=True))
            found |= {} if space.is_shape[row] else {row: 1.0}
            ways |= {word: found} if len(found) > 1 else {}
    return ways


def _in_slots(rows: Sequence[Row | None], masks: Sequence[Sequence[bool] | None]) -> Mask:
    """Return (m,) whether each word is of a slot, from masks of words or of tokens."""
    found: list[bool] = []
    if len(rows) != len(masks):
        raise InvalidValueError(f"expected a mask for each of {len(rows)} rows, got {len(masks)}")
    for at, (row, mask) in enumerate(zip(rows, masks, strict=True)):
        if row is None:
            continue
        size = len(row) if isinstance(row, TextRow) else len(row.tokens)
        if mask is None or len(mask) != size:
            raise InvalidValueError(
                f"expected a mask of {size} words in row {at}, got "
                f"{'none' if mask is None else len(mask)}; mask_column= writes them"
            )
        found += mask if isinstance(row, TextRow) else [mask[place] for place in row.positions]
    return np.array(found, dtype=np.bool_)


def kept_rows(space: EmbeddingSpace, stopwords: frozenset[str]) -> Ids:
    """Return the rows of the words that are released as they are."""
    if not stopwords:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero([plain_apostrophes(word) in stopwords for word in space.words])


def require_texts(released: Any) -> tuple[list[Any], bool]:
    """Return the cells of a release, and whether it is a single text."""
    if isinstance(released, str):
        return [released], True
    if (
        isinstance(released, bytes)
        or not hasattr(released, "__iter__")
        or hasattr(released, "keys")
    ):
        raise InvalidTypeError(
            f"expected a released text or a sequence of them, got a {type(released).__name__}; "
            'hand over a column, as in privatizer.posterior(released["text"])'
        )
    return list(released), False

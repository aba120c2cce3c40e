"""A release read back: the outputs of the mechanism that its words may be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, singledispatch
from itertools import chain
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms.base import Reals
from hf_dxprivacy.privatizers.batch import Case, Ids, Mask, OutOfVocabulary, RowIds
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import KEPT, TokenPrivatizer, joined
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import Row, TextRow, plain_apostrophes, token_vocabulary
from hf_dxprivacy.text.segmenters import WORDS
from hf_dxprivacy.text.shapes import chances, is_rendered


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


@singledispatch
def read_release(privatizer: Privatizer, released: Any, masks: Any) -> tuple[ReleasedWords, bool]:
    """Look up the words of a release, and tell whether it is a single text.

    Args:
        privatizer: What released it.
        released: A text or several, lists of tokens, token ids, sentences; None passes through.
        masks: With a `SlotPrivatizer`, the column that ``mask_column=`` names.

    Raises:
        InvalidValueError: If the release does not show its words, or masks are missing or too many.
        InvalidTypeError: If `released` is of the wrong type.
    """
    raise InvalidTypeError(f"expected a privatizer, got a {type(privatizer).__name__}")


@read_release.register
def _of_texts(privatizer: DxPrivatizer, released: Any, masks: Any) -> tuple[ReleasedWords, bool]:
    if (privatizer._selector is None) != (masks is None):
        raise InvalidValueError(
            "expected masks= with a privatizer of slots, and with no other: the column that "
            "mask_column= names says which words of a release are of slots"
        )
    cells, single = require_texts(released)
    if privatizer.segmenter != WORDS and any(isinstance(cell, str) for cell in cells):
        raise InvalidValueError(
            f"the words of a text that was split by {privatizer.segmenter} touch, so that the "
            "release does not show which they are; release lists of tokens, and hand over these"
        )
    rows = RowIds().read(cells, "released", privatizer._reader.read)
    masks = [masks] if single and masks is not None else masks
    own = privatizer.stopwords, privatizer.oov, privatizer.case
    return read_words(rows, privatizer.space, masks, *own), single


@read_release.register
def _of_tokens(
    privatizer: TokenPrivatizer, released: Any, masks: Any
) -> tuple[ReleasedWords, bool]:
    """Look up token ids; special ones are kept, and of the others only those of the space."""
    _require_no_masks(masks, "token ids")
    single = token_vocabulary.is_row(released)
    read = partial(token_vocabulary.read_row, size=len(privatizer._rows))
    rows = RowIds().read([released] if single else released, privatizer.ids_column, read)
    ids = privatizer._rows[joined(rows)].astype(np.int64)
    shown = [None if row is None else row.tolist() for row in rows]
    return ReleasedWords(shown, ids, np.where(ids == KEPT, 1.0, np.nan)), single


@read_release.register
def _of_sentences(
    privatizer: SentencePrivatizer, released: Any, masks: Any
) -> tuple[ReleasedWords, bool]:
    """Look up sentences; the original of an entry is the entry that a text was nearest to."""
    _require_no_masks(masks, "sentences")
    if privatizer.label_column is not None:
        raise InvalidValueError(
            f"with label_column={privatizer.label_column!r} the law depends on the label of a row: "
            "ask a SentencePrivatizer over pool.with_label(label), for the rows of each"
        )
    cells, single = require_texts(released)
    rows = RowIds().read(cells, "released", privatizer._pieces)
    ids = privatizer.space.ids([*chain.from_iterable(row or () for row in rows)])
    return ReleasedWords(rows, ids, np.full(len(ids), np.nan)), single


def _require_no_masks(masks: Any, units: str) -> None:
    if masks is not None:
        raise InvalidValueError(f"masks= is for a SlotPrivatizer, got it with {units}")


def released_names(privatizer: Privatizer) -> Sequence[Any]:
    """Return (V,) what stands for each row of the space in a release."""
    if isinstance(privatizer, TokenPrivatizer):
        return [*map(int, privatizer._tokens)]
    return privatizer.space.words


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

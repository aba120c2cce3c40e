"""A text and its release side by side: what changed, and how likely that was for each word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.plan import Plan
from hf_dxprivacy.privatizer import DxPrivatizer
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.text import RowReader

# Words whose figures are shown, the first ones of a text; and the outputs shown for each.
WORDS, OUTPUTS = 20, 5
# Draws of each word where the law is not known.
RUNS = 500


@dataclass(frozen=True)
class Piece:
    """A part of a release: a word, or what stands between two.

    Attributes:
        text: The part.
        changed: Whether it is a word that took the place of another one.
    """

    text: str
    changed: bool = False


@dataclass(frozen=True)
class Output:
    """A word that another one may become.

    Attributes:
        word: The output.
        probability: That it comes out, or its share of the draws.
        distance: From the input, in the metric of the space.
    """

    word: str
    probability: float
    distance: float


@dataclass(frozen=True)
class WordFigures:
    """What a mechanism does to one word.

    Attributes:
        word: The input.
        kept: N_w; None for a word out of vocabulary, which never stays.
        spread: S_w, or the number of different outputs in `RUNS` draws.
        outputs: The likeliest outputs but the word itself.
    """

    word: str
    kept: float | None
    spread: int | None
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Released:
    """One release of a text, for the eyes of whoever has the text.

    Attributes:
        pieces: The released text in parts.
        words: How many words there are.
        changed: How many of them are others now.
        figures: Of the first `WORDS` different words.
        different: How many different words there are.
        exact: Whether the figures are exact.
        guarantee: As it prints.
    """

    pieces: tuple[Piece, ...]
    words: int
    changed: int
    figures: tuple[WordFigures, ...]
    different: int
    exact: bool
    guarantee: str


def release_text(text: str, mechanism: Mechanism) -> Released:
    """Privatize a text, and work out what its words may become.

    Args:
        text: The text.
        mechanism: What draws the words anew. Mechanisms remember what they have drawn from, so
            take a new one for each text that nothing is to be kept of.
    """
    privatizer = DxPrivatizer(mechanism.space, mechanism)
    row = RowReader().read_text(text)
    # A list of tokens comes back word for word, whatever the vocabulary has in its words.
    outputs = [str(token) for token in privatizer.privatize([row.words])[0] or ()]
    ids = Plan.of(row.words, mechanism.space, frozenset(), "centroid").ids
    before = [mechanism.space.words[i] if i >= 0 else None for i in ids.tolist()]
    changed = [old != new for old, new in zip(before, outputs, strict=True)]
    words = map(Piece, outputs, changed)
    between = map(Piece, row.carrier[1:])
    first = dict(zip([word.lower() for word in row.words], ids.tolist(), strict=True))
    return Released(
        (Piece(row.carrier[0]), *chain.from_iterable(zip(words, between, strict=True))),
        len(outputs),
        sum(changed),
        tuple(_figures(mechanism, list(first.items())[:WORDS])),
        len(first),
        isinstance(mechanism, ExponentialMechanism),
        str(privatizer.guarantee),
    )


def _figures(mechanism: Mechanism, words: Sequence[tuple[str, int]]) -> Iterable[WordFigures]:
    known = [i for _, i in words if i >= 0]
    statistics = _statistics(mechanism, known) if known else {}
    ids = np.array([i for _, i in words], dtype=np.int64)
    for (word, i), law in zip(words, _laws(mechanism, ids), strict=True):
        kept, spread = statistics.get(i, (None, None))
        yield WordFigures(word, kept, spread, _likeliest(mechanism, i, law))


def _statistics(mechanism: Mechanism, ids: Sequence[int]) -> dict[int, tuple[float, int]]:
    """Return N_w and S_w by word."""
    words = [mechanism.space.words[i] for i in ids]
    found = privacy_statistics(mechanism, words, RUNS, progress=False)
    spread = found.support if found.exact else found.distinct
    pairs = zip(found.kept.tolist(), spread.tolist(), strict=True)
    return {i: (kept, int(size)) for i, (kept, size) in zip(ids, pairs, strict=True)}


def _laws(mechanism: Mechanism, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (m, V) probabilities of the outputs, or their shares of the draws."""
    if isinstance(mechanism, ExponentialMechanism):
        return mechanism.probabilities(ids)
    drawn = mechanism.sample(np.repeat(ids, RUNS), process_generator()).reshape(-1, RUNS)
    size = len(mechanism.space)
    counts = [np.bincount(row, minlength=size) for row in drawn]
    return np.array(counts, dtype=np.float64).reshape(-1, size) / RUNS


def _likeliest(mechanism: Mechanism, word: int, law: NDArray[np.float64]) -> tuple[Output, ...]:
    order = np.argsort(-law, kind="stable")[: OUTPUTS + 1]
    rows = [row for row in order.tolist() if row != word and law[row] > 0.0][:OUTPUTS]
    space = mechanism.space
    distances = space.pair_distances(np.full(len(rows), word), np.array(rows, dtype=np.int64))
    return tuple(
        Output(space.words[row], float(law[row]), float(distance))
        for row, distance in zip(rows, distances, strict=True)
    )

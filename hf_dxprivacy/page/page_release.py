"""What the demo page shows of a release: pairs of words, figures, and the guarantee."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.calibration.epsilons import epsilon_grid
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import MECHANISMS, ExactMechanism, ExponentialLaw, Mechanism
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.publishing.released_words import read_words
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.report.card_measurements import ready_mechanism
from hf_dxprivacy.sentences import SentencePool, split_sentences
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer, Unit
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader, TokenRow

# Positions of the slider between its ends, and what is offered before other mechanisms.
POSITIONS = 60
FIRST = ("hierarchical", "calibrated")
# Words whose figures are shown, the first ones of a text; and the outputs shown for each.
WORDS, OUTPUTS = 20, 5
# Draws of each word where the law is not known: for its figures, and while the slider moves.
RUNS, FEW_RUNS = 500, 60
# Different pairs that have a tooltip, and the neighbours on it.
TOOLTIPS, NEIGHBOURS = 400, 5
# A word is near to another if it is among so many nearest ones, and far beyond so many.
NEAR, FAR = 100, 1000
# Words of a text by which the slider says what happens, and these words where there is no text.
LIVE = 40
USUAL = "the soup was cold and a waiter rude but my doctor called about it in march"

Ids = NDArray[np.int64]


class Range(NamedTuple):
    """Values of ε to choose from: the ends, the distance between two, and where to begin."""

    low: float
    high: float
    step: float
    start: float


def offered_ranges(space: EmbeddingSpace) -> dict[str, Range]:
    """Return the mechanisms that suit a space and start at once, the default one first.

    The values of ε are those on the grid of the model card: from where hardly a word stays to
    where nearly all do.
    """

    def fails(name: str, epsilon: float) -> bool:
        try:
            ready_mechanism(space, name, epsilon)
        except InvalidValueError:
            return True
        return False

    ranges = {}
    for name in dict.fromkeys((*FIRST, *MECHANISMS)):
        if MECHANISMS[name].suits(space):
            grid = epsilon_grid(space, name, few=True)
            # Some noise exists from an ε on.
            while grid and fails(name, grid[0]):
                del grid[0]
            if grid:
                step = float(f"{(grid[-1] - grid[0]) / POSITIONS:.3g}")
                ranges[name] = Range(grid[0], grid[-1], step, grid[len(grid) // 2])
    return ranges


class Tooltip(NamedTuple):
    """What is told of a pair of an original and what was released for it."""

    original: str
    released: str
    kind: str  # "stays", "near", "middle", "far", or "unknown" for an original the space lacks
    rank: int | None  # the released one is the rank-th nearest to the original
    neighbours: tuple[str, ...]
    posterior: float | None  # that a reader gives it, who sees the release alone
    entry: str  # what a sentence was looked up as


class Span(NamedTuple):
    """A part of a text: what stands between two words, or a word with its kind and its tooltip."""

    text: str
    kind: str = ""
    tooltip: int | None = None


class Output(NamedTuple):
    """A word that another one may become: its probability or share of the draws, and distance."""

    word: str
    probability: float
    distance: float


class WordFigures(NamedTuple):
    """Statistics and likeliest outputs of one word."""

    word: str
    kept: float | None  # N_w; None for a word out of vocabulary, which never stays
    spread: int | None  # S_w, or the number of different outputs in `RUNS` draws
    outputs: tuple[Output, ...]  # the likeliest but the word itself


class ReleaseView(NamedTuple):
    """One release of a text, for the owner of the text only."""

    original: tuple[Span, ...]
    spans: tuple[Span, ...]
    tooltips: tuple[Tooltip, ...]
    entries: str  # "words" or "sentences"
    words: int  # how many there are
    changed: int  # how many of them are others now
    unknown: tuple[str, ...]  # what the space lacks, each once
    figures: tuple[WordFigures, ...]  # of the first `WORDS` different words
    different: int  # how many different words there are
    exact: bool  # whether the figures are exact, and not shares of draws
    doubts: bool  # whether the tooltips have posteriors
    lines: tuple[str, ...]  # the guarantee in plain words
    guarantee: str  # as it prints


def release_text(text: str, mechanism: Mechanism) -> ReleaseView:
    """Privatize a text word by word, and work out what its words may become.

    Args:
        text: The text.
        mechanism: What draws the words anew. Mechanisms remember what they have drawn from, so
            take a new one for each text that nothing is to be kept of.
    """
    space = mechanism.space
    privatizer = DxPrivatizer(space, mechanism)
    row = RowReader().read_text(text)
    # A list of tokens comes back word for word, whatever the vocabulary has in its words.
    outputs = [str(token) for token in privatizer.privatize([row.words])[0] or ()]
    before = look_up_rows([row], space)
    new = TokenRow(outputs, [*range(len(outputs))], [*outputs])  # also punctuation that came out
    after = read_words([new], space, None, frozenset(), "centroid", "lower").ids
    # A random word of a shape is drawn afresh, and never the original one.
    same = [
        row >= 0 and not space.is_shape[row] and space.words[row] == word
        for row, word in zip(before.tolist(), outputs, strict=True)
    ]
    tooltips, at = _tooltips(row.words, outputs, before, after, same, privatizer)
    original, released = (
        (Span(row.separators[0]), *_between(_spans(words, at, tooltips, same), row.separators[1:]))
        for words in (row.words, outputs)
    )
    first = dict(zip([word.lower() for word in row.words], before.tolist(), strict=True))
    figures = tuple(_figures(mechanism, dict(list(first.items())[:WORDS])))
    return ReleaseView(
        original,
        released,
        tuple(tooltips),
        "words",
        len(same),
        len(same) - sum(same),
        tuple(dict.fromkeys(w for w, i in zip(row.words, before, strict=True) if i < 0)),
        figures,
        len(first),
        *_stated(privatizer),
    )


def _spans(
    texts: Sequence[str],
    at: Sequence[int | None],
    tooltips: Sequence[Tooltip],
    same: Sequence[bool],
) -> tuple[Span, ...]:
    """Return words or sentences with their kinds; beyond the last tooltip, whether they changed."""
    return tuple(
        Span(text, tooltips[i].kind if i is not None else "stays" if kept else "changed", i)
        for text, i, kept in zip(texts, at, same, strict=True)
    )


def _stated(privatizer: Privatizer) -> tuple[bool, bool, tuple[str, ...], str]:
    mechanism, guarantee = privatizer.mechanism, privatizer.guarantee
    exact = isinstance(mechanism, ExactMechanism)
    return exact, _is_quick(mechanism), guarantee.plain, str(guarantee)


def _between(words: Sequence[Span], separators: Sequence[str]) -> Iterator[Span]:
    yield from chain.from_iterable(zip(words, map(Span, separators), strict=True))


def sentence_unit() -> Unit:
    """Return "sentence" where texts can be split, and "text" where the extra for it is missing."""
    return "sentence" if find_spec("sentencex") else "text"


def release_sentences(text: str, pool: SentencePool, mechanism: Mechanism) -> ReleaseView:
    """Privatize a text sentence by sentence, and tell how near each public one is.

    Args:
        text: The text.
        pool: Of the sentences that may come out.
        mechanism: Over its space.
    """
    unit = sentence_unit()
    texts = (split_sentences(text) or [text]) if unit == "sentence" else [text]
    # One sentence is one text: the law is the same as that of all sentences of one.
    outputs = [str(each) for each in SentencePrivatizer(pool, mechanism).privatize(texts)]
    privatizer = SentencePrivatizer(pool, mechanism, unit=unit)
    before, after = pool.look_up(texts), pool.space.ids(outputs)
    same = (before == after).tolist()
    tooltips, at = _tooltips(texts, outputs, before, after, same, privatizer)
    original, released = (_spans(each, at, tooltips, same) for each in (texts, outputs))
    unknown = tuple(each for each, row in zip(texts, before, strict=True) if row < 0)
    return ReleaseView(
        original,
        released,
        tuple(tooltips),
        "sentences",
        len(same),
        len(same) - sum(same),
        unknown,
        (),
        len(set(texts)),
        *_stated(privatizer),
    )


def _is_quick(mechanism: Mechanism) -> bool:
    """Tell whether posteriors take no time quadratic in the vocabulary."""
    return isinstance(mechanism, ExponentialLaw) and mechanism.own_metric


def _tooltips(
    originals: Sequence[str],
    outputs: Sequence[str],
    before: Ids,
    after: Ids,
    same: Sequence[bool],
    privatizer: Privatizer,
) -> tuple[list[Tooltip], list[int | None]]:
    """Return the tooltips of the first different pairs, and which of them each place has."""
    space, pairs = privatizer.space, [*zip(originals, outputs, strict=True)]
    numbers: dict[tuple[str, str], int] = {}
    for pair in pairs:
        if len(numbers) < TOOLTIPS:
            numbers.setdefault(pair, len(numbers))
    first = {number: pairs.index(pair) for pair, number in numbers.items()}
    places = [first[number] for number in range(len(first))]
    found: list[Any] = [None] * len(places)
    if _is_quick(privatizer.mechanism):
        of_words = _of_words(privatizer)
        rows = privatizer.posterior([[outputs[at]] if of_words else outputs[at] for at in places])
        found = [row[0].probability if row and len(row) == 1 else None for row in rows]
    near = _neighbourhoods(space, before[places], after[places])
    tooltips = []
    for at, chance, (rank, around) in zip(places, found, near, strict=True):
        kind = "stays" if same[at] else "unknown" if before[at] < 0 else _kind(rank)
        entry = "" if _of_words(privatizer) or before[at] < 0 else space.words[before[at]]
        tooltips.append(Tooltip(originals[at], outputs[at], kind, rank, around, chance, entry))
    return tooltips, [numbers.get(pair) for pair in pairs]


def _of_words(privatizer: Privatizer) -> bool:
    return isinstance(privatizer, DxPrivatizer)


def _kind(rank: int | None) -> str:
    if rank is None or rank > FAR:
        return "far"
    return "near" if rank <= NEAR else "middle"


def _neighbourhoods(
    space: EmbeddingSpace, before: Ids, after: Ids
) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    """Yield for pairs of rows the rank of the second beside the first, and the first's nearest."""
    count = min(NEIGHBOURS, len(space) - 1)
    for old, new in zip(before.tolist(), after.tolist(), strict=True):
        if old < 0:
            yield None, ()
            continue
        distances = space.distances(np.array([old]))[0]
        distances[old] = np.inf
        nearest = np.argpartition(distances, count - 1)[:count] if count else np.empty(0, np.int64)
        order = nearest[np.argsort(distances[nearest], kind="stable")].tolist()
        rank = None if new < 0 else 1 + int((distances < distances[new]).sum())
        yield 0 if new == old else rank, tuple(space.words[row] for row in order)


def _figures(mechanism: Mechanism, words: Mapping[str, int]) -> Iterator[WordFigures]:
    """Yield the figures of words, given with their rows."""
    space = mechanism.space
    ids = np.array([*words.values()], dtype=np.int64)
    statistics: dict[int, tuple[float, int]] = {}
    if known := ids[ids >= 0].tolist():
        found = privacy_statistics(mechanism, [space.words[i] for i in known], RUNS, progress=False)
        spread = (found.support if found.exact else found.distinct).astype(int).tolist()
        statistics = dict(zip(known, zip(found.kept.tolist(), spread, strict=True), strict=True))
    for (word, i), law in zip(words.items(), _laws(mechanism, ids, RUNS), strict=True):
        order = np.argsort(-law, kind="stable")[: OUTPUTS + 1].tolist()
        rows = [row for row in order if row != i and law[row] > 0.0][:OUTPUTS]
        near = space.pair_distances(np.full(len(rows), i), np.array(rows, dtype=np.int64)).tolist()
        outputs = [
            Output(space.words[r], float(law[r]), d) for r, d in zip(rows, near, strict=True)
        ]
        kept, size = statistics.get(i, (None, None))
        yield WordFigures(word, kept, size, tuple(outputs))


def _laws(mechanism: Mechanism, ids: Ids, runs: int) -> NDArray[np.float64]:
    """Return (m, V) probabilities of the outputs, or shares of draws where no law is known."""
    if isinstance(mechanism, ExactMechanism):
        return mechanism.probabilities(ids)
    drawn = mechanism.sample(np.repeat(ids, runs), process_generator()).reshape(-1, runs)
    counts = [np.bincount(row, minlength=len(mechanism.space)) for row in drawn]
    return np.array(counts, dtype=np.float64).reshape(len(ids), len(mechanism.space)) / runs


def shares_of_ten(text: str, mechanism: Mechanism, pool: SentencePool | None = None) -> list[int]:
    """Return how many of ten words stay, become near ones, and become others; they add up to 10.

    Nothing is released: these are means over the first words, or sentences, of a text.

    Args:
        text: The text; usual words stand in for an empty one.
        mechanism: What would draw the words anew.
        pool: Where sentences are looked up; None for words.
    """
    space, text = mechanism.space, text if text.strip() else USUAL
    if pool is None:
        found = look_up_rows([RowReader().read_text(text)], space)
    else:
        split = sentence_unit() == "sentence"
        found = pool.look_up((split_sentences(text) if split else []) or [text])
    counts = dict(Counter(found.tolist()).most_common(LIVE))
    ids, weights = np.array([*counts], dtype=np.int64), np.array([*counts.values()], dtype=float)
    known = ids >= 0
    stay, near = np.zeros(len(ids)), np.zeros(len(ids))
    if known.any():
        laws = _laws(mechanism, ids[known], FEW_RUNS)
        distances = space.distances(ids[known])
        count = min(NEAR + 1, len(space))
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        # A shape that comes out as itself is drawn afresh.
        own = laws[np.arange(len(laws)), ids[known]]
        close = np.take_along_axis(laws, nearest, axis=1).sum(axis=1) - own
        fresh = space.is_shape[ids[known]] if space.shapes else np.zeros(len(own), dtype=np.bool_)
        stay[known], near[known] = np.where(fresh, 0.0, own), close + np.where(fresh, own, 0.0)
    parts = 10.0 * np.array([weights @ stay, weights @ near]) / weights.sum()
    exact = np.append(parts, 10.0 - parts.sum()).clip(0.0)
    whole = np.floor(exact).astype(int)
    # The largest remainders are rounded up.
    whole[np.argsort(-(exact - whole), kind="stable")[: 10 - whole.sum()]] += 1
    return [int(part) for part in whole]

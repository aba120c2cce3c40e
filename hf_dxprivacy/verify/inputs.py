"""Inputs of the verification: words, the unknown word, and pairs on which faults show."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_within
from hf_dxprivacy.mechanisms import Hierarchical, Mechanism

UNKNOWN = "(out of vocabulary)"
# Pairs of each input: with so many nearest ones, the farthest, and one at random.
NEAREST = 3
# Words that a callable is given at once.
BATCH = 1 << 14
# Bytes of one block of numbers, inputs by vocabulary; a few such blocks are held at once.
BLOCK_BYTES = 1 << 24

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AuditTarget:
    """Random function of words under audit, with the ε·d that is claimed for pairs of inputs.

    Attributes:
        inputs: The m inputs, by name.
        allowed: (m, m) float64 ε·d; ∞ where nothing is promised.
        draw: (k,) positions among the inputs ↦ (k,) outputs, as numbers of its own.
        name: The word that such a number stands for.
    """

    inputs: tuple[str, ...]
    allowed: NDArray[np.float64]
    draw: Callable[[Ids], Ids]
    name: Callable[[int], str]


def named(words: Sequence[str], row: int) -> str:
    """Return the word of a row; −1 is the input that stands for all unknown words."""
    return UNKNOWN if row < 0 else words[row]


def blocks(ids: Ids, size: int) -> Iterator[Ids]:
    """Cut ids into runs whose rows, of `size` float64 numbers each, fit into `BLOCK_BYTES`."""
    step = max(1, BLOCK_BYTES // (8 * size))
    for start in range(0, len(ids), step):
        yield ids[start : start + step]


def chosen_inputs(mechanism: Mechanism, count: int, rng: np.random.Generator) -> Ids:
    """Choose about `count` words in sparse and dense neighbourhoods, others, and their nearest.

    Different rows, ascending; all words if there are no more.
    """
    space = mechanism.space
    if len(space) <= count:
        return np.arange(len(space))
    # A sample will do: what is sought is many kinds of words, not the very sparsest one.
    sample = rng.choice(len(space), min(len(space), 4 * count), replace=False)
    nearest, reach = np.empty_like(sample), np.empty(len(sample))
    for part in blocks(np.arange(len(sample)), len(space)):
        distances = space.distances(sample[part])
        distances[np.arange(len(part)), sample[part]] = np.inf
        nearest[part], reach[part] = distances.argmin(axis=1), distances.min(axis=1)
    order = np.argsort(reach, kind="stable")
    quarter = max(1, count // 8)
    rest = rng.permutation(order[quarter:-quarter])[: max(0, count // 2 - 2 * quarter)]
    seeds = np.concatenate([order[:quarter], order[-quarter:], rest])
    return np.unique(np.concatenate([sample[seeds], nearest[seeds]]))


def claimed(mechanism: Mechanism, distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is claimed for pairs at these distances, of any shape.

    That is ε·d, but for "hierarchical", which claims a local level below ε times its diameter.
    """
    bounds: NDArray[np.float64] = mechanism.certified_epsilon * distances
    if isinstance(mechanism, Hierarchical):
        return np.minimum(bounds, mechanism.local_epsilon)
    return bounds


def of_mechanism(mechanism: Mechanism, count: int, rng: np.random.Generator) -> AuditTarget:
    """Return a mechanism at chosen words and at the unknown word, with its certified ε·d."""
    ids, words = np.append(chosen_inputs(mechanism, count, rng), -1), mechanism.space.words
    rows, columns = np.triu_indices(len(ids), k=1)
    distances = np.zeros((len(ids), len(ids)))
    distances[rows, columns] = mechanism.pair_distances(ids[rows], ids[columns])
    return AuditTarget(
        inputs=tuple(named(words, row) for row in ids),
        allowed=claimed(mechanism, distances + distances.T),
        draw=lambda positions: mechanism.sample(ids[positions], rng),
        name=lambda output: words[output],
    )


def distinct(given: Sequence[str], name: str) -> list[str]:
    """Return each word or text once; there have to be two to compare."""
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise InvalidTypeError(f"expected {name} to be a sequence of strings, to be drawn for")
    different = list(dict.fromkeys(given))
    if len(different) < 2:
        raise InvalidValueError(f"expected at least two different {name}, got {len(different)}")
    return different


def of_callable(
    function: Callable[..., object],
    words: Sequence[str],
    bound: Callable[[str, str], float],
    batched: bool,
    count: int,
    rng: np.random.Generator,
) -> AuditTarget:
    """Return the audit target of a callable, with the ε·d that is claimed for it."""
    different = distinct(words, "words")
    if len(different) > count:
        different = [different[k] for k in sorted(rng.permutation(len(different))[:count])]
    allowed = np.zeros((len(different), len(different)))
    for (i, a), (j, b) in combinations(enumerate(different), 2):
        claim = bound(a, b)
        require_within(0.0, math.inf, "ε·d is a distance", bound=claim)
        allowed[i, j] = allowed[j, i] = claim
    codes: dict[str, int] = {}

    def draw(positions: Ids) -> Ids:
        # Mixed, so that what a release takes from the texts beside one shows in what comes out.
        order, drawn = rng.permutation(len(positions)), np.empty(len(positions), dtype=np.int64)
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            outputs = _answers(function, [different[k] for k in positions[part]], batched)
            drawn[part] = [codes.setdefault(word, len(codes)) for word in outputs]
        return drawn

    return AuditTarget(tuple(different), allowed, draw, lambda output: list(codes)[output])


def pairs_to_compare(allowed: NDArray[np.float64], most: float, rng: np.random.Generator) -> Ids:
    """Return pairs (p, 2): each input with its nearest ones, its farthest, and one at random.

    Pairs with an ε·d above `most` are left out, because draws could not show more than it.

    Raises:
        InvalidValueError: If no pair is left.
    """
    reach = np.where(allowed <= most, allowed, np.inf)
    np.fill_diagonal(reach, np.inf)
    order = np.argsort(reach, axis=1, kind="stable")
    pairs = set()
    for row, others in enumerate(order):
        possible = others[: np.count_nonzero(np.isfinite(reach[row]))]
        if len(possible):
            partners = {*possible[:NEAREST], possible[-1], rng.choice(possible)}
            pairs |= {(min(row, int(k)), max(row, int(k))) for k in partners}
    if not pairs:
        raise InvalidValueError(
            f"expected pairs of inputs with ε·d of at most {most:.3g}, the most that so many draws "
            "can show, got none; take nearer words, a smaller ε, or more draws"
        )
    return np.array(sorted(pairs), dtype=np.int64)


def _answers(function: Callable[..., object], words: list[str], batched: bool) -> list[str]:
    answers = function(words) if batched else [function(word) for word in words]
    if isinstance(answers, str) or not isinstance(answers, Sequence | np.ndarray):
        raise InvalidTypeError(
            f"expected the callable to turn a list of words into a list, got a "
            f"{type(answers).__name__}; pass batched=False if it takes one word at a time"
        )
    if len(answers) != len(words):
        raise InvalidValueError(
            f"expected one output for each of {len(words)} words, got {len(answers)}"
        )
    if not all(isinstance(answer, str) for answer in answers):
        raise InvalidTypeError("expected every output of the callable to be a word, a string")
    return list(answers)

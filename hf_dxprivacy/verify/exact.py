"""Exact check of the guarantee of mechanisms with a known law, from their probabilities.

Nothing is taken from the certificate of `hf_dxprivacy.mechanisms`, which this is a check of: only
`probabilities`, the distances of the space and the stored ranges of its tree are read.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import ExactMechanism, ExponentialLaw, Hierarchical, RandomizedResponse
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import blocks, chosen_inputs, claimed, named
from hf_dxprivacy.verify.statements import COMPARED, Evidence, of_stated_mechanism

# Up to so many words every log-ratio of every pair is looked at: this number cubed.
SMALL = 640
# Of more words so many are looked at, if all outputs have to be.
SAMPLED = 200
# What rounding can add to a log-ratio: distances are good to about 1e-9 of their value.
ROUNDING = 1e-8
# How far a logarithm may be off the law that lets two outputs stand for all, and a sum off 1.
SHAPE = 1e-9

Array = NDArray[np.float64]


@dataclass
class _Worst:
    """The pair of inputs with the largest share of what its log-ratio may be."""

    # Its log-ratio over its ε·d, its two inputs, and the largest ε·d of any pair.
    share: float = -1.0
    pair: tuple[int, int] = (-1, -1)
    largest: float = 0.0

    def look(
        self, ratios: Array, allowed: Array, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> None:
        """Keep the worst of a block of pairs, rows by columns."""
        above = np.maximum(ratios - ROUNDING, 0.0)
        promised = np.isfinite(allowed)
        shares = np.where((above > 0) & promised, np.inf, 0.0)
        np.divide(above, allowed, out=shares, where=promised & (allowed > 0))
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        self.largest = max(self.largest, float(allowed.max()))
        if shares[row, column] > self.share:
            self.share = float(shares[row, column])
            self.pair = int(rows[row]), int(columns[column])

    def look_at_unknown(
        self, mechanism: ExactMechanism, rows: NDArray[np.int64], logs: Array
    ) -> None:
        """Compare words with the unknown word, by every output."""
        unknown = np.array([-1])
        ratios = np.abs(_differences(_log_laws(mechanism, unknown)[0], logs)).max(axis=1)
        allowed = _allowed(mechanism, unknown)[0, rows]
        self.look(ratios[:, None], allowed[:, None], rows, unknown)


def check_exactly(
    mechanism: ExactMechanism,
    ids: NDArray[np.int64] | None = None,
    *,
    rng: np.random.Generator,
    progress: bool = False,
) -> GuaranteeCheck:
    """Compare the laws of pairs of inputs at the certified ε; memory is bounded, whatever V.

    Args:
        mechanism: What to check.
        ids: (m,) different words, whose laws are compared output by output: O(m²·V) time. By
            default all words, in O(V²·n) time; some of them if the law is not exponential.
        rng: Chooses the pairs whose stated bounds are compared.
        progress: Show a bar on the standard error stream if that is a terminal.

    Raises:
        InvalidValueError: If probabilities do not add up to 1; or if all words of a large
            vocabulary are asked for and they are not those of an exponential law, so that not all
            outputs need be the two looked at.
    """
    words, everything = mechanism.space.words, np.arange(len(mechanism.space))
    if ids is None and len(words) > SMALL and not isinstance(mechanism, ExponentialLaw):
        ids = chosen_inputs(mechanism, SAMPLED, rng)
    asked = everything if ids is None else ids
    if ids is None and len(words) > SMALL and isinstance(mechanism, ExponentialLaw):
        worst, outputs = _two_outputs(mechanism, progress), "of two words the outputs that decide"
    else:
        worst, outputs = _all_outputs(mechanism, asked, progress), "all outputs"
    which = "all words" if ids is None else f"{len(asked):,} of {len(words):,} words"
    # What the mechanism's statements are compared with, for some words.
    some = np.append(rng.permutation(asked)[: COMPARED - 1], -1)
    allowed = np.zeros((len(some), len(some)))
    allowed[:, :-1] = _allowed(mechanism, some)[:, some[:-1]]
    allowed[:-1, -1] = allowed[-1, :-1]
    level = worst.share * mechanism.certified_epsilon if math.isfinite(worst.share) else 0.0
    evidence = Evidence(some, allowed, worst.largest, level)
    false, unchecked = of_stated_mechanism(mechanism, evidence)
    # The pair again, in the order in which the log-ratio is above zero.
    logs = _log_laws(mechanism, np.array(worst.pair))
    differences = _differences(logs[0], logs[1:])[0]
    output = int(np.abs(differences).argmax())
    first, second = worst.pair if differences[output] >= 0 else worst.pair[::-1]
    return GuaranteeCheck(
        passed=worst.share <= 1.0 and not false,
        method="exact",
        worst=(named(words, first), named(words, second)),
        outputs=(words[output],),
        log_ratio=float(abs(differences[output])),
        # The unknown word is no column: rows of it come first.
        allowed=float(_allowed(mechanism, np.array([min(worst.pair)]))[0, max(worst.pair)]),
        inputs=len(asked) + 1,
        pairs=len(asked) * (len(asked) + 1) // 2,
        scope=f"{which} and the unknown word, {outputs}"
        + ("" if math.isfinite(worst.largest) else "; pairs without a finite bound are not judged"),
        false_statements=false,
        not_checked=unchecked,
    )


def _all_outputs(mechanism: ExactMechanism, ids: NDArray[np.int64], progress: bool) -> _Worst:
    """Compare all pairs of some words, and each with the centroid, output by output."""
    worst = _Worst()
    parts = list(blocks(ids, len(mechanism.space)))
    for index, rows in enumerate(_shown(parts, progress)):
        logs, allowed = _log_laws(mechanism, rows), _allowed(mechanism, rows)
        worst.look_at_unknown(mechanism, rows, logs)
        for columns in parts[index:]:
            others = logs if columns is rows else _log_laws(mechanism, columns)
            ratios = np.stack([np.abs(_differences(law, others)).max(axis=1) for law in logs])
            worst.look(ratios, allowed[:, columns], rows, columns)
    return worst


def _shown(parts: list[NDArray[np.int64]], progress: bool) -> Iterable[NDArray[np.int64]]:
    return tqdm(parts, "Checking", delay=1.0, disable=not progress or None)


def _two_outputs(mechanism: ExponentialLaw, progress: bool) -> _Worst:
    """Compare all pairs of words by two outputs each, and all with the centroid by every output.

    *Two are enough.* Let Pr[M(w)=y] = exp(−s·d(w, y))/Z(w) with a metric d. For all w, w', y

        ln Pr[M(w)=y]/Pr[M(w')=y] = s·(d(w', y) − d(w, y)) + ln Z(w')/Z(w)
                                  ≤ s·d(w, w') + ln Z(w')/Z(w),

    by the triangle inequality, with equality at y = w, since d(w, w) = 0. The same with w and w'
    exchanged is attained at y = w'. So the largest absolute log-ratio of the pair is the larger
    one of its values at y = w and at y = w', and these are real probabilities of real outputs: no
    bound enters. ∎ The centroid is an input and no output, and so is compared at every output.

    That the law is of this form is checked for all pairs on the way.
    """
    worst, slope = _Worst(), mechanism.inverse_temperature
    everything = np.arange(len(mechanism.space))
    parts = list(blocks(everything, len(everything)))
    at_itself = np.concatenate([np.diagonal(_log_laws(mechanism, r)[:, r]) for r in parts])
    for rows in _shown(parts, progress):
        logs, distances = _log_laws(mechanism, rows), _distances(mechanism, rows)
        away = float(np.abs(logs + slope * distances - at_itself[rows, None]).max())
        if not away <= SHAPE:
            raise InvalidValueError(
                f"expected ln Pr[M(w)=y] = -s·d(w, y) - ln Z(w), but it is off by up to {away:.3g};"
                " of another law, two outputs of a pair do not stand for all: pass inputs= to "
                "compare a sample of the words at every output"
            )
        worst.look_at_unknown(mechanism, rows, logs)
        # Of the ordered pair (column, row), at the output that is the column itself.
        worst.look(at_itself - logs, claimed(mechanism, distances), rows, everything)
    return worst


def _log_laws(mechanism: ExactMechanism, ids: NDArray[np.int64]) -> Array:
    """Return ln Pr[M(w)=y], (m, V); −∞ where it cannot come out."""
    laws = mechanism.probabilities(ids)
    # Not "<", by which an undefined probability would pass.
    if not ((laws >= 0.0).all() and np.abs(laws.sum(axis=1) - 1.0).max() <= SHAPE):
        raise InvalidValueError(
            f"expected probabilities of the outputs of mechanism {mechanism.name!r} that are not "
            "below 0 and add up to 1 for each input"
        )
    with np.errstate(divide="ignore"):
        return np.log(laws, out=laws)


def _allowed(mechanism: ExactMechanism, ids: NDArray[np.int64]) -> Array:
    """Return ε·d from inputs to all words, (m, V)."""
    return claimed(mechanism, _distances(mechanism, ids))


def _distances(mechanism: ExactMechanism, ids: NDArray[np.int64]) -> Array:
    """Return (m, V) distances from inputs to all words, computed apart from the mechanism."""
    if isinstance(mechanism, Hierarchical):
        return np.stack([_tree_distances(mechanism.tree, word) for word in ids.tolist()])
    if isinstance(mechanism, RandomizedResponse):
        return np.not_equal(ids[:, None], np.arange(len(mechanism.space))).astype(np.float64)
    if isinstance(mechanism, ExponentialMechanism):
        return np.minimum(mechanism.space.distances(ids), mechanism.radius)
    if mechanism.paper is not None:
        pairs = np.repeat(ids, size := len(mechanism.space)), np.tile(np.arange(size), len(ids))
        return mechanism.pair_distances(*pairs).reshape(len(ids), size)
    raise InvalidValueError(
        f"mechanism {mechanism.name!r} has no exact check; pass method='sampling'"
    )


def _tree_distances(tree: Hierarchy, word: int) -> Array:
    """Return ln |C(word, y)| for all words y, (V,), by painting the ranges around the word."""
    common = np.full(len(tree), len(tree) + 1)
    if word >= 0:
        place = int(np.flatnonzero(tree.order == word)[0])
        around = np.flatnonzero((tree.starts <= place) & (place < tree.starts + tree.sizes))
        for cluster in around[np.argsort(-tree.sizes[around])].tolist():
            start, size = int(tree.starts[cluster]), int(tree.sizes[cluster])
            common[tree.order[start : start + size]] = size
        common[word] = 1
    distances: Array = np.log(common)
    return distances


def _differences(law: Array, others: Array) -> Array:
    """Return ln Pr[M(w)=y] − ln Pr[M(w')=y]; 0 where y can come out of neither."""
    with np.errstate(invalid="ignore"):
        differences = law - others
    differences[np.isnan(differences)] = 0.0
    return differences

"""The guarantee of exponential mechanisms, from their probabilities and with no draw.

Nothing is taken from the certificate of `hf_dxprivacy.mechanisms`, which this is a check of: only
`probabilities` and the distances of the space are read.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.audit.guarantee_check import GuaranteeCheck
from hf_dxprivacy.audit.guarantee_inputs import blocks, named
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms.exponential import ExponentialMechanism

# Up to so many words every log-ratio of every pair is looked at: this number cubed.
SMALL = 640
# What rounding can add to a log-ratio: distances are good to about 1e-9 of their value.
ROUNDING = 1e-8
# How far a logarithm may be off the law that lets two outputs stand for all.
SHAPE = 1e-9

Array = NDArray[np.float64]


@dataclass
class _Worst:
    """The pair of inputs with the largest share of what its log-ratio may be."""

    share: float = -1.0
    pair: tuple[int, int] = (-1, -1)

    def look(
        self, ratios: Array, allowed: Array, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> None:
        """Keep the worst of a block of pairs, rows by columns."""
        above = np.maximum(ratios - ROUNDING, 0.0)
        shares = np.where(above > 0, np.inf, 0.0)
        np.divide(above, allowed, out=shares, where=allowed > 0)
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        if shares[row, column] > self.share:
            self.share = float(shares[row, column])
            self.pair = int(rows[row]), int(columns[column])


def check_exactly(
    mechanism: ExponentialMechanism, ids: NDArray[np.int64] | None = None
) -> GuaranteeCheck:
    """Compare the laws of pairs of inputs; memory is bounded, whatever the vocabulary.

    Args:
        mechanism: What to check, at its `certified_epsilon` per unit of its truncated metric.
        ids: (m,) different words, whose laws are compared output by output: O(m²·V) time. By
            default all words, in O(V²·n) time.

    Raises:
        InvalidValueError: If all words of a large vocabulary are asked for and the probabilities
            are not those of an exponential law, so that not all outputs need be the two looked at.
    """
    everything = np.arange(len(mechanism.space))
    if ids is None and len(everything) > SMALL:
        worst, outputs = _two_outputs(mechanism), "of two words the outputs that decide"
    else:
        worst, outputs = _all_outputs(mechanism, everything if ids is None else ids), "all outputs"
    size = len(everything if ids is None else ids)
    which = "all words" if ids is None else f"{size:,} of {len(everything):,} words"
    return _described(mechanism, worst, size, f"{which} and the unknown word, {outputs}")


def _described(
    mechanism: ExponentialMechanism, worst: _Worst, size: int, scope: str
) -> GuaranteeCheck:
    pair = np.array(worst.pair)
    logs = _log_laws(mechanism, pair)
    differences = _differences(logs[0], logs[1:])[0]
    output = int(np.abs(differences).argmax())
    first, second = pair if differences[output] >= 0 else pair[::-1]
    allowed = mechanism.certified_epsilon * mechanism.pair_distances(pair[:1], pair[1:])[0]
    words = mechanism.space.words
    return GuaranteeCheck(
        passed=worst.share <= 1.0,
        method="exact",
        worst=(named(words, first), named(words, second)),
        outputs=(words[output],),
        log_ratio=float(abs(differences[output])),
        allowed=float(allowed),
        inputs=size + 1,
        pairs=size * (size + 1) // 2,
        scope=scope,
    )


def _all_outputs(mechanism: ExponentialMechanism, ids: NDArray[np.int64]) -> _Worst:
    """Compare all pairs of some words, and each with the centroid, output by output."""
    worst = _Worst()
    parts = list(blocks(ids, len(mechanism.space)))
    for index, rows in enumerate(parts):
        logs, allowed = _log_laws(mechanism, rows), _allowed(mechanism, rows)
        _look_at_centroid(worst, mechanism, rows, logs)
        for columns in parts[index:]:
            others = logs if columns is rows else _log_laws(mechanism, columns)
            ratios = np.stack([np.abs(_differences(law, others)).max(axis=1) for law in logs])
            worst.look(ratios, allowed[:, columns], rows, columns)
    return worst


def _two_outputs(mechanism: ExponentialMechanism) -> _Worst:
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
    worst = _Worst()
    everything = np.arange(len(mechanism.space))
    parts = list(blocks(everything, len(everything)))
    at_itself = np.concatenate([_own(rows, _log_laws(mechanism, rows)) for rows in parts])
    for rows in parts:
        logs, allowed = _log_laws(mechanism, rows), _allowed(mechanism, rows)
        _require_exponential(mechanism, logs, allowed, at_itself[rows])
        _look_at_centroid(worst, mechanism, rows, logs)
        # Of the ordered pair (column, row), at the output that is the column itself.
        worst.look(at_itself - logs, allowed, rows, everything)
    return worst


def _require_exponential(
    mechanism: ExponentialMechanism, logs: Array, allowed: Array, at_itself: Array
) -> None:
    slope = mechanism.rate / mechanism.certified_epsilon
    away = float(np.abs(logs + slope * allowed - at_itself[:, None]).max())
    if not away <= SHAPE:
        raise InvalidValueError(
            f"expected ln Pr[M(w)=y] = -s·d(w, y) - ln Z(w), but it is off by up to {away:.3g}; of "
            "another law, two outputs of a pair do not stand for all: pass inputs= to compare a "
            "sample of the words at every output"
        )


def _look_at_centroid(
    worst: _Worst, mechanism: ExponentialMechanism, rows: NDArray[np.int64], logs: Array
) -> None:
    centroid = np.array([-1])
    ratios = np.abs(_differences(_log_laws(mechanism, centroid)[0], logs)).max(axis=1)
    allowed = _allowed(mechanism, centroid)[0, rows]
    worst.look(ratios[:, None], allowed[:, None], rows, centroid)


def _log_laws(mechanism: ExponentialMechanism, ids: NDArray[np.int64]) -> Array:
    """Return ln Pr[M(w)=y], (m, V); −∞ where it can not come out."""
    laws = mechanism.probabilities(ids)
    with np.errstate(divide="ignore"):
        return np.log(laws, out=laws)


def _allowed(mechanism: ExponentialMechanism, ids: NDArray[np.int64]) -> Array:
    """Return ε·d_γ from inputs to all words, (m, V)."""
    truncated = np.minimum(mechanism.space.distances(ids), mechanism.radius)
    return mechanism.certified_epsilon * truncated


def _differences(law: Array, others: Array) -> Array:
    """Return ln Pr[M(w)=y] − ln Pr[M(w')=y]; 0 where y can come out of neither."""
    with np.errstate(invalid="ignore"):
        differences = law - others
    differences[np.isnan(differences)] = 0.0
    return differences


def _own(rows: NDArray[np.int64], logs: Array) -> Array:
    return logs[np.arange(len(rows)), rows]

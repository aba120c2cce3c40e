"""The largest ε at which even the worst word meets a target.

A grid of ε is searched from the top, and the first one at which all words meet the target is
the answer: nothing is assumed about how the statistics depend on ε. With c the confidence and g the
number of ε, let a = (1−c)/2g. Where statistics come from draws, a word passes if a bound meets the
target that holds, for this word at this ε, with the probability 1−a. For a wrong answer a word that
misses the target has to pass at one of the g. That all words pass at once needs no correction: each
has to. If the words are a sample, then at each ε a share q of bad words escapes it with probability
(1−q)^m, which is a for the share reported; with the other half for the draws this adds up to 1−c.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy.calibration.epsilons import epsilon_grid, given_epsilons
from hf_dxprivacy.calibration.measuring import (
    PATIENCE,
    entry_space,
    generator,
    known_ids,
    privacy_statistics,
)
from hf_dxprivacy.calibration.statistics import PrivacyStatistics
from hf_dxprivacy.errors import InvalidValueError, require_at_least, require_between
from hf_dxprivacy.mechanisms import (
    CalibratedExponential,
    ExactMechanism,
    check_options,
    create_mechanism,
)
from hf_dxprivacy.mechanisms.certificate import certify
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

# Words that are looked at together; first a few, among them those that missed a target last.
FIRST, BLOCK = 16, 256


@dataclass(frozen=True)
class Targets:
    """Targets that every word has to meet.

    Attributes:
        max_nw: Largest N_w that is allowed; None for any.
        min_sw: Least S_w that is allowed; None for any.
    """

    max_nw: float | None
    min_sw: int | None

    def __post_init__(self) -> None:
        if self.max_nw is None and self.min_sw is None:
            raise InvalidValueError(
                "expected max_nw, min_sw or both, got neither; max_nw=0.5 asks that each word is "
                "replaced at least every second time"
            )
        if self.max_nw is not None:
            require_between(0.0, 1.0, max_nw=self.max_nw)
        if self.min_sw is not None:
            require_at_least(1, min_sw=self.min_sw)

    def __str__(self) -> str:
        parts = [] if self.max_nw is None else [f"N_w ≤ {self.max_nw:g}"]
        return " and ".join(parts + ([] if self.min_sw is None else [f"S_w ≥ {self.min_sw}"]))

    def met(self, found: PrivacyStatistics) -> NDArray[np.bool_]:
        """Tell for each word whether it meets the targets, as far as the statistics are sure."""
        met = np.ones(len(found.words), dtype=np.bool_)
        if self.max_nw is not None:
            met &= found.kept_interval()[1] <= self.max_nw
        if self.min_sw is not None:
            met &= found.support_low >= self.min_sw
        return met


class Worst(NamedTuple):
    """The largest N_w and the least S_w of some words, each with its bound."""

    kept: float
    kept_high: float
    support: int
    support_low: int


@dataclass(frozen=True, repr=False)
class Suggestion(ReprHTML):
    """The largest ε of a grid at which all words looked at meet the targets.

    Attributes:
        epsilon: ε to ask for.
        mechanism: Name of the mechanism.
        targets: What the words meet.
        worst: The largest N_w and the least S_w of the words looked at, with their bounds.
        words: How many distinct words were looked at.
        exact: Whether their figures are exact; otherwise they meet the targets with `confidence`.
        confidence: c.
        unseen: If the words were drawn uniformly at random: the share of the words of the space
            that may miss a target, with `confidence`. 0 if all words were looked at.
        entries: What the words are: "words", or "sentences" of a pool.
        next_epsilon: The ε above on the grid, at which a word missed a target or could not be told
            from one that does. None if `epsilon` is the largest of the grid.
    """

    epsilon: float
    mechanism: str
    targets: Targets
    worst: Worst
    words: int
    exact: bool
    confidence: float
    unseen: float
    next_epsilon: float | None
    entries: str = "words"

    def __str__(self) -> str:
        sure = "exactly" if self.exact else f"with confidence {self.confidence:g}"
        lines = [
            f"ε = {self.epsilon:.6g} for {self.mechanism!r}: {self.targets} for all of "
            f"{self.words:,} {self.entries}, {sure}",
            f"  the worst of them: N_w = {self.worst.kept:.3g}, S_w = {self.worst.support}",
        ]
        if self.unseen:
            lines.append(
                f"  of the {self.entries} not looked at, at most {self.unseen:.2%} miss it "
                f"(confidence {self.confidence:g}, for a uniform sample)"
            )
        lines.append(
            "  the largest ε that was tried"
            if self.next_epsilon is None
            else f"  not met, or not surely, at the next ε tried, {self.next_epsilon:.6g}"
        )
        return "\n".join(lines)


def suggest_epsilon(
    space: EmbeddingSpace | SentencePool,
    mechanism: str,
    *,
    max_nw: float | None = None,
    min_sw: int | None = None,
    words: Sequence[str] | None = None,
    epsilons: ArrayLike | None = None,
    confidence: float = 0.95,
    runs: int = 1000,
    eta: float = 0.05,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **options: Any,
) -> Suggestion:
    """Find the largest ε of a grid at which even the worst word meets a target.

    Exact for the exponential mechanisms; from draws, with the stated confidence, for the others.

    Args:
        space: Where the words lie; of a pool its sentences are looked at.
        mechanism: A key of `hf_dxprivacy.mechanisms.MECHANISMS`.
        max_nw: Largest N_w that is allowed, in (0, 1).
        min_sw: Least S_w that is allowed.
        words: Words of the space that have to meet it. By default all of them, which takes long
            for large spaces; `sample_words` draws some.
        epsilons: ε to try, in any order. By default steps of 4 %, from 0.25 to 512 divided by the
            median distance to the nearest neighbour; for "calibrated" from 1 to 16, and those
            that the space does not know yet are certified first; for "hierarchical" and "krr",
            whose metric is their own, from 0.25 to 32.
        confidence: c in (0, 1).
        runs: Draws for each word and ε; at most about (1−η)·runs can be shown for S_w.
        eta: η in (0, 1), the probability that S_w may leave out.
        rng: Source of the draws; this process's own by default.
        progress: Show a bar on the standard error stream if that is a terminal.
        **options: Of the mechanism, such as ``lam`` for "mahalanobis".

    Raises:
        InvalidValueError: If no ε of the grid meets the target, a word is not in the space, there
            are none, or a number is out of range.
        InvalidTypeError: If the words are a single string, an ε is no number, `rng` no generator,
            or the mechanism has no such option.
        MissingExtraError: If draws are needed and SciPy is not installed.
    """
    require_between(0.0, 1.0, confidence=confidence)
    generator(rng)
    space = entry_space(space)
    # First, since a certificate may take minutes.
    check_options(mechanism, options)
    targets = Targets(max_nw, min_sw)
    tried = epsilon_grid(space, mechanism) if epsilons is None else given_epsilons(epsilons)
    grid = sorted(set(tried), reverse=True)
    ids = np.unique(known_ids(space, space.words if words is None else words))
    if len(ids) == 0:
        raise InvalidValueError(
            f"expected {space.item_kind} that have to meet the target, got none"
        )
    level = (1.0 - confidence) / (2 * len(grid))
    if mechanism == CalibratedExponential.name:
        certify(space, grid[-1], grid[0], options.get("beta", 0.001), progress)

    def unmet(lowest: float) -> str:
        tried = f"no ε that was tried from {lowest:.6g} to {grid[0]:.6g}"
        return f"{tried} meets {targets} for all {space.item_kind}"

    order, above = [space.words[row] for row in ids], None
    measure = partial(
        privacy_statistics, runs=runs, eta=eta, rng=rng, confidence=1.0 - level, progress=False
    )
    with tqdm(total=len(ids), delay=PATIENCE, disable=not progress or None) as bar:
        for epsilon in grid:
            try:
                found = create_mechanism(mechanism, space, epsilon, **options)
            except InvalidValueError as error:
                if above is None:
                    raise
                raise InvalidValueError(f"{unmet(above)}; below, {error}") from error
            bar.reset()
            bar.set_description(f"ε = {epsilon:.4g}")
            if worst := _worst(order, targets, partial(measure, found), bar):
                break
            above = epsilon
        else:
            raise InvalidValueError(
                f"{unmet(grid[-1])}; try a smaller ε, a weaker target or, for a mechanism that is "
                "drawn from, more runs"
            )
    exact = isinstance(found, ExactMechanism)
    unseen = 1.0 - level ** (1.0 / len(ids)) if len(ids) < len(space) else 0.0
    return Suggestion(
        found.epsilon,
        mechanism,
        targets,
        worst,
        len(ids),
        exact,
        confidence,
        unseen,
        above,
        space.item_kind,
    )


def _worst(
    order: list[str],
    targets: Targets,
    measure: Callable[[Sequence[str]], PrivacyStatistics],
    bar: "tqdm[NoReturn]",
) -> Worst | None:
    """Return the worst figures if all words meet the targets; otherwise None, at once.

    The words that missed a target are moved to the front, to be looked at first the next time.
    """
    figures = []
    for start in (0, *range(FIRST, len(order), BLOCK)):
        block = order[start : start + BLOCK if start else FIRST]
        found = measure(block)
        met = targets.met(found)
        if not met.all():
            missed = {word for word, good in zip(block, met, strict=True) if not good}
            order.sort(key=lambda word: word not in missed)
            return None
        high = found.kept_interval()[1]
        figures.append((found.kept, high, found.support, found.support_low))
        bar.update(len(block))
    kept, high, support, low = map(np.concatenate, zip(*figures, strict=True))
    return Worst(float(kept.max()), float(high.max()), int(support.min()), int(low.min()))

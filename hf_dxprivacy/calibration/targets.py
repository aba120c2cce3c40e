"""What every word has to meet, and whether words do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy import _validate
from hf_dxprivacy.calibration.measuring import privacy_statistics
from hf_dxprivacy.calibration.statistics import PrivacyStatistics
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.mechanisms import Mechanism

# Words that are looked at together; first a few, among them those that missed a target last.
FIRST, BLOCK = 16, 256


@dataclass(frozen=True)
class Targets:
    """What every word has to meet.

    Attributes:
        max_nw: Largest N_w that is allowed; None for any.
        min_sw: Least S_w that is allowed; None for any.

    Raises:
        InvalidValueError: If there is no target, or one is out of range.
    """

    max_nw: float | None
    min_sw: int | None

    def __post_init__(self) -> None:
        if self.max_nw is None and self.min_sw is None:
            raise InvalidValueError("expected max_nw, min_sw or both, got neither")
        if self.max_nw is not None:
            _validate.between(0.0, 1.0, max_nw=self.max_nw)
        if self.min_sw is not None:
            _validate.at_least(1, min_sw=self.min_sw)

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

    @classmethod
    def of(cls, found: PrivacyStatistics) -> "Worst":
        """Return those of the words of some statistics."""
        return cls(
            float(found.kept.max()),
            float(found.kept_interval()[1].max()),
            int(found.support.min()),
            int(found.support_low.min()),
        )

    def and_of(self, other: "Worst") -> "Worst":
        """Return those of both."""
        return Worst(
            max(self.kept, other.kept),
            max(self.kept_high, other.kept_high),
            min(self.support, other.support),
            min(self.support_low, other.support_low),
        )


class Search:
    """Words, and what is asked of each at an ε.

    Args:
        words: Distinct words.
        targets: What they have to meet.
        runs: Draws for each word where the law is not known.
        eta: η of S_w.
        level: Largest probability that a word which misses a target by draws is taken to meet it.
        rng: Source of the draws.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        targets: Targets,
        runs: int,
        eta: float,
        level: float,
        rng: np.random.Generator | None,
    ) -> None:
        self.targets, self.level = targets, level
        self._words, self._runs, self._eta, self._rng = words, runs, eta, rng

    def worst(self, mechanism: Mechanism, bar: "tqdm[NoReturn]") -> Worst | None:
        """Return the worst figures if all words meet the targets; otherwise None, at once.

        The words that missed a target are the first to be looked at the next time.
        """
        bar.reset()
        bar.set_description(f"ε = {mechanism.epsilon:.4g}")
        worst: Worst | None = None
        for block in self._blocks():
            found = privacy_statistics(
                mechanism,
                block,
                self._runs,
                self._eta,
                self._rng,
                confidence=1.0 - self.level,
                progress=False,
            )
            met = self.targets.met(found)
            if not met.all():
                missed = [word for word, good in zip(block, met, strict=True) if not good]
                self._words = (*missed, *(w for w in self._words if w not in set(missed)))
                return None
            worst = Worst.of(found) if worst is None else worst.and_of(Worst.of(found))
            bar.update(len(block))
        return worst

    def _blocks(self) -> Iterator[tuple[str, ...]]:
        yield self._words[:FIRST]
        for start in range(FIRST, len(self._words), BLOCK):
            yield self._words[start : start + BLOCK]

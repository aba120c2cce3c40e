"""Sweeps of mechanisms over ε."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy.calibration.measuring import entry_space, privacy_statistics
from hf_dxprivacy.calibration.statistics import PrivacyStatistics
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.guarantee import upward
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

if TYPE_CHECKING:
    from datasets import Dataset

HEADINGS = (
    "ε",
    "certified ε",
    "local ε",
    "ε·d, nearest",
    "N_w, mean",
    "median",
    "largest",
    "S_w, mean",
    "median",
    "least",
)


@dataclass(frozen=True, eq=False)
class Step:
    """A mechanism at one ε, and N_w and S_w of each word."""

    mechanism: Mechanism
    statistics: PrivacyStatistics

    @property
    def spread(self) -> NDArray[Any]:
        """(m,) S_w: exactly, or the different outputs among the draws."""
        found = self.statistics
        return found.support if found.exact else found.distinct

    def cells(self) -> list[str]:
        """Return a row of the table, as `HEADINGS` says; the last column of each is the worst."""
        kept, spread, guarantee = self.statistics.kept, self.spread, self.mechanism.guarantee
        return [
            f"{self.mechanism.epsilon:g}",
            upward(guarantee.epsilon),
            upward(guarantee.ldp_epsilon, 3),
            upward(guarantee.neighbour_epsilon[1], 3),
            *(f"{value:.3f}" for value in (kept.mean(), np.median(kept), kept.max())),
            *(f"{value:,.0f}" for value in (spread.mean(), np.median(spread), spread.min())),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(ReprHTML):
    """One mechanism at several ε, in ascending order, on the same words.

    Attributes:
        steps: What was measured at each ε; at least one.
    """

    steps: tuple[Step, ...]

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism at the first ε; its name, space and options are those of all."""
        return self.steps[0].mechanism

    @property
    def statistics(self) -> PrivacyStatistics:
        """The statistics at the first ε; words, draws, η and `exact` are the same at every ε."""
        return self.steps[0].statistics

    @property
    def entries(self) -> str:
        """What was looked at: "words" or "sentences"."""
        return self.mechanism.space.item_kind

    @property
    def spread_name(self) -> str:
        """Definition of S_w in these figures, as words."""
        found = self.statistics
        if found.exact:
            return f"outputs that together hold {1.0 - found.eta:.0%} of the probability"
        return f"different outputs in {found.runs:,} draws"

    def __str__(self) -> str:
        rows = [HEADINGS, ["---:"] * len(HEADINGS), *(step.cells() for step in self.steps)]
        words = f"{len(self.statistics.words):,} {self.entries}"
        return "\n".join(
            [
                f"{self.mechanism.name} at {len(self.steps)} values of ε, {words}",
                *(f"| {' | '.join(cells)} |" for cells in rows),
                f"N_w is how often one stays; S_w, the number of {self.spread_name}.",
            ]
        )

    def to_dataset(self) -> "Dataset":
        """Return a `datasets.Dataset` with a row for each ε and word.

        Raises:
            MissingExtraError: If the figures come from draws and SciPy is not installed.
        """
        from datasets import Dataset, concatenate_datasets

        tables = []
        for step in self.steps:
            table = step.statistics.to_dataset()
            about = {
                "mechanism": step.mechanism.name,
                "epsilon": step.mechanism.epsilon,
                "certified_epsilon": step.mechanism.guarantee.epsilon,
            }
            head = Dataset.from_dict({name: [value] * len(table) for name, value in about.items()})
            tables.append(concatenate_datasets([head, table], axis=1))
        return concatenate_datasets(tables)


def sweep(
    space: EmbeddingSpace | SentencePool,
    mechanism: str,
    epsilons: Iterable[float],
    words: Sequence[str],
    *,
    runs: int = 1000,
    eta: float = 0.05,
    rng: np.random.Generator | None = None,
    progress: bool = True,
    **options: Any,
) -> Sweep:
    """Measure a mechanism at several ε on the same words.

    Args:
        space: Where the words lie.
        mechanism: A key of `mechanisms.MECHANISMS`.
        epsilons: Values of ε > 0; the order does not matter.
        words: Words of the space; see `calibration.sample_words`.
        runs: Draws for each word.
        eta: The probability that S_w leaves out.
        rng: Source of the draws; this process's own by default.
        progress: Show a bar on a terminal for what takes long.
        **options: The mechanism's own options.

    Raises:
        InvalidValueError: If there is no ε or no word, or one that does not suit.
    """
    space, grid = entry_space(space), sorted(set(epsilons))
    if not grid or not words:
        raise InvalidValueError(
            f"expected at least one ε and one word, got {len(grid)} and {len(words)}"
        )
    # All are made first, so that an ε for which there is no such noise costs no time.
    mechanisms = [create_mechanism(mechanism, space, epsilon, **options) for epsilon in grid]
    return Sweep(
        tuple(
            Step(made, privacy_statistics(made, words, runs, eta, rng, progress=progress))
            for made in mechanisms
        )
    )
